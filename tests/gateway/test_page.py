"""The web page, driven by Chromium against a running gateway."""

import asyncio
import json
import re
from urllib.parse import quote

import pytest
import pytest_asyncio

from hookline.events import InputEventResult
from hookline.models import Call, Fault, ScriptedModel, Turn

from .page import (
    CHROMIUM,
    MISSING,
    TOKEN,
    Held,
    browser,
    connected,
    idle,
    opened,
    say,
    serious_faults,
    serving,
    true,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
    pytest.mark.asyncio(loop_scope="module"),  # one browser for all
]

PHONE = {"width": 390, "height": 844}
WRITE = Call("write_file", {"path": "notes.txt", "content": "milk\n"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium():
    async with browser() as found:
        yield found


async def test_an_answer_is_seen_while_it_is_still_being_given(tmp_path, chromium):
    go_on = asyncio.Event()
    async with serving(tmp_path, Held("The first **half**", go_on, " and the second.")) as house:
        page = await opened(chromium, house)
        await say(page, "Tell me.")
        await page.wait_for_selector(".answer strong >> text=half")
        assert "second" not in await page.inner_text(".answer")
        assert await page.is_visible("#cancel")
        go_on.set()
        await page.wait_for_selector("text=and the second.")
        await idle(page)
        assert await page.inner_text(".answer") == "The first half and the second."
        assert await page.inner_text(".person") == "Tell me."
        await true(page, "document.getElementById('announcer').textContent.includes('second')")
        assert page.problems == []


HOSTILE = """# <b>Title</b>

<script>window.ran = 1</script> <img src=x onerror="window.ran = 2">

[one](javascript:window.ran=3) [two](data:text/html,<script>window.ran=4</script>) [three](https://example.org/a?b=c)
![seen](https://example.org/pixel.png) <https://example.org/auto>
<a href="javascript:window.ran=5">five</a>

| <svg onload="window.ran=6"> | b |
|---|---|
| <iframe srcdoc="<script>parent.ran=7</script>"></iframe> | `<i>` |

```html"><script>window.ran=8</script>
</code></pre><script>window.ran = 9</script>
```
"""


async def test_markup_in_an_answer_is_shown_as_text_and_never_runs(tmp_path, chromium):
    calls = [Call("read_file", {"path": "<img src=x onerror=window.ran=10>"}, id='"><script>')]
    turns = [Turn(text=HOSTILE, reasoning=HOSTILE, tool_calls=calls), HOSTILE]
    async with serving(tmp_path, ScriptedModel(turns)) as house:
        page = await opened(chromium, house)
        await say(page, "<script>window.ran = 0</script>")
        await page.wait_for_selector(".tool + .prose")
        await idle(page)
        for _ in range(2):  # as it streams, and as history
            shown = await page.text_content("#turns")
            assert "<script>window.ran = 1</script>" in shown
            assert "</code></pre><script>window.ran = 9</script>" in shown
            assert "<script>window.ran = 0</script>" in shown
            names = await page.eval_on_selector_all(
                "#turns *", "all => [...new Set(all.map(e => e.localName))]"
            )
            assert not {"script", "img", "svg", "iframe", "b", "i", "style"} & set(names)
            links = await page.eval_on_selector_all(
                "#turns a", "all => all.map(a => a.protocol + a.rel)"
            )
            assert set(links) == {"https:noopener noreferrer"}
            assert len(links) == 9  # three in the reasoning, three in each text
            assert await page.evaluate("window.ran") is None
            assert page.problems == []
            await page.reload()
            await page.wait_for_selector(".tool + .prose")


async def test_a_tool_call_is_folded_and_shows_its_arguments_and_result(tmp_path, chromium):
    read = Turn(
        reasoning="Let me look.", text="Reading.", tool_calls=[Call("read_file", {"path": "notes.txt"})]
    )
    missing = Turn(tool_calls=[Call("read_file", {"path": "gone.txt"})])
    async with serving(tmp_path, ScriptedModel([read, missing, "It says milk."])) as house:
        (house.workspace / "notes.txt").write_text("milk, please")
        page = await opened(chromium, house)
        await say(page, "What do I need?")
        await page.wait_for_selector("text=It says milk.")
        await idle(page)
        for _ in range(2):  # as it happens, and as history
            states = await page.eval_on_selector_all(".tool", "all => all.map(t => t.dataset.state)")
            assert states == ["done", "failed"]
            assert not await page.is_visible(".tool-body")
            assert await page.get_attribute(".reasoning", "open") is None
            await page.click(".tool summary >> nth=0")
            await page.locator(".tool-body .code").nth(1).wait_for()
            body = await page.inner_text(".tool-body")
            assert '"path": "notes.txt"' in body
            assert "milk, please" in body
            await page.click(".reasoning summary")
            assert await page.inner_text(".reasoning .prose") == "Let me look."
            await page.reload()
            await page.wait_for_selector("text=It says milk.")


@pytest.mark.parametrize(("button", "written"), [("Approve once", True), ("Reject", False)])
async def test_an_approval_is_answered_by_a_click(tmp_path, chromium, button, written):
    async with serving(tmp_path, ScriptedModel([Turn(tool_calls=[WRITE]), "Done."])) as house:
        page = await opened(chromium, house)
        await say(page, "Note milk.")
        await page.wait_for_selector(".approval")
        assert await page.text_content(".approval .line.added") == "+milk\n"
        exact = json.loads(await page.inner_text(".approval .code code"))
        assert exact == {"path": "notes.txt", "content": "milk\n"}
        assert not (house.workspace / "notes.txt").exists()
        await page.click(f".approval >> text={button}")
        await page.wait_for_selector("text=Done.")
        assert await page.query_selector(".approval") is None
        assert (house.workspace / "notes.txt").exists() is written
        assert await page.get_attribute(".tool", "data-state") == ("done" if written else "failed")


@pytest.mark.parametrize("choices", [("yes", "no"), ()])
async def test_a_note_and_a_question_of_a_hook_are_shown(tmp_path, chromium, choices):
    answers = []

    async def talk(event, ctx):
        ctx.notify("Have a look.")
        answers.append(await ctx.ask("Proceed?", choices))

    async with serving(tmp_path, ScriptedModel(["Hello."])) as house:
        house.app.hooks.register("agent_end", talk)
        page = await opened(chromium, house)
        await say(page, "hi")
        await page.wait_for_selector(".approval >> text=Proceed?")
        await page.wait_for_selector("text=Have a look.")
        if choices:
            await page.click(".approval >> text=yes")
        else:
            await page.fill(".approval input", "yes")
            await page.click(".approval >> text=Answer")
        await page.wait_for_selector("text=Hello.")
        await idle(page)
        assert await page.query_selector(".approval") is None
    assert answers == ["yes"]


async def test_nothing_in_a_call_hides_from_who_approves_it(tmp_path, chromium):
    path = "harmless\u202etxt.\u200bsh"
    turns = [Turn(tool_calls=[Call("write_file", {"path": path, "content": "a\u2066b\n"})]), "Done."]
    async with serving(tmp_path, ScriptedModel(turns)) as house:
        page = await opened(chromium, house)
        await say(page, "Go.")
        await page.wait_for_selector(".approval")
        shown = await page.text_content(".approval")
        assert "harmless\\u{202e}txt.\\u{200b}sh" in shown
        assert "+a\\u{2066}b" in shown
        assert not set("\u202e\u200b\u2066") & set(shown)


async def test_an_approval_for_the_session_is_not_asked_again(tmp_path, chromium):
    turns = [Turn(tool_calls=[WRITE]), "Once.", Turn(tool_calls=[WRITE]), "Twice."]
    async with serving(tmp_path, ScriptedModel(turns)) as house:
        page = await opened(chromium, house)
        await say(page, "Note milk.")
        await page.click("text=Approve for this session")
        await page.wait_for_selector("text=Once.")
        (house.workspace / "notes.txt").unlink()
        await say(page, "And again.")
        await page.wait_for_selector("text=Twice.")
        assert (house.workspace / "notes.txt").read_text() == "milk\n"


async def test_an_open_question_is_there_again_after_a_reload(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel([Turn(tool_calls=[WRITE]), "Done."])) as house:
        page = await opened(chromium, house)
        await say(page, "Note milk.")
        await page.wait_for_selector(".approval")
        await page.reload()
        await page.click("text=Approve once")
        await page.wait_for_selector("text=Done.")
        assert (house.workspace / "notes.txt").exists()
        await idle(page)
        assert await page.locator(".tool").count() == 1


async def test_an_answer_can_be_stopped(tmp_path, chromium):
    async with serving(tmp_path, Held("It begins", asyncio.Event())) as house:
        page = await opened(chromium, house)
        await say(page, "Go.")
        await page.wait_for_selector("text=It begins")
        await page.click("#cancel")
        await page.wait_for_selector(".note >> text=Stopped.")
        await idle(page)
        await say(page, "Once more.")
        await page.locator("text=It begins").nth(1).wait_for()
        await page.press("#composer-text", "Escape")
        await page.locator(".note >> text=Stopped.").nth(1).wait_for()


async def test_what_goes_wrong_is_told(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["Only this."])) as house:
        page = await opened(chromium, house)
        await say(page, "One.")
        await page.wait_for_selector("text=Only this.")
        await say(page, "Two.")
        await page.wait_for_selector(".note.problem >> text=no turn left")
        await idle(page)


async def test_a_message_that_is_too_large_is_not_sent_for_ever(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["Hello."]), max_body=2000) as house:
        page = await opened(chromium, house)
        await say(page, "x" * 3000)
        await page.wait_for_selector(".note.problem >> text=larger than the gateway takes")
        await connected(page)
        await say(page, "Shorter.")
        await page.wait_for_selector("text=Hello.")


async def test_a_session_that_cannot_be_is_refused(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["Hello."])) as house:
        page = await opened(chromium, house, "#session=a%2Fb", connects=False)
        await page.wait_for_selector(".note.problem >> text=no session can have this name")
        await page.click("#new-session")
        await say(page, "hi")
        await page.wait_for_selector("text=Hello.")


async def test_the_page_comes_back_when_the_gateway_does(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["First.", "Second."])) as house:
        page = await opened(chromium, house)
        await say(page, "One.")
        await page.wait_for_selector("text=First.")
        await house.stop()
        await page.wait_for_selector("#banner >> text=Trying again")
        await say(page, "Two, while nobody listens.")
        assert await page.get_attribute(".person >> nth=1", "data-state") == "waiting"
        await house.start()
        await page.wait_for_selector("text=Second.")
        await connected(page)
        assert await page.is_hidden("#banner")
        said = await page.eval_on_selector_all(".turn", "all => all.map(t => t.innerText)")
        assert said == ["One.", "First.", "Two, while nobody listens.", "Second."]


async def turns_of(page):
    return await page.eval_on_selector_all(".turn", "all => all.map(t => t.innerText)")


async def test_a_page_that_is_opened_in_the_middle_of_an_answer_shows_it_from_its_start(
    tmp_path, chromium
):
    go_on = asyncio.Event()
    async with serving(tmp_path, Held("The first **half**", go_on, " and the second.")) as house:
        first = await opened(chromium, house, "#session=web:garden")
        await say(first, "Tell me.")
        await first.wait_for_selector("text=half")
        second = await opened(chromium, house, "#session=web:garden")
        await first.reload()
        for page in (first, second):
            await page.wait_for_selector(".answer strong >> text=half")
            assert await turns_of(page) == ["Tell me.", "The first half"]
            assert await page.is_visible("#cancel")
        go_on.set()
        for page in (first, second):
            await page.wait_for_selector("text=and the second.")
            await idle(page)
            assert await turns_of(page) == ["Tell me.", "The first half and the second."]
        await say(second, "And this?")
        await first.locator(".answer").nth(1).wait_for()
        await idle(first)
        for page in (first, second):
            await idle(page)
            assert (await turns_of(page))[2:] == ["And this?", "The first half and the second."]
            await page.reload()
            await page.locator(".answer").nth(1).wait_for()
            assert len(await turns_of(page)) == 4


class HeldTurns(ScriptedModel):
    """Answers from a script; the last answer stays in the middle."""

    def __init__(self, turns, middle):
        super().__init__(turns)
        self.middle = middle

    async def stream(self, request):
        async for event in super().stream(request):
            yield event
            if event.kind == "text" and "MIDDLE" in event.data["delta"]:
                await self.middle.wait()


async def test_a_reload_between_and_after_tool_calls_shows_each_thing_once(tmp_path, chromium):
    read = Turn("Looking.", tool_calls=[Call("list_files", {})], reasoning="Hm.")
    go_on = asyncio.Event()
    model = HeldTurns([read, Turn("MIDDLE and end.", chunk=6)], go_on)
    async with serving(tmp_path, model) as house:
        page = await opened(chromium, house)
        await say(page, "Go.")
        await page.wait_for_selector("text=MIDDLE")
        for _ in range(2):
            await page.reload()
            await page.wait_for_selector("text=MIDDLE")
            assert await page.locator(".tool").count() == 1
            assert await page.locator(".reasoning").count() == 1
            assert (await page.inner_text("#turns")).count("Looking.") == 1
            assert "end." not in await page.inner_text("#turns")
        await say(page, "Next.")  # it waits for its turn
        await page.reload()
        await page.wait_for_selector("text=Next.")
        go_on.set()
        await page.wait_for_selector("text=MIDDLE and end.")
        said = await turns_of(page)
        assert said[0] == "Go."
        assert said[1].endswith("MIDDLE and end.")
        assert said[2] == "Next."


async def test_what_was_shown_of_stopped_and_failed_turns_is_there_after_a_reload(tmp_path, chromium):
    stopped, failed = Turn("MIDDLE of it"), Turn("It got this far.", error=Fault("broken", after=2))
    never = asyncio.Event()
    async with serving(tmp_path, HeldTurns([stopped, failed], never)) as house:
        page = await opened(chromium, house)
        await say(page, "One.")
        await page.wait_for_selector("text=MIDDLE of it")
        await page.click("#cancel")
        await page.wait_for_selector(".note >> text=Stopped.")
        await say(page, "Two.")
        await page.wait_for_selector(".note.problem >> text=broken")
        await idle(page)
        before = await turns_of(page)
        assert len(before) == 4
        assert "It got this far." in before[3]
        await page.reload()
        await page.wait_for_selector(".note.problem >> text=broken")
        assert await turns_of(page) == before


async def test_a_blocked_message_is_there_after_a_reload(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["never"])) as house:
        block = InputEventResult(action="block", reason="not today")
        house.app.hooks.register("input", lambda event: block)
        page = await opened(chromium, house)
        await say(page, "One.")
        await page.wait_for_selector(".note.problem >> text=not today")
        await idle(page)
        before = await turns_of(page)
        await page.reload()
        await page.wait_for_selector(".note.problem >> text=not today")
        assert await turns_of(page) == before


async def test_a_message_typed_while_the_gateway_was_down_stands_below_the_resumed_answer(
    tmp_path, chromium
):
    go_on = asyncio.Event()
    async with serving(tmp_path, Held("The first half", go_on, " and the second.")) as house:
        page = await opened(chromium, house)
        await say(page, "One.")
        await page.wait_for_selector("text=The first half")
        await house.stop()
        await page.wait_for_selector("#banner >> text=Trying again")
        await say(page, "Two.")
        await house.start()
        await page.wait_for_selector("#banner", state="hidden")
        await page.wait_for_selector("text=The first half")
        go_on.set()
        await page.locator("text=and the second.").nth(1).wait_for()
        await idle(page)
        whole = "The first half and the second."
        assert await turns_of(page) == ["One.", whole, "Two.", whole]
        await page.reload()
        await page.locator("text=and the second.").nth(1).wait_for()
        assert await turns_of(page) == ["One.", whole, "Two.", whole]


@pytest.mark.parametrize("size", [PHONE, {"width": 1200, "height": 700}, {"width": 800, "height": 420}])
async def test_a_question_covers_nothing(tmp_path, chromium, size):
    long = "\n\n".join(f"Paragraph {number}." for number in range(30))
    write = Call("write_file", {"path": "notes.txt", "content": "line\n" * 60})
    async with serving(
        tmp_path, ScriptedModel([long, Turn("I write it.", tool_calls=[write])])
    ) as house:
        page = await opened(chromium, house, viewport=size)
        await say(page, "One.")
        await page.wait_for_selector("text=Paragraph 29.")
        await say(page, "Write it down.")
        await page.wait_for_selector(".approval .buttons")
        await true(page, "() => document.getElementById('latest').hidden")
        card = await page.locator(".approval").bounding_box()
        said = await page.locator("text=I write it.").bounding_box()
        log = await page.locator("#log").bounding_box()
        composer = await page.locator("#composer").bounding_box()
        buttons = await page.locator(".approval .buttons").bounding_box()
        assert said["y"] + said["height"] <= card["y"]
        assert buttons["y"] + buttons["height"] <= composer["y"]
        await page.locator("text=I write it.").scroll_into_view_if_needed()
        said = await page.locator("text=I write it.").bounding_box()
        assert said["y"] >= log["y"]


async def test_no_approval_is_asked_for_a_call_that_would_fail(tmp_path, chromium):
    edit = Call("edit_file", {"path": "notes.txt", "edits": [{"old": "beer", "new": "milk"}]})
    async with serving(tmp_path, ScriptedModel([Turn(tool_calls=[edit]), "I see."])) as house:
        (house.workspace / "notes.txt").write_text("the secret is walrus\n")
        page = await opened(chromium, house)
        await say(page, "Change it.")
        await page.wait_for_selector("text=I see.")
        assert await page.get_attribute(".tool", "data-state") == "failed"
        await page.click(".tool summary")
        await page.locator(".tool-body .code").nth(1).wait_for()
        result = await page.inner_text(".tool-body")
        assert "the text is not in notes.txt" in result
        assert "walrus" not in result  # nobody allowed the file to be read


async def test_sessions_are_listed_opened_and_linked(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["Hello."])) as house:
        page = await opened(chromium, house, "#session=web%3Agarden")
        await say(page, "About the garden.")
        await page.wait_for_selector("text=Hello.")
        await page.click("#new-session")
        await page.wait_for_selector(".welcome")
        assert re.search(r"#session=web%3A[0-9a-f]{12}$", page.url)
        await connected(page)
        await say(page, "About the house.")
        await page.wait_for_selector(".answer")
        await page.wait_for_selector("#sessions a[aria-current] >> text=About the house.")
        await page.click("#sessions a >> text=About the garden.")
        await page.wait_for_selector(".person >> text=About the garden.")
        assert page.url.endswith("#session=web%3Agarden")
        assert await page.locator(".turn").count() == 2
        await page.goto(house.address)  # without a link: the last one of this browser
        await page.wait_for_selector(".person >> text=About the garden.")
        await page.go_back()
        await page.wait_for_selector(".person >> text=About the garden.")


async def test_a_browser_without_a_microphone_says_so(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["hi"])) as house:
        page = await opened(chromium, house)
        await page.click("#record")
        await page.wait_for_selector(".note.problem >> text=microphone")


async def test_a_gateway_that_wants_a_token_is_given_one(tmp_path, chromium):
    secret = "open/sesame (please)="
    async with serving(tmp_path, ScriptedModel(["Hello."]), token=secret) as house:
        page = await opened(chromium, house, connects=False, token="")
        await page.wait_for_selector("text=hookline gateway --print-token")
        assert await page.is_hidden("#token-problem")
        assert await page.is_hidden("#composer")
        await page.fill("#token", "wrong")
        await page.press("#token", "Enter")
        await page.wait_for_selector("#token-problem >> text=the token is wrong")
        await true(page, "document.activeElement.id === 'token' && !token.value")
        await page.fill("#token", f"{house.address}#token={quote(secret)}")  # the link does as well
        await page.press("#token", "Enter")
        await connected(page)
        await say(page, "hi")
        await page.wait_for_selector("text=Hello.")
        await page.reload()
        await connected(page)


async def test_the_link_hands_the_token_over_and_leaves_it_nowhere(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["Hello."])) as house:
        page = await opened(chromium, house)
        assert TOKEN not in page.url
        assert await page.is_hidden("#token-form")
        assert await page.evaluate("Object.values(localStorage).join() + document.cookie") == (
            await page.evaluate("localStorage.getItem('hookline.session')")
        )
        await page.go_back()
        assert TOKEN not in page.url


LONG = (
    "# "
    + "Wide" * 60
    + "\n\n```\n"
    + "x" * 400
    + "\n```\n\n|"
    + " a |" * 30
    + "\n|"
    + "---|" * 30
    + "\n"
)


async def test_it_fits_a_phone(tmp_path, chromium):
    turns = [
        LONG,
        Turn(tool_calls=[Call("write_file", {"path": "a" * 200, "content": "y" * 300})]),
        "Done.",
    ]
    async with serving(tmp_path, ScriptedModel(turns)) as house:
        page = await opened(chromium, house, viewport=PHONE, has_touch=True, is_mobile=True)

        async def check():
            wide = "document.documentElement.scrollWidth, document.getElementById('log').scrollWidth"
            assert await page.evaluate(f"[{wide}]") == [390, 390]
            small = await page.eval_on_selector_all(
                "button, summary, textarea, nav a",
                """all => all.filter(e => e.checkVisibility({ visibilityProperty: true }))
                    .map(e => [e.id || e.textContent, e.getBoundingClientRect()])
                    .filter(([, box]) => box.width < 44 || box.height < 44).map(([name]) => name)""",
            )
            assert small == []

        await check()
        await page.fill("#composer-text", "First line")
        await page.press("#composer-text", "Enter")  # a new line: a phone has no Shift+Enter
        assert await page.input_value("#composer-text") == "First line\n"
        await page.tap("#send")
        await page.wait_for_selector(".answer .table")
        await check()
        await say(page, "Write.")
        await page.wait_for_selector(".approval")
        await check()
        box = await page.locator(".approval .buttons").bounding_box()
        assert box["y"] + box["height"] < PHONE["height"]
        await page.tap("text=Reject")
        await page.wait_for_selector("text=Done.")
        assert not await page.is_visible("#new-session")
        await page.tap("#menu")
        await page.wait_for_selector("#new-session")
        await check()
        await page.tap("#new-session")
        await page.wait_for_selector("#sessions", state="hidden")
        await page.wait_for_selector(".welcome")


async def test_everything_can_be_done_by_keyboard(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel([Turn(tool_calls=[WRITE]), "Done."])) as house:
        page = await opened(chromium, house)
        keys = page.keyboard
        await keys.press("Tab")
        assert await page.evaluate("document.activeElement.id") == "skip"
        await keys.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "composer-text"
        await keys.type("one")
        await keys.press("Shift+Enter")
        await keys.type("two")
        await keys.press("Enter")
        await page.wait_for_selector(".approval .primary:enabled")
        assert await page.evaluate("document.activeElement.id") == "composer-text"  # not taken away
        for _ in range(20):
            if await page.evaluate("document.activeElement.textContent") == "Approve once":
                break
            await keys.press("Shift+Tab")
        await keys.press("Enter")
        await page.wait_for_selector("text=Done.")
        assert await page.evaluate("document.activeElement.id") == "composer-text"
        assert await page.inner_text(".person") == "one\ntwo"
        await page.focus(".tool summary")
        await keys.press("Enter")
        await page.wait_for_selector(".tool-body .code")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_fault(tmp_path, chromium, scheme):
    read = Turn(reasoning="Hm.", text="I look.", tool_calls=[Call("list_files", {"path": "."})])
    text = (
        "## A\n\ntext `code` [link](https://a.org)\n\n> q\n\n| a |\n|---|\n| 1 |\n\n"
        "- [x] b\n\n```py\nx\n```\n"
    )
    turns = [read, text, Turn(tool_calls=[WRITE]), "Done."]
    async with serving(tmp_path, ScriptedModel(turns)) as house:
        page = await opened(chromium, house, color_scheme=scheme, reduced_motion="reduce")

        async def check():
            assert await serious_faults(page) == []

        await check()
        await say(page, "One.")
        await page.wait_for_selector("text=link")
        await idle(page)
        await page.click(".tool summary")
        await page.click(".reasoning summary")
        await check()
        await say(page, "Two.")
        await page.wait_for_selector(".approval")
        await check()
        await page.set_viewport_size(PHONE)
        await page.click("#menu")
        await page.wait_for_selector("#new-session")
        await check()
        await page.keyboard.press("Escape")
        await page.click("text=Approve once")
        await page.wait_for_selector("text=Done.")
        await house.stop()
        await page.wait_for_selector("#banner:not([hidden])")
        await check()


async def test_a_long_conversation_is_shown_from_its_end(tmp_path, chromium):
    model = ScriptedModel(["An answer of some *length*, on two\n\nlines."], repeat=True)
    async with serving(tmp_path, model) as house:
        for number in range(150):
            said = {
                "content": f"Question {number}.",
                "session_id": "web:long",
                "channel": "web",
                "chat_id": "web:long",
            }
            await house.app.process(said)
        page = await opened(chromium, house, "#session=web:long")
        await page.wait_for_selector("text=Question 149.")
        assert await page.locator(".turn").count() == 60
        end = "(log.scrollHeight - log.scrollTop - log.clientHeight) < 4"
        await true(page, end)
        while await page.is_visible("text=Show earlier messages"):
            await page.click("text=Show earlier messages")
        assert await page.locator(".turn").count() == 300
        assert await page.text_content(".person >> nth=0") == "Question 0."
        await page.click("#latest")
        await true(page, end)
        await page.evaluate("log.scrollTop = 0")
        await page.wait_for_selector("#latest")
        await say(page, "One more.")
        await page.wait_for_selector("text=One more.")
        await true(page, end)
