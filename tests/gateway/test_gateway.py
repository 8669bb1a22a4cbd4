"""The gateway and its channels: what plugins bring, the order of events, what is kept."""

import asyncio

import pytest

from hookline.errors import ConfigError, GatewayError
from hookline.hooks import hookimpl
from hookline.models.script import Fault, Turn
from hookline.runtime.inbox import Inbox
from hookline.serve import Gateway, GatewaySettings, GatewayStopping
from hookline.tape import SQLiteStore
from hookline.types import TextPart

from .mailbox import Letters


class Mailbox(Letters):
    """A channel that is a list."""

    def __init__(self, name="mail"):
        self.name = name
        self.log = []
        self.ended = asyncio.Event()

    async def start(self, handle):
        self.handle = handle
        self.log.append("start")

    async def stop(self):
        self.log.append("stop")

    async def send(self, outbound):
        self.log.append(f"send {outbound['content']}")
        return True

    async def stream(self, inbound, event):
        if event.kind == "text":
            self.log.append(f"stream {event.data['delta']}")

    async def publish(self, inbound, parts):
        self.log.append("publish")

    async def end(self, inbound, result):
        self.log.append(f"end {result.outcome}")
        self.ended.set()

    async def error(self, inbound, message):
        self.log.append(f"error {message}")
        self.ended.set()


class Post:
    """A plugin that provides channels."""

    def __init__(self, *channels):
        self.channels = channels

    @hookimpl
    def provide_channels(self, message_handler):
        return list(self.channels)


def letter(text="hi", **fields):
    return {"content": text, "channel": "mail", "chat_id": "ada", "sender_id": "ada", **fields}


async def test_a_plugins_channel_takes_part_and_every_event_comes_in_order(app, scripted):
    scripted("Dear Ada.")
    box, seen = Mailbox(), []
    app.hooks.add(Post(box))
    for name in (
        "gateway:startup gateway:stop channel:connect channel:disconnect message:receive message:send"
    ).split():
        app.hooks.register(name, lambda event: seen.append(event.type))
    gateway = Gateway(app, enabled=["mail"])
    async with gateway.running():
        assert gateway.ready
        await box.handle(letter())
        await box.ended.wait()
    assert box.log == ["start", "stream Dear Ada.", "send Dear Ada.", "end answered", "stop"]
    assert seen == [
        "channel:connect",
        "gateway:startup",
        "message:receive",
        "message:send",
        "gateway:stop",
        "channel:disconnect",
    ]


async def test_a_message_of_text_parts_alone_reaches_the_agent(app, scripted):
    model = scripted("Dear Ada.")
    box = Mailbox()
    app.hooks.add(Post(box))
    async with Gateway(app, enabled=["mail"]).running():
        parts = [TextPart("One line."), TextPart("Another.")]
        await box.handle({"parts": parts, "channel": "mail", "chat_id": "ada"})
        await box.ended.wait()
    assert model.requests[0].messages[-1]["content"] == "One line.\nAnother."


async def test_what_is_enabled_is_what_was_asked_for_or_everything_that_is_there(app, scripted):
    scripted("hi")
    app.hooks.add(Post(Mailbox()))
    assert list(Gateway(app).channels) == ["web", "openai", "mail"]
    assert list(Gateway(app, enabled=["mail"]).channels) == ["mail"]
    some = GatewaySettings(channels=["stdio", "mail"])
    assert list(Gateway(app, settings=some).channels) == ["stdio", "mail"]
    with pytest.raises(ConfigError, match="did you mean 'mail'"):
        Gateway(app, enabled=["mial"])


async def test_a_channel_that_does_not_start_stops_the_start_and_is_named(app, scripted):
    class Broken(Mailbox):
        async def start(self, handle):
            raise OSError("no such socket")

    good = Mailbox("good")
    app.hooks.add(Post(good, Broken("broken")))
    gateway = Gateway(app, enabled=["good", "broken"])
    with pytest.raises(GatewayError, match=r"'broken' did not start: .*no such socket"):
        async with gateway.running():
            pass
    assert good.log == ["start", "stop"]


async def test_a_channel_that_breaks_while_streaming_does_not_break_the_turn(app, scripted):
    class Broken(Mailbox):
        async def stream(self, inbound, event):
            raise OSError("gone")

    scripted(Turn("Dear Ada."))
    box, failures = Broken(), []
    app.hooks.add(Post(box))
    app.hooks.register("gateway:error", failures.append)
    async with Gateway(app, enabled=["mail"]).running():
        await box.handle(letter())
        await box.ended.wait()
    assert box.log[-2:] == ["end answered", "stop"]
    assert {event.channel_id for event in failures} == {"mail"}


async def test_the_inbox_keeps_a_message_before_it_is_accepted_and_hears_of_its_end(
    app, scripted, tmp_path
):
    class Kept(Inbox):
        log = []

        async def accept(self, envelope, owner):
            if envelope["content"] == "full":
                raise OSError("no space left")
            self.log.append(("accept", envelope["content"]))
            return await super().accept(envelope, owner)

        async def settle(self, envelope, outcome):
            self.log.append((outcome, envelope["content"]))
            await super().settle(envelope, outcome)

    scripted("hi", Turn(error=Fault("broken")))
    box, inbox = Mailbox(), Kept(SQLiteStore(tmp_path / "inbox.db"))
    app.hooks.add(Post(box))
    async with Gateway(app, enabled=["mail"], inbox=inbox).running():
        await box.handle(letter("one"))
        await box.ended.wait()
        with pytest.raises(OSError, match="no space"):
            await box.handle(letter("full"))
        await box.handle(letter("two"))
    assert inbox.log == [("accept", "one"), ("answered", "one"), ("accept", "two"), ("failed", "two")]


async def test_a_message_after_the_end_is_not_accepted(app, scripted):
    scripted("hi")
    box = Mailbox()
    app.hooks.add(Post(box))
    async with Gateway(app, enabled=["mail"]).running():
        pass
    with pytest.raises(GatewayStopping):
        await box.handle(letter())


async def test_what_only_waits_at_the_end_is_kept_and_what_runs_is_parked(app, scripted):
    scripted(Turn("never", wait=600))
    box = Mailbox()
    app.hooks.add(Post(box))
    begun = asyncio.Event()
    app.hooks.register("agent_start", lambda event: begun.set())
    async with Gateway(app, enabled=["mail"], settings=GatewaySettings(drain=0)).running():
        await box.handle(letter("one"))
        await begun.wait()
        await box.handle(letter("two"))
    assert sorted(box.log[1:-1]) == [
        "end cancelled",
        "error the gateway is going down; the message is kept, and answered after the next start",
    ]
    scripted("Here it is.", "And this too.", name="later")
    box.log.clear()
    async with Gateway(app, enabled=["mail"]).running(), asyncio.timeout(30):
        while box.log.count("end answered") < 2:
            await asyncio.sleep(0.001)
    assert box.log == [
        "start",
        *("stream Here it is.", "send Here it is.", "end answered"),
        *("stream And this too.", "send And this too.", "end answered"),
        "stop",
    ]


async def test_a_turn_that_another_door_left_is_not_continued_here(app, scripted):
    scripted(Turn("never", wait=600))
    async with app.running():
        begun = asyncio.Event()
        app.hooks.register("agent_start", lambda event: begun.set())
        message = {"content": "hi", "channel": "terminal", "chat_id": "local"}
        turn = asyncio.create_task(app.process(message))
        await begun.wait()
        await app.park("terminal:local")
        await turn
    box = Mailbox()
    app.hooks.add(Post(box))
    async with Gateway(app, enabled=["mail"]).running():
        pass
    async with app.running():
        assert await app.sessions.is_cut_off("terminal:local")
