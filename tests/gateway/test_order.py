"""Messages of one chat are received and answered in the order in which they came."""

import asyncio

from hookline.events import MessageReceiveResult, TextPart
from hookline.models.script import Turn
from hookline.serve import Gateway

from .test_gateway import Mailbox, Post, letter


class Ordered(Mailbox):
    async def end(self, inbound, result):
        await super().end(inbound, result)
        self.log.append((inbound["chat_id"], inbound["content"], result.model_output))


async def test_a_slow_receive_lets_no_later_message_of_the_chat_overtake(app, scripted):
    scripted("to one", "to two", "to three")
    box = Ordered()
    app.hooks.add(Post(box))
    heard, received = asyncio.Event(), []
    heard_elsewhere = asyncio.Event()

    async def listen(event):
        received.append(event.text)
        if event.text == "recording":
            await heard.wait()
            return MessageReceiveResult(action="transform", parts=[TextPart("one")])
        return None

    app.hooks.register("message:receive", listen)
    app.hooks.register("input", lambda event: heard_elsewhere.set())
    async with Gateway(app, enabled=["mail"]).running():
        await box.handle(letter("recording"))
        await box.handle(letter("two"))
        await box.handle(letter("three", chat_id="bob"))
        await heard_elsewhere.wait()  # another chat does not wait
        assert received == ["recording", "three"]
        heard.set()
    assert [each[1] for each in box.log if each[0] == "ada"] == ["recording", "two"]
    assert received == ["recording", "three", "two"]


async def test_a_rejected_or_failing_message_makes_way_for_the_next(app, scripted):
    scripted("fine")
    box = Ordered()
    app.hooks.add(Post(box))

    def judge(event):
        if event.text == "no":
            return MessageReceiveResult(action="reject", reason="closed")
        return None

    def resolve(message):
        if message["content"] == "broken":
            raise RuntimeError("no such session")

    app.hooks.register("message:receive", judge)
    app.hooks.register("resolve_session", resolve)
    async with Gateway(app, enabled=["mail"]).running():
        for text in ("no", "broken", "yes"):
            await box.handle(letter(text))
    ended = [each for each in box.log if isinstance(each, tuple)]
    assert [each[1] for each in ended] == ["no", "yes"]
    assert "send fine" in box.log


async def test_a_follow_up_waits_in_the_session_and_not_at_the_entrance(app, scripted):
    scripted(Turn("never", wait=600), "second")
    box, received, begun = Ordered(), [], asyncio.Event()
    app.hooks.add(Post(box))
    both = asyncio.Event()

    def note(event):
        received.append(event.text)
        if len(received) == 2:
            both.set()

    app.hooks.register("message:receive", note)
    app.hooks.register("agent_start", lambda event: begun.set())
    gateway = Gateway(app, enabled=["mail"])
    async with gateway.running():
        await box.handle(letter("one"))
        await begun.wait()
        await box.handle(letter("two"))
        await both.wait()  # received while the first one's turn runs
        await gateway.cancel("mail:ada")
    assert received == ["one", "two"]
