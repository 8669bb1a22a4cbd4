"""The inspector's page, driven by Chromium against a running gateway."""

import asyncio
import re
from urllib.parse import quote

import pytest
import pytest_asyncio

from hookline.events import ToolCallEvent, ToolCallEventResult
from hookline.models import Call, ScriptedModel, Turn
from hookline.testing.channel import RecordingChannel

from ..gateway.page import CHROMIUM, MISSING, TOKEN, Held, browser, serious_faults, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
    pytest.mark.asyncio(loop_scope="module"),  # one browser for all
]

PHONE = {"width": 390, "height": 844}
READ = Turn(text="I look.", tool_calls=[Call("read_file", {"path": "notes.txt"})])
SHELL = Turn(tool_calls=[Call("shell", {"command": "rm -rf build"})])
SESSION = "web:test"
ADDRESS = f"#/session/{quote(SESSION, safe='')}"


def careful(event: ToolCallEvent):
    if event.tool_name == "shell":
        return ToolCallEventResult(block=True, reason="no commands in this project")
    if event.tool_name == "read_file":
        return ToolCallEventResult(input={"path": "other.txt"})
    return None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium():
    async with browser() as found:
        yield found


async def shown(chromium, house, fragment="", script="", token=TOKEN, **options):
    """The page, with what goes wrong in it and every address that it asks for."""
    context = await chromium.new_context(**options)
    page = await context.new_page()
    page.set_default_timeout(20_000)
    kept = f"sessionStorage.setItem('hookline.token', '{token}');" if token else ""
    await page.add_init_script(kept + script)
    page.problems, page.asked = [], []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.on(
        "console",
        lambda said: page.problems.append(said.text) if "Content Security" in said.text else None,
    )
    await page.goto(f"{house.address}inspect{fragment}")
    return page


def traced(folder):
    """A home in which everything is traced."""
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text('[trace]\nlevel = "full"\n')
    return folder


async def worked(house):
    """Two turns: a file is read instead of another one, a command is denied."""
    (house.workspace / "other.txt").write_text("milk")
    house.app.hooks.register("tool_call", careful)
    for said in ("What do I need?", "Tidy up."):
        await house.app.process({"content": said, "session_id": SESSION})


TURNS = [READ, "It says milk.", SHELL, "I may not."]


async def test_a_live_turn_appears_and_ends(tmp_path, chromium):
    go_on = asyncio.Event()
    async with serving(tmp_path, Held("One moment", go_on, " and done.")) as house:
        page = await shown(chromium, house)
        await page.wait_for_selector("text=Nothing was recorded yet")
        envelope = {"content": "Tell me.", "session_id": SESSION}
        turn = asyncio.create_task(house.app.process(envelope))
        await page.click(".row:has-text('Tell me.')")
        await page.click(".row:has-text('Tell me.') >> text=started")
        await page.wait_for_selector(".bars .row:has-text('turn') >> text=running")
        go_on.set()
        await turn
        await page.wait_for_selector(".bars .row:has-text('model turn 0')")
        await page.wait_for_selector(".timeline >> text=completed")
        assert page.problems == []


async def test_a_denied_call_is_explained(tmp_path, chromium):
    async with serving(traced(tmp_path), ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, "#/decisions?decision=deny")
        await page.click("text=shell")
        await page.wait_for_selector("text=It did not run.")
        detail = await page.inner_text(".detail")
        assert "no commands in this project" in detail
        assert "test_page.careful" in detail
        assert f"{__file__}:{careful.__code__.co_firstlineno}" in detail
        assert '"command": "rm -rf build"' in detail
        await page.wait_for_selector(".bars .row[aria-selected=true]:has-text('shell')")
        await page.click(".bars .row:has-text('tool_call')")
        await page.wait_for_selector(".detail >> text=Handlers, in the order")
        assert re.search(r"#/session/.*/turn/2/dispatch/", page.url)
        assert page.problems == []


async def test_a_turn_opens_with_a_sentence_and_its_calls(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, f"{ADDRESS}/turn/2")
        await page.wait_for_selector(".sentence")
        name = f"{__name__.rpartition('.')[2]}.careful"
        assert name in await page.inner_text(".sentence")
        assert (await page.inner_text(".sentence")).startswith("1 tool call: 1 was denied by ")
        call = await page.inner_text(".call")
        assert "rm -rf build" in call
        assert "no commands in this project" in call
        await page.click(".call")
        await page.wait_for_selector("text=It did not run.")
        assert page.problems == []


async def test_a_rewritten_call_shows_what_was_changed_and_a_link_leads_back_to_it(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, f"{ADDRESS}/turn/1")
        await page.click(".bars .row:has-text('read_file')")
        for _ in range(2):  # as it is clicked, and as the address says
            await page.wait_for_selector(".detail .diff")
            assert '-  "path": "notes.txt"' in await page.inner_text(".detail .diff")
            assert '+  "path": "other.txt"' in await page.inner_text(".detail .diff")
            assert re.search(r"#/session/web%3Atest/turn/1/entry/\w+$", page.url)
            await page.goto("about:blank")
            await page.go_back()


async def test_a_tree_is_navigated_with_the_keyboard(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        tape = await house.app.tape(SESSION)
        first = next(entry for entry in await tape.branch() if entry.kind == "message")
        await tape.switch(first.id)
        other = await tape.append("message", {"message": {"role": "user", "content": "Or else?"}})
        await tape.label(other.id, "another way")
        page = await shown(chromium, house, f"{ADDRESS}/tree")
        await page.wait_for_selector(".tree .row:has-text('Or else?') >> text=another way")
        assert await page.is_visible(".tree .row.aside:has-text('It says milk.')")
        await page.focus(".tree")
        await page.keyboard.press("End")
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("Home")
        for _ in range(2):
            await page.keyboard.press("ArrowDown")
        line = await page.inner_text(".tree .row.active[aria-posinset='3']")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".detail article")
        assert "/tree/" in page.url
        said = re.sub(r"^\S+\s+(└ )?", "", line)
        assert said in await page.inner_text(".detail")


STRICT = """
from hookline.events import ToolCallEventResult

def strict(event):
    return ToolCallEventResult(block=True, reason="nothing is read any more")

hooks = [("tool_call", strict)]
"""


async def test_a_replay_is_compared_with_the_original(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel([READ, "It says milk."])) as house:
        (house.workspace / "notes.txt").write_text("milk")
        await house.app.process({"content": "What do I need?", "session_id": SESSION})
        page = await shown(chromium, house, ADDRESS)
        await page.click("text=Compare with a replay")
        await page.click("text=Run the replay")
        await page.wait_for_selector("#compared:has-text('Everything came out as it was')")
        hooks = house.app.home / "profiles" / "default" / "hooks"
        hooks.mkdir(parents=True, exist_ok=True)
        (hooks / "strict.py").write_text(STRICT)
        await page.click("text=Run it again")
        await page.wait_for_selector("#compared:has-text('steps differ')")
        card = await page.inner_text(".card[data-state=different]:has-text('read_file')")
        assert "nothing is read any more" in card
        assert "decision" in card
        before = await page.locator(".steps .card").count()
        await page.check("text=Differences only")
        assert 0 < await page.locator(".steps .card").count() < before
        assert page.problems == []


HOSTILE = '<script>window.ran=1</script><img src=x onerror="window.ran=2">\u202e"><b onclick=x>'


def hostile(event: ToolCallEvent):
    return ToolCallEventResult(block=True, reason=HOSTILE)


async def test_markup_in_what_was_recorded_is_shown_as_text(tmp_path, chromium):
    call = Call("read_file", {"path": HOSTILE}, id='"><script>window.ran=3</script>')
    turns = [Turn(text=HOSTILE, reasoning=HOSTILE, tool_calls=[call]), HOSTILE]
    async with serving(traced(tmp_path), ScriptedModel(turns)) as house:
        house.app.hooks.register("tool_call", hostile)
        house.app.plugins.failed(HOSTILE, HOSTILE, ValueError(HOSTILE))
        session = f"web:{HOSTILE}"
        page = await shown(chromium, house, "#/live?hook=tool_call")
        await page.wait_for_selector("#tail-state:has-text('watching')")
        await house.app.process({"content": HOSTILE, "session_id": session})
        await page.click(".row:has-text('tool_call')")
        screens = ["", "/events", "/tree", "/turn/1"]
        address = f"#/session/{quote(session, safe='')}"
        paths = ["#/sessions", "#/decisions", "#/plugins", *(address + each for each in screens)]
        for path in [None, *paths, "bar"]:
            if path == "bar":
                await page.click(".bars .row:has-text('read_file')")
                await page.wait_for_selector(".detail >> text=It did not run")
            elif path:
                await page.goto(f"{house.address}inspect{path}")
            await page.wait_for_selector("main :text('<script>window.ran=1</script>')")
            names = await page.eval_on_selector_all("main *", "all => all.map(e => e.localName)")
            assert not {"script", "img", "b", "style", "iframe"} & set(names)
            assert await page.evaluate("window.ran") is None
            assert "\u202e" not in await page.text_content("main")
        assert page.problems == []


async def test_the_live_tail_is_filtered(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        page = await shown(chromium, house, "#/live")
        await page.wait_for_selector("#tail-state:has-text('watching')")
        await page.fill("[name=hook]", "tool_call")
        await page.select_option("[name=decision]", "deny")
        async with page.expect_response(lambda response: "decision=deny" in response.url):
            pass
        assert page.url.endswith("#/live?hook=tool_call&decision=deny")
        await worked(house)
        await page.click(".row:has-text('no commands in this project')")
        assert "test_page.careful" in await page.inner_text(".detail")
        assert await page.locator(".left .row").count() == 1


async def test_whether_a_hook_fired_is_one_screen_and_leads_to_where_it_did(tmp_path, chromium):
    async with serving(traced(tmp_path), ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, "#/hooks/tool_call")
        await page.wait_for_selector(".fired :text('Yes, 2 times.')")
        assert "ran 2 times: 1 rewrote, 1 denied" in await page.inner_text(".fired")
        await page.click(".fired li:has-text('deny') a")
        await page.wait_for_selector(".detail >> text=Handlers, in the order")
        assert re.search(r"#/session/.*/turn/2/dispatch/", page.url)
        assert page.problems == []


async def test_a_hook_that_is_not_recorded_says_how_to_record_it(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        house.app.hooks.register("agent_end", lambda: None)
        await worked(house)
        page = await shown(chromium, house, "#/hooks/tool_call")
        await page.wait_for_selector(".fired :text('Yes, 2 times.')")
        await page.goto(f"{house.address}inspect#/hooks/agent_end")
        await page.wait_for_selector(".fired :text('hookline config set trace.level full')")


async def test_two_calls_are_told_apart_and_a_failed_gate_is_shown(tmp_path, chromium):
    both = [Call("shell", {"command": word}) for word in ("echo one", "echo two")]

    def breaks(event):
        raise RuntimeError("out of order")

    async with serving(tmp_path, ScriptedModel([Turn(tool_calls=both), "Done."])) as house:
        house.app.hooks.register("tool_call", breaks)
        answers = RecordingChannel("reject", "reject")
        await house.app.process({"content": "go", "session_id": SESSION}, answers)
        page = await shown(chromium, house, f"{ADDRESS}/turn/1")
        for word in ("echo one", "echo two"):
            await page.wait_for_selector(f".bars .row:has-text('shell'):has-text('{word}')")
        listed = await page.inner_text(".left .row .dim")
        head = await page.inner_text(".timeline .tools > .dim")
        assert listed.endswith(f"· {head}"), "one turn takes one time on one screen"
        await page.goto(f"{house.address}inspect#/decisions")
        await page.wait_for_selector("text=Failed at a gate and let it through")
        for word in ("echo one", "echo two"):
            await page.wait_for_selector(f".card[data-decision=deny]:has-text('{word}')")
        await page.wait_for_selector(".card:has-text('breaks'):has-text('RuntimeError: out of order')")
        assert page.problems == []


async def test_a_session_that_is_not_there_is_said_with_a_way_on(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, "#/session/gone")
        await page.wait_for_selector("main :text('There is no session “gone”.')")
        await page.click("main >> text=All sessions")
        await page.fill("#session-filter", "nothing like it")
        await page.wait_for_selector("text=No session has that")
        assert await page.locator(".list").is_hidden()


async def test_the_keyboard_alone_leads_from_the_sessions_to_what_was_decided(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, viewport={"width": 1280, "height": 720})
        await page.wait_for_selector(".row:has-text('What do I need?')")
        await page.focus(".list")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".list:focus[aria-label=Turns] .row:has-text('Tidy up.')")
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".bars .row:has-text('shell')")
        while await page.locator(".bars:focus").count() == 0:
            await page.keyboard.press("Tab")
        await page.keyboard.press("Home")
        for _ in range(4):  # turn, what was said, model turn, model, shell
            await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        verdict = page.locator("text=It did not run.")
        await verdict.wait_for()
        box = await verdict.bounding_box()
        assert box["y"] + box["height"] < 720  # in sight, under the timeline
        await page.wait_for_selector(".bars .row[aria-selected=true]")
        chosen = await page.locator(".bars .row[aria-selected=true]").bounding_box()
        frame = await page.locator(".bars").bounding_box()
        assert frame["y"] <= chosen["y"] < frame["y"] + frame["height"]


async def test_the_catalogue_shows_who_is_attached_and_keeps_what_was_looked_for(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        house.app.hooks.register("tool_call", careful)
        page = await shown(chromium, house, "#/hooks")
        await page.fill("[type=search]", "tool_")
        await page.click(".catalogue a:has(:text-is('tool_result'))")
        await page.wait_for_selector(".right :text('Nobody.')")
        await page.click(".catalogue a:has(:text-is('tool_call'))")
        await page.wait_for_selector(f".right :text('{__file__}')")
        assert await page.input_value("[type=search]") == "tool_"
        assert page.url.endswith("#/hooks/tool_call")
        await page.check("text=Attached only")
        assert await page.locator(".catalogue a").count() == 1


async def many(app, turns):
    """A session of many events, written as turns write them."""
    tape = await app.tape(SESSION)
    entries = []
    for number in range(turns):
        call = {"id": f"c{number}", "name": "shell", "arguments": {"command": f"ls {number}"}}
        result = {
            "tool_call_id": f"c{number}",
            "name": "shell",
            "content": "ok " * 40,
            "is_error": False,
        }
        said = f"Question {number}: what is in folder {number}?"
        entries += [
            ("turn", {"status": "started", "turn_id": f"t{number}"}),
            ("message", {"message": {"role": "user", "content": said}}),
            ("message", {"message": {"role": "assistant", "content": "", "tool_calls": [call]}}),
            ("tool_call", {**call, "requested": call["arguments"]}),
            ("tool_result", {**result, "ran": True}),
            ("message", {"message": {"role": "assistant", "content": f"Answer {number}."}}),
            ("message", {"message": {"role": "assistant", "content": "Anything else? " * 20}}),
            ("turn", {"status": "completed", "turn_id": f"t{number}"}),
        ]
    await tape.append_many(entries)
    return len(entries)


USABLE = """new MutationObserver((_, observer) => {
  if (!document.querySelector('.list .row .name')) return;
  observer.disconnect();
  requestAnimationFrame(() => (window.usable = performance.now()));
}).observe(document, {childList: true, subtree: true})"""
SCROLL = """async () => {
  const list = document.querySelector('.list');
  const frames = [];
  let before = performance.now();
  for (let top = 0; top < list.scrollHeight; top += list.scrollHeight / 90) {
    list.scrollTop = top;
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - before);
    before = performance.now();
  }
  return frames.sort((a, b) => a - b);
}"""


async def test_ten_thousand_events_are_scrolled_with_few_rows_on_the_page(tmp_path, chromium, capsys):
    async with serving(tmp_path, ScriptedModel(["Hello."])) as house:
        total = await many(house.app, 1250)
        assert total == 10_000
        page = await shown(chromium, house, f"{ADDRESS}/events", USABLE)
        await page.wait_for_selector(".list .row:has-text('Question 0')")
        usable = await page.evaluate("window.usable")
        assert await page.get_attribute(".list", "data-total") == str(total)
        frames = await page.evaluate(SCROLL)
        with capsys.disabled():
            worst, middle = frames[int(len(frames) * 0.95)], frames[len(frames) // 2]
            print(
                f"\n10,000 events: usable in {usable:.0f} ms, "
                f"a frame in {middle:.0f} ms (95 %: {worst:.0f} ms)"
            )
        await page.focus(".list")
        await page.keyboard.press("End")
        await page.wait_for_selector(f".list .row[aria-posinset='{total}']:has-text('completed')")
        assert await page.locator(".list .row").count() < 100
        await page.keyboard.press("Enter")
        await page.wait_for_selector("text=Turn 1250 of 1250")
        assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_fault(tmp_path, chromium, scheme):
    async with serving(traced(tmp_path), ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, color_scheme=scheme, reduced_motion="reduce")
        seen = {
            "#/sessions": ".row:has-text('What do I need?')",
            f"{ADDRESS}/turn/2": ".bars .row:has-text('shell')",
            f"{ADDRESS}/events": ".row:has-text('tool_call')",
            f"{ADDRESS}/tree": ".tree .row",
            "#/decisions": ".card:has-text('shell')",
            "#/hooks/tool_call": ".right :text('Attached, in run order')",
            "#/plugins": ".card:has-text('builtin')",
            "#/live": "#tail-state:has-text('watching')",
        }
        for path, selector in seen.items():
            await page.goto(f"{house.address}inspect{path}")
            await page.wait_for_selector(selector)
            if path.endswith("/turn/2"):
                await page.click(selector)
                await page.wait_for_selector(".detail article")
            assert (path, await serious_faults(page)) == (path, [])
        await page.goto(f"{house.address}inspect#/compare/{quote(SESSION, safe='')}")
        await page.click("text=Run the replay")
        await page.wait_for_selector("#compared")
        assert await serious_faults(page) == []


async def test_it_fits_a_phone_and_no_request_leaves_the_machine(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, viewport=PHONE, has_touch=True)
        await page.tap(".row:has-text('What do I need?')")
        await page.tap(".row:has-text('Tidy up.')")
        await page.tap(".bars .row:has-text('shell')")
        await page.wait_for_selector("text=It did not run.")
        for path in ("#/sessions", "#/live", "#/decisions", "#/hooks", "#/plugins", f"{ADDRESS}/tree"):
            width = await page.evaluate("document.scrollingElement.scrollWidth")
            assert width <= PHONE["width"]
            await page.goto(f"{house.address}inspect{path}")
            await page.wait_for_selector("main > *")
        assert {url.split("/inspect")[0] + "/" for url in page.asked} == {house.address}
        assert page.problems == []


async def test_a_token_is_asked_for_once_unless_the_link_has_it(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(TURNS)) as house:
        await worked(house)
        page = await shown(chromium, house, token="")
        await page.wait_for_selector("text=hookline gateway --print-token")
        await page.fill("#token", "wrong")
        await page.click("text=Enter")
        await page.wait_for_selector("text=the token is wrong")
        await page.fill("#token", TOKEN)
        await page.click("text=Enter")
        await page.wait_for_selector(".row:has-text('What do I need?')")
        await page.reload()
        await page.wait_for_selector(".row:has-text('What do I need?')")
        linked = await shown(chromium, house, f"#token={TOKEN}", token="")
        await linked.wait_for_selector(".row:has-text('What do I need?')")
        assert TOKEN not in linked.url


async def wait(answered):
    await answered.wait()
    return "reject"


async def test_a_question_that_waits_is_seen(tmp_path, chromium):
    write = Turn(tool_calls=[Call("write_file", {"path": "notes.txt", "content": "milk\n"})])
    async with serving(tmp_path, ScriptedModel([write, "Done."])) as house:
        answered = asyncio.Event()
        house.app.hooks.register("resolve_approval", lambda request: wait(answered), tryfirst=True)
        envelope = {
            "content": "Note milk.",
            "session_id": SESSION,
            "channel": "web",
            "chat_id": SESSION,
        }
        turn = asyncio.create_task(house.app.process(envelope))
        while not house.app.approvals.pending():
            await asyncio.sleep(0.01)
        page = await shown(chromium, house, "#/decisions")
        await page.wait_for_selector("text=Waiting for a person")
        assert "+milk" in await page.inner_text(".card.waiting")
        answered.set()
        await turn
        await page.wait_for_selector(".card[data-decision=deny]")


@pytest.mark.parametrize(("label", "outcome"), [("Approve once", "ask"), ("Reject", "deny")])
async def test_a_question_is_answered_here(tmp_path, chromium, label, outcome):
    write = Turn(tool_calls=[Call("write_file", {"path": "notes.txt", "content": "milk\n"})])
    async with serving(tmp_path, ScriptedModel([write, "Done."])) as house:
        envelope = {
            "content": "Note milk.",
            "session_id": SESSION,
            "channel": "web",
            "chat_id": SESSION,
        }
        turn = asyncio.create_task(
            house.app.process(envelope, house.gateway.channels["web"].reply_to(envelope))
        )
        page = await shown(chromium, house, "#/decisions")
        await page.click(f".answers >> text={label}")
        await turn
        await page.wait_for_selector(f".card[data-decision={outcome}]")
        assert (house.workspace / "notes.txt").exists() is (outcome == "ask")
        assert page.problems == []
