"""The Telegram channel: the real library against a Bot API on loopback, through the real gateway."""

import asyncio
import logging
from contextlib import asynccontextmanager
from importlib.util import find_spec

import pytest

from hookline.errors import GatewayError
from hookline.events import MessageReceiveResult, ToolCallEventResult
from hookline.ext.telegram.settings import TelegramSettings
from hookline.ext.voice import Voice
from hookline.hooks import hookimpl
from hookline.models import ScriptedModel
from hookline.models.script import Fault, Turn
from hookline.policy import Policy
from hookline.runtime.app import Hookline
from hookline.serve import Gateway, GatewaySettings
from hookline.types import AsyncStreamEvents, AudioPart, ImagePart, StreamEvent

from .botapi import ADA, EVE, TOKEN, BotApi
from .test_questions import asking

pytestmark = pytest.mark.slow

SHELL = {"name": "shell", "arguments": {"command": "echo once >> ran.txt"}}


@pytest.fixture
async def telegram():
    async with BotApi().serving() as api:
        yield api


@pytest.fixture
def bot(app, telegram):
    """Runs the app's gateway with the channel; settings are those of `[channels.telegram]`."""

    @asynccontextmanager
    async def run(app=app, **settings):
        configure(app, telegram, **settings)
        gateway = Gateway(app, enabled=["telegram"])
        async with gateway.running():
            yield gateway

    return run


def configure(app, telegram, **settings):
    given = {
        "token": TOKEN,
        "api": telegram.url,
        "allow": [ADA],
        "edit_seconds": 0.0,
        "poll_seconds": 1,
        "timeout": 5.0,
        **settings,
    }
    lines = [f"{name} = {value!r}".replace("True", "true") for name, value in given.items()]
    lines = [line.replace("False", "false") for line in lines]
    app.home.mkdir(parents=True, exist_ok=True)
    (app.home / "config.toml").write_text("\n".join(["[channels.telegram]", *lines]))
    app.config.reload()


async def test_a_message_is_answered_where_it_was_said(bot, telegram, scripted, app):
    scripted("Hello **Ada** & <co>.")
    envelopes = []
    app.hooks.register("message:receive", lambda event: envelopes.append(event))
    async with bot():
        await telegram.say("hi")
        await telegram.until_said("Hello Ada & <co>.")
        assert telegram.texts() == ["Hello Ada & <co>."]
        (said,) = telegram.messages.values()
        assert said["html"] == "Hello <b>Ada</b> &amp; &lt;co&gt;."
    assert [(e.channel_id, e.chat_id, e.user_id, e.text) for e in envelopes] == [
        ("telegram", str(ADA), str(ADA), "hi")
    ]


class Slow:
    """A plugin whose answer goes on when it is told to."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.goes_on = asyncio.Event()

    @hookimpl
    def run_model_stream(self, prompt, session_id, state):
        async def events():
            for piece in self.pieces:
                yield StreamEvent("text", {"delta": piece})
                await self.goes_on.wait()

        return AsyncStreamEvents(events())


async def test_an_answer_is_shown_while_it_comes_by_edits_of_one_message(bot, telegram, app):
    slow = Slow("The first half, ", "and the second.")
    app.hooks.add(slow)
    async with bot():
        await telegram.say("tell me")
        await telegram.until_said("The first half,")
        slow.goes_on.set()
        await telegram.until_said("and the second.")
        (said,) = telegram.messages.values()
        assert said["shown"] == ["The first half,", "The first half, and the second."]
        assert telegram.of("sendChatAction")[0]["action"] == "typing"


async def test_without_streaming_an_answer_comes_in_one_message(bot, telegram, scripted):
    scripted(Turn(text="All of it at once.", chunk=3, delay=0.02))
    async with bot(stream=False):
        await telegram.say("tell me")
        await telegram.until_said("All of it")
    assert [m["shown"] for m in telegram.messages.values()] == [["All of it at once."]]


async def test_a_long_answer_is_split_at_paragraphs_and_nothing_of_it_is_lost(bot, telegram, scripted):
    paragraphs = [f"{number} " + "word 😀 " * 100 for number in range(20)]
    scripted(Turn(text="\n\n".join(paragraphs), chunk=500))
    async with bot():
        await telegram.say("much, please")
        await telegram.until_said("19 word")
        await telegram.until(lambda: telegram.texts()[-1].strip().endswith("😀"))
        texts = telegram.texts()
    assert len(texts) > 3
    assert [p.strip() for text in texts for p in text.split("\n\n")] == [p.strip() for p in paragraphs]


async def test_what_was_said_before_a_tool_call_stays_as_a_message(bot, telegram, scripted, app):
    scripted(Turn(text="I look.", tool_calls=[SHELL]), Turn(text="Done."))
    async with bot():
        await telegram.say("go")
        await telegram.until_said("Done.")
        assert telegram.texts() == ["I look.", "Done."]
    assert (app.workspace / "ran.txt").read_text() == "once\n"


@pytest.mark.parametrize(
    ("button", "ran", "outcome"),
    [
        ("Approve once", True, "approved"),
        ("Reject", False, "rejected"),
        ("Approve for this session", True, "approved for this session"),
    ],
)
async def test_an_approval_is_asked_with_buttons(bot, telegram, scripted, app, button, ran, outcome):
    scripted(Turn(tool_calls=[SHELL]), Turn(text="That is that."))
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="run <it>?"))
    async with bot():
        await telegram.say("go")
        await telegram.until_said("run <it>?")
        assert "echo once" in telegram.texts()[0]
        assert (await telegram.press(button)).lower() == outcome
        await telegram.until_said("That is that.")
        await telegram.until(lambda: telegram.texts()[0].endswith(outcome))
        assert not any("buttons" in message for message in telegram.messages.values())
    assert (app.workspace / "ran.txt").exists() is ran


@pytest.mark.parametrize(("size", "comes_as"), [(6_000, "messages"), (60_000, "a file")])
async def test_a_long_call_comes_whole_and_its_buttons_last(
    bot, telegram, scripted, app, size, comes_as
):
    command = f"echo once >> ran.txt # {'x' * size} THE END"
    call = {"name": "shell", "arguments": {"command": command}}
    scripted(Turn(tool_calls=[call]), Turn(text="That is that."))
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="run it?"))
    async with bot():
        await telegram.say("go")
        await telegram.until(lambda: any("buttons" in m for m in telegram.messages.values()))
        *before, last = [m for m in telegram.messages.values() if m["chat"]["id"] == ADA]
        assert "buttons" in last
        assert not any("buttons" in message for message in before)
        if comes_as == "messages":
            shown = "".join(m["text"].rpartition("\n")[0] for m in before)
            assert command in shown
            assert telegram.of("sendDocument") == []
        else:
            assert before == []
            methods = [method for method, _ in telegram.calls if method.startswith("send")]
            assert methods.index("sendDocument") < methods.index("sendMessage")
            (sent,) = telegram.of("sendDocument")
            assert command.encode() in sent["document"]
        await telegram.press("Approve once")
        await telegram.until_said("That is that.")
        (grant,) = app.approvals.list(everything=True)
    assert grant.by == f"telegram:{ADA}"
    assert (app.workspace / "ran.txt").exists()


async def test_a_call_that_cannot_be_shown_whole_cannot_be_approved(bot, telegram, scripted, app):
    call = {"name": "shell", "arguments": {"command": f"echo once >> ran.txt # {'x' * 60_000}"}}
    scripted(Turn(tool_calls=[call]), Turn(text="That is that."))
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="run it?"))

    telegram.faults["sendDocument"].append(400)
    async with bot():
        await telegram.say("go")
        await telegram.until_said("That is that.")
        assert not any("buttons" in message for message in telegram.messages.values())
    assert not (app.workspace / "ran.txt").exists()


async def test_only_the_one_who_asked_can_approve(bot, telegram, scripted, app):
    scripted(Turn(tool_calls=[SHELL]), Turn(text="That is that."))
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="run it?"))
    async with bot(allow=[ADA, 8]):
        await telegram.say("go")
        await telegram.until(lambda: any("buttons" in m for m in telegram.messages.values()))
        assert "Only the person" in await telegram.press("Approve once", person=8)
        assert not (app.workspace / "ran.txt").exists()
        question = next(m for m in telegram.messages.values() if "buttons" in m)
        await telegram.press("Reject")
        await telegram.until_said("That is that.")
        question["buttons"] = {"Approve once": f"0:{'0' * 32}"}
        assert "any more" in await telegram.press("Approve once")
    assert not (app.workspace / "ran.txt").exists()


async def test_somebody_unknown_is_refused_once_and_reaches_nobody(bot, telegram, scripted, fired):
    model = scripted("Hello.")
    async with bot():
        await telegram.say("let me in", person=EVE)
        await telegram.say("please", person=EVE)
        await telegram.say("in a group", person=EVE, chat=-100)
        await telegram.say("hi")
        await telegram.until_said("Hello.")
    assert telegram.texts(EVE) == [f"This agent talks only with people it knows. Your id is {EVE}."]
    assert telegram.texts(-100) == []
    assert fired.count("message:receive") == 1
    assert len(model.requests) == 1


async def test_somebody_unknown_hears_nothing_where_that_was_set(bot, telegram, scripted):
    scripted("Hello.")
    async with bot(refuse=False):
        await telegram.say("let me in", person=EVE)
        await telegram.say("hi")
        await telegram.until_said("Hello.")
    assert telegram.texts(EVE) == []


async def test_a_group_that_is_allowed_is_a_session_of_its_own(bot, telegram, scripted, app):
    scripted("Hello all.")
    async with bot(allow=[-100]):
        await telegram.say("@hook_bot hi", person=EVE, chat=-100)
        await telegram.until_said("Hello all.", -100)
        await telegram.say("/help@other_bot", person=EVE, chat=-100)
        await telegram.say("/help@hook_bot", person=EVE, chat=-100)
        await telegram.until_said("/cancel", -100)
        assert [info.id for info in await app.sessions.list()] == ["telegram:-100"]
    assert len(telegram.texts(-100)) == 2


async def test_a_picture_goes_to_the_model_with_its_caption(bot, telegram, scripted, app):
    seen = []

    def look(event):
        seen.extend(event.parts)

    app.hooks.register("message:receive", look)
    scripted("A cat.")
    telegram.files = {"small": b"no", "large": b"\xff\xd8jpeg"}
    photo = [
        {"file_id": n, "file_unique_id": n, "width": 1, "height": 1, "file_size": 6}
        for n in telegram.files
    ]
    async with bot():
        await telegram.say(photo=photo, caption="what is this?")
        await telegram.until_said("A cat.")
    assert seen[0].text == "what is this?"
    assert seen[1] == ImagePart(b"\xff\xd8jpeg", "image/jpeg")


async def test_what_cannot_be_read_is_told(bot, telegram, scripted):
    scripted("unused")
    sound = {"file_id": "a", "file_unique_id": "a", "duration": 1, "file_size": 30_000_000}
    async with bot():
        await telegram.say(location={"latitude": 1.0, "longitude": 2.0})
        await telegram.until_said("but not this")
        await telegram.say(voice=sound)
        await telegram.until_said("too large")


async def test_commands_are_carried_out_and_cancel_stops_the_turn(bot, telegram, scripted, app):
    cancelled = []
    app.hooks.register("message:cancel", cancelled.append)
    scripted(Turn(text="never", wait=600))
    async with bot() as gateway:
        await telegram.say("/start")
        await telegram.until_said("Hello. Write to me")
        await telegram.say("go")
        await telegram.until(lambda: gateway.app.sessions.runs)
        await telegram.say("/cancel")
        await telegram.until_said("stopped")
    assert [event.chat_id for event in cancelled] == [str(ADA)]
    assert telegram.texts()[-1] == "stopped"


async def test_a_rejection_and_a_failure_are_told(bot, telegram, scripted, app):
    scripted(Turn(error=Fault("the model is ill")))

    def judge(event):
        return (
            MessageReceiveResult(action="reject", reason="closed today") if event.text == "a" else None
        )

    app.hooks.register("message:receive", judge)
    async with bot():
        await telegram.say("a")
        await telegram.until_said("closed today")
        await telegram.say("b")
        await telegram.until_said("the model is ill")


# --- limits and outages ---------------------------------------------------------------------------


async def test_a_limit_is_waited_out_and_the_answer_comes_once(bot, telegram, scripted):
    scripted("Here.")
    telegram.faults["sendMessage"] = [(429, 1), 500, "disconnect"]
    loop = asyncio.get_running_loop()
    async with bot(stream=False):
        await telegram.say("hi")
        await telegram.until(lambda: telegram.of("sendMessage failed"))
        limited = loop.time()
        await telegram.until_said("Here.")
        assert loop.time() - limited >= 0.9
    assert telegram.texts() == ["Here."]
    assert len(telegram.of("sendMessage failed")) == 3


async def test_a_request_that_hangs_is_made_again(bot, telegram, scripted):
    scripted("Here.")
    telegram.faults["sendMessage"] = ["hang"]
    async with bot(stream=False, timeout=0.3):
        await telegram.say("hi")
        await telegram.until_said("Here.")


async def test_a_limit_on_edits_only_delays_them(bot, telegram, app):
    slow = Slow("One, ", "two.")
    app.hooks.add(slow)
    telegram.faults["sendMessage"] = [(429, 1)]
    async with bot():
        await telegram.say("count")
        await telegram.until(lambda: telegram.of("sendMessage failed"))
        slow.goes_on.set()
        await telegram.until_said("One, two.")
    assert telegram.texts() == ["One, two."]


async def test_an_answer_whose_message_was_deleted_is_sent_anew(bot, telegram, app):
    slow = Slow("One, ", "two.")
    app.hooks.add(slow)
    async with bot():
        await telegram.say("count")
        await telegram.until_said("One,")
        telegram.messages.clear()
        slow.goes_on.set()
        await telegram.until_said("One, two.")


async def test_a_button_is_heard_while_further_messages_wait(telegram, scripted, app):
    scripted(Turn(tool_calls=[SHELL]), "First.", "Second.")
    app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="run it?"))
    configure(app, telegram)
    settings = GatewaySettings(in_flight=1)
    async with Gateway(app, enabled=["telegram"], settings=settings).running():
        await telegram.say("go")
        await telegram.until_said("run it?")
        await telegram.say("and then")  # there is no room for it
        await telegram.press("Approve once")
        await telegram.until_said("Second.")
    assert [text for text in telegram.texts() if "run it" not in text] == ["First.", "Second."]


async def test_polling_outlasts_failures_and_a_server_that_is_gone(app, scripted, telegram, bot):
    scripted("One.", "Two.")
    telegram.faults["getUpdates"] = [500, "disconnect", (429, 1), 409]
    async with bot():
        await telegram.say("1")
        await telegram.until_said("One.")
    assert telegram.texts() == ["One."]


async def test_the_gateway_starts_while_telegram_is_away_and_answers_when_it_is_back(app, scripted):
    scripted("Back.")
    api = BotApi()
    async with api.serving():
        configure(app, api)
        port = api.port
    gateway = Gateway(app, enabled=["telegram"])
    async with gateway.running():
        assert gateway.ready
        async with api.serving(port):
            await api.say("hi")
            await api.until_said("Back.")


async def test_a_token_that_telegram_does_not_know_stops_the_start_and_is_not_shown(bot, app, scripted):
    scripted("unused")
    with pytest.raises(GatewayError, match="does not know the token") as caught:
        async with bot(token="4242:wrong-SECRET"):
            pass
    assert "wrong-SECRET" not in str(caught.value)


async def test_the_token_is_in_no_log(bot, telegram, scripted, caplog):
    caplog.set_level(logging.DEBUG)
    scripted("Hello.")
    telegram.faults["sendMessage"] = [500]
    async with bot():
        await telegram.say("hi")
        await telegram.until_said("Hello.")
    assert "sendMessage" in caplog.text
    assert TOKEN not in caplog.text


# --- nothing lost, nothing twice ------------------------------------------------------------------


def another(app, *turns):
    """The app of a process that starts after the first one."""
    made = Hookline(home=app.home, workspace=app.workspace, policy=Policy(default="allow"))
    made.load_hooks(packages=False)
    model = ScriptedModel(turns)
    made.models.add(model)
    made.model = model.name
    return made, model


async def test_an_update_is_acknowledged_only_after_it_was_accepted(bot, telegram, scripted, app):
    class Full(Exception):
        pass

    scripted("Finally.")
    async with bot() as gateway:
        accept, tries = gateway.intake.accept, []

        async def once_full(message):
            tries.append(telegram.confirmed)
            if len(tries) == 1:
                raise Full("no space left")
            return await accept(message)

        gateway.intake.accept = once_full
        name = await telegram.say("hi")
        await telegram.until_said("Finally.")
        await telegram.until(lambda: telegram.confirmed >= name)
    assert max(tries) < name
    assert telegram.delivered.count(name) >= 2


async def test_an_update_that_comes_twice_makes_one_turn(bot, telegram, scripted):
    model = scripted("Once.", "Next.", "unused")
    async with bot():
        message = telegram.message("hi")
        await telegram.push(message=message)
        await telegram.until_said("Once.")
        await telegram.push(message=message)
        await telegram.say("more")
        await telegram.until_said("Next.")
    assert len(model.requests) == 2
    assert telegram.texts() == ["Once.", "Next."]


async def test_what_waits_at_a_restart_is_answered_once_after_it(bot, telegram, scripted, app):
    scripted(Turn(text="never", wait=600))
    configure(app, telegram)
    with (app.home / "config.toml").open("a") as file:
        file.write("\n[gateway]\ndrain = 0.1\n")
    app.config.reload()
    gateway = Gateway(app, enabled=["telegram"])
    async with gateway.running():
        first = await telegram.say("one")
        await telegram.until(lambda: gateway.app.sessions.runs)
        second = await telegram.say("two")
        await telegram.until(lambda: telegram.confirmed >= second > first)
    before = len(telegram.texts())
    await telegram.say("three")
    again, model = another(app, "Answer 1.", "Answer 2.", "Answer 3.", "unused")
    async with Gateway(again, enabled=["telegram"]).running():
        await telegram.until_said("Answer 3.")
    assert telegram.texts()[before:] == ["Answer 1.", "Answer 2.", "Answer 3."]
    assert len(model.requests) == 3


# --- webhook --------------------------------------------------------------------------------------


async def test_the_webhook_takes_calls_with_the_secret_only(served, app, telegram, scripted):
    model = scripted("By webhook.", "unused")
    configure(app, telegram, mode="webhook", webhook_url="https://agent.example/")
    update = {"update_id": 5, "message": telegram.message("hi")}
    async with served(enabled=["telegram"], headers={}) as house:
        await telegram.until(lambda: telegram.of("setWebhook"))
        (hook,) = telegram.of("setWebhook")
        assert hook["url"] == "https://agent.example/telegram/webhook"
        at, secret = f"{house.url}telegram/webhook", hook["secret_token"]

        async def call(given, headers, **body):
            async with house.http.post(at, headers=headers, **(body or {"json": given})) as response:
                return response.status

        right = {"X-Telegram-Bot-Api-Secret-Token": secret}
        assert await call(update, {}) == 401
        assert await call(update, {"X-Telegram-Bot-Api-Secret-Token": "wrong"}) == 401
        assert await call({"nonsense": 1}, right) == 400
        assert await call(None, right, data=b"{nonsense") == 400
        assert await call(update, right) == 200
        assert await call(update, right) == 200
        await telegram.until_said("By webhook.")
    assert telegram.texts() == ["By webhook."]
    assert len(model.requests) == 1
    assert telegram.of("getUpdates") == []


async def test_there_is_no_webhook_where_messages_are_polled(served, app, telegram, scripted):
    configure(app, telegram)
    async with served(enabled=["telegram", "web"]) as house:
        response = await house.http.post(f"{house.url}telegram/webhook", json={})
        assert response.status in (404, 405)


# --- voice ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not find_spec("moonshine_voice"), reason="needs hookline[voice]")
async def test_a_voice_message_is_understood_and_answered_by_voice(bot, telegram, scripted, app):
    from hookline.ext.voice.formats import OGG, format_of

    model = scripted("The lights are on.")
    async with bot():
        spoken = await Voice.of(app).say("turn on the kitchen lights", form="ogg")
        telegram.files["v1"] = spoken.data
        sound = {"file_id": "v1", "file_unique_id": "v1", "duration": 2, "mime_type": "audio/ogg"}
        await telegram.say(voice=sound)
        await telegram.until(lambda: telegram.of("sendVoice"))
    assert "kitchen" in str(model.requests[0].messages[-1]).lower()
    assert telegram.texts() == ["The lights are on."]
    answer = telegram.of("sendVoice")[0]["voice"]
    assert format_of(answer) is OGG
    assert b"OpusHead" in answer


async def test_sound_that_telegram_cannot_play_is_sent_as_a_file(bot, telegram, scripted, app):
    from hookline.events import MessageSendResult

    scripted("Listen.")
    sound = AudioPart(b"no sound at all", "audio/x-odd")
    app.hooks.register("message:send", lambda event: MessageSendResult(parts=[sound]))
    async with bot():
        await telegram.say("sing")
        await telegram.until(lambda: telegram.of("sendDocument"))
    assert telegram.of("sendDocument")[0]["document"] == b"no sound at all"


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "is missing"),
        ({"token": "abc"}, "no bot's token"),
        ({"token": TOKEN, "mode": "webhook"}, "webhook_url"),
        ({"token": TOKEN, "secret": "a b"}, "letters, digits"),
        ({"token": TOKEN, "api": "somewhere"}, "must be an address"),
        ({"token": TOKEN, "allow": ["ada"]}, "allow"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, said):
    with pytest.raises(ValueError, match=said) as caught:
        TelegramSettings.model_validate(given)
    assert TOKEN not in str(caught.value)


class TestQuestionsOfHooks:
    async def test_a_note_is_a_message_and_a_choice_a_button(
        self,
        bot,
        telegram,
        scripted,
        app,
    ):
        scripted("Hello.")
        answers = asking(app, "yes", "<no>")
        async with bot():
            await telegram.say("hi")
            await telegram.until_said("Proceed?")
            await telegram.until_said("x\\u202e")
            assert "Only the person" in await telegram.press("<no>", person=8)
            assert await telegram.press("<no>") == "<no>"
            await telegram.until(lambda: answers)
            await telegram.until(lambda: any(t.endswith("<no>") for t in telegram.texts()))
        assert answers == ["<no>"]

    async def test_any_text_is_answered_by_a_reply(self, bot, telegram, scripted, app):
        scripted("Hello.", "Again.")
        answers = asking(app)
        async with bot():
            await telegram.say("hi")
            await telegram.until_said("Proceed?")
            await telegram.until(lambda: any("reply" in m for m in telegram.messages.values()))
            shown = next(m for m in telegram.messages.values() if "reply" in m)
            told = {k: v for k, v in shown.items() if k not in ("reply", "shown", "html")}
            await telegram.say("in Paris", reply_to_message=told)
            await telegram.until(lambda: answers)
        assert answers == ["in Paris"]


async def test_a_turn_that_nobody_sent_asks_the_people_of_its_session(bot, telegram, scripted, app):
    """A plugin starts a turn in the session of a Telegram chat."""
    scripted("Hello.")
    answers = asking(app, "yes", "no", default="no")
    async with bot():
        turn = asyncio.create_task(
            app.process({"content": "a file changed", "session_id": f"telegram:{ADA}"})
        )
        await telegram.until_said("Proceed?")
        await telegram.press("yes")
        await turn
        await telegram.until_said("Hello.")
    assert answers == ["yes"]
    assert "x\\u202e" in telegram.texts()
