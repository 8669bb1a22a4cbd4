"""What a gateway finds in its inbox at the start, and what it makes of it."""

import asyncio
import sqlite3
from contextlib import closing
from uuid import uuid4

import pytest

from hookline.channel import Channel
from hookline.hooks import hookimpl
from hookline.models.script import Turn
from hookline.runtime.inbox import Inbox, packed
from hookline.serve import Gateway, GatewaySettings
from hookline.system.file_lock import Lock
from hookline.tape import MemoryTapeStore, SQLiteStore

from ..gateway.test_gateway import Mailbox, Post, letter

SAID = "UPDATE inbox SET body = ? WHERE id = ?"


@pytest.fixture
def box(app):
    box = Mailbox()
    app.hooks.add(Post(box))
    return box


async def left(app, *messages, owner=None):
    """Messages that a process accepted and did not get to."""
    async with app.running():
        inbox = Inbox(app.store())
        for message in messages:
            await inbox.accept(message, owner or uuid4().hex)


async def ended(box, count):
    async with asyncio.timeout(30):
        while sum(line.startswith(("end", "error")) for line in box.log) < count:
            await asyncio.sleep(0.001)


def named(text, name):
    return {**letter(text), "message_id": name}


async def test_a_message_whose_turn_never_began_gets_it_before_what_comes_now(app, scripted, box):
    scripted("one", "two", "three")
    await left(app, named("first", "m1"), named("second", "m2"))
    async with Gateway(app, enabled=["mail"]).running():
        await box.handle(named("third", "m3"))
        await ended(box, 3)
    async with app.running():
        said = [e.payload["message"] for e in await app.store().entries("mail:ada", kinds={"message"})]
    assert [m["content"] for m in said] == ["first", "one", "second", "two", "third", "three"]


async def test_a_message_whose_turn_is_over_is_only_marked_done(app, scripted, box):
    scripted("one")
    async with app.running():
        await app.process(named("first", "m1"))
    await left(app, named("first", "m1"))
    gateway = Gateway(app, enabled=["mail"])
    async with gateway.running():
        async with asyncio.timeout(30):
            while gateway.intake.catching_up:
                await asyncio.sleep(0.001)
        assert await gateway.intake.inbox.owner_of(named("first", "m1")) is None
    assert box.log == ["start", "stop"]
    with closing(sqlite3.connect(app.home / "tape.db")) as database:
        assert database.execute("SELECT note FROM inbox").fetchall() == [("answered",)]


async def test_a_turn_that_was_cut_off_is_continued_even_when_resuming_is_off(app, scripted, box):
    scripted(Turn("never", wait=600))
    begun = asyncio.Event()
    app.hooks.register("agent_start", lambda event: begun.set())
    async with app.running():
        turn = asyncio.create_task(app.process(named("first", "m1")))
        await begun.wait()
        await app.park("mail:ada")
        await turn
    await left(app, named("first", "m1"))
    scripted("Here it is.", name="later")
    async with Gateway(app, enabled=["mail"], settings=GatewaySettings(resume=0)).running():
        await ended(box, 1)
    assert box.log[-3:] == ["send Here it is.", "end answered", "stop"]
    async with app.running():
        turns = await app.store().entries("mail:ada", kinds={"turn"})
    assert [e.payload["status"] for e in turns] == ["started", "completed"]


async def test_a_message_that_comes_again_is_not_answered_again(app, scripted, box):
    scripted("one")
    async with Gateway(app, enabled=["mail"]).running():
        assert await box.handle(named("first", "m1")) is True
        await ended(box, 1)
        assert await box.handle(named("first", "m1")) is False
    async with Gateway(app, enabled=["mail"]).running():
        assert await box.handle(named("first", "m1")) is False
    assert box.log.count("end answered") == 1


async def test_what_a_living_process_has_is_left_to_it(app, scripted, box):
    scripted("one")
    lock = Lock(app.home / "inbox" / "other.lock")
    lock.acquire()
    await left(app, named("first", "m1"), owner="other")
    gateway = Gateway(app, enabled=["mail"])
    async with gateway.running():
        assert not gateway.intake.catching_up
    assert box.log == ["start", "stop"]
    lock.release(forget=True)
    async with Gateway(app, enabled=["mail"]).running():
        await ended(box, 1)


async def test_a_message_of_a_channel_that_is_off_waits_for_it(app, scripted, box):
    scripted("one")
    await left(app, named("first", "m1"))
    app.hooks.add(Post(other := Mailbox("other")), name="other")
    gateway = Gateway(app, enabled=["other"])
    async with gateway.running():
        async with asyncio.timeout(30):
            while gateway.intake.catching_up:
                await asyncio.sleep(0.001)
    assert other.log == ["start", "stop"]
    async with Gateway(app, enabled=["mail"]).running():
        await ended(box, 1)
    assert "end answered" in box.log


async def test_messages_taken_together_are_not_answered_again_after_a_crash(app, scripted, box):
    scripted("both")
    quick = GatewaySettings(debounce=0.01)
    async with Gateway(app, enabled=["mail"], settings=quick).running():
        await box.handle(named("one", "m1"))
        await box.handle(named("two", "m2"))
        await ended(box, 2)
    async with app.running():  # as if the process had ended before it noted the outcomes
        await app.store().using(
            "change", lambda db: db.execute("UPDATE inbox SET state = 'started', owner = 'gone'")
        )
        for text, name in (("one", "m1"), ("two", "m2")):
            row = (packed(named(text, name)), name)
            await app.store().using("change", lambda db, row=row: db.execute(SAID, row))
    box.log.clear()
    gateway = Gateway(app, enabled=["mail"])
    async with gateway.running(), asyncio.timeout(30):
        while gateway.intake.catching_up:
            await asyncio.sleep(0.001)
    assert box.log == ["start", "stop"]


async def test_an_answer_that_is_sent_again_has_the_id_it_had_before(app, scripted):
    scripted("one")
    sent = []

    class Dying(Channel):
        async def send(self, message):
            sent.append((message["delivery_id"], message["content"]))
            if len(sent) == 1:
                raise asyncio.CancelledError  # the process ends between sending and recording
            return True

    app.channel = Dying()
    async with app.running():
        tape = await app.tape("mail:ada")
        begun = {"status": "started", "turn_id": "t1", "envelope": named("first", "m1"), "system": ""}
        said = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "one"}]
        await tape.append_many([("turn", begun), *(("message", {"message": m}) for m in said)])
        with pytest.raises(asyncio.CancelledError):
            await app.resume("mail:ada")
        await tape.refresh()
        await tape.append_many([("turn", begun), *(("message", {"message": m}) for m in said)])
        await app.resume("mail:ada")
    assert sent == [("m1/0", "one"), ("m1/0", "one")]


async def test_on_tapes_that_others_share_only_ones_own_turns_are_continued(app, scripted, box):
    shared = MemoryTapeStore()

    class Shared:
        @hookimpl
        def provide_tape_store(self):
            return shared

    app.hooks.add(Shared())
    async with app.running():
        tape = await app.tape("mail:ada")
        begun = {"status": "started", "turn_id": "t1", "envelope": named("hi", "m1"), "system": ""}
        said = {"message": {"role": "user", "content": "hi"}}
        await tape.append_many([("turn", begun), ("message", said)])
    scripted("one")
    async with Gateway(app, enabled=["mail"]).running():
        pass
    assert box.log == ["start", "stop"]  # it may be running on another machine
    own = SQLiteStore(app.home / "inbox.db")
    await Inbox(own).accept(named("hi", "m1"), "gone")
    await own.close()
    async with Gateway(app, enabled=["mail"]).running():
        await ended(box, 1)
    assert box.log[-2:] == ["end answered", "stop"]
