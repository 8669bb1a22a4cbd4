"""A conversation that is kept between turns says the same as the tape, whoever wrote to it."""

import random

import pytest

from hookline.agent.conversation import Conversation
from hookline.tape import Entry, Tape, TapeContext
from hookline.tape.context import copied

CALL = {"id": "call", "name": "add", "arguments": '{"a": 1}'}


async def said_by_the_tape(tape):
    return TapeContext().messages(await tape.context_entries())


def spoil(messages):
    """Do to messages what a careless handler may do."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["arguments"] = "{}"
        if isinstance(message.get("content"), list):
            message["content"].append({"type": "text", "text": "spoilt"})
        message["content"] = "spoilt"
    messages.reverse()
    del messages[3:]


async def user(tape, number):
    await tape.append("message", {"message": {"role": "user", "content": f"question {number}"}})


async def call(tape, number):
    calls = [{**CALL, "id": f"call_{number}"}]
    await tape.append_many([
        ("turn", {"status": "started"}),
        ("message", {"message": {"role": "assistant", "content": "", "tool_calls": calls}}),
        ("tool_call", calls[0]),
    ])  # fmt: skip


async def result(tape, number):
    parts = [{"type": "text", "text": f"result {number}"}]
    answer = {"tool_call_id": f"call_{number - 1}", "name": "add", "content": parts}
    await tape.append("tool_result", answer)


async def hide(tape, number):
    message = {"role": "user", "content": "hidden"}
    await tape.append("message", {"message": message}, meta={"context": False})


async def switch(tape, number):
    branch = await tape.branch()
    if branch:
        await tape.switch(random.Random(number).choice(branch).id, summary="another attempt")


async def compact(tape, number):
    entries = await tape.context_entries()
    keep = random.Random(number).choice(entries).id if entries else None
    await tape.anchor("compaction", summary=f"summary {number}", keep_from=keep)


async def handoff(tape, number):
    await tape.handoff("next", state={"step": number})


STEPS = [user, user, user, call, result, call, result, hide, switch, compact, handoff]


@pytest.mark.parametrize("seed", range(2))
async def test_it_equals_the_tape_after_every_kind_of_write_by_anyone(store, seed):
    chosen = random.Random(seed)
    kept = Conversation()
    for number in range(40):
        for _ in range(chosen.randrange(1, 4)):  # each as another process would
            await chosen.choice(STEPS)(await Tape.open(store, "s1"), number)
        tape = await Tape.open(store, "s1")
        messages = await kept.messages(tape, TapeContext())
        assert messages == await said_by_the_tape(tape)
        spoil(messages)


async def test_only_what_is_new_is_read(store, monkeypatch):
    tape = await Tape.open(store, "s1")
    kept = Conversation()
    for number in range(50):
        await user(tape, number)
    await kept.messages(tape, TapeContext())
    read, branch = [], store.branch

    async def counted(*args, **options):
        found = await branch(*args, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(store, "branch", counted)
    await kept.messages(tape, TapeContext())
    assert read == []
    await user(await Tape.open(store, "s1"), 50)  # another writer
    await tape.refresh()
    assert len(await kept.messages(tape, TapeContext())) == 51
    assert read == [2]


async def test_a_fork_and_its_origin_each_keep_their_own(store):
    tape = await Tape.open(store, "s1")
    await user(tape, 1)
    kept, kept_by_fork = Conversation(), Conversation()
    fork = await tape.fork("s2")
    for number in range(2, 5):
        await user(tape, number)
        await call(fork, number)
        assert await kept.messages(tape, TapeContext()) == await said_by_the_tape(tape)
        assert await kept_by_fork.messages(fork, TapeContext()) == await said_by_the_tape(fork)
    await tape.merge(fork)
    assert await kept.messages(tape, TapeContext()) == await said_by_the_tape(tape)


async def test_a_context_of_a_plugin_may_change_the_entries_that_it_is_given(tape):
    class Careless(TapeContext):
        def messages(self, entries):
            found = []
            for entry in entries:
                entry.payload["message"]["content"] += "!"
                entry.meta["seen"] = True
                found.append(entry.payload["message"])
            return found

    kept = Conversation()
    await user(tape, 1)
    for number in range(2, 4):
        await user(tape, number)
        messages = await kept.messages(tape, Careless())
        assert messages[0]["content"] == "question 1!"
        assert len(messages) == number


def test_a_copy_shares_no_container():
    value = {"a": [{"b": [1, None, "c"]}], "d": {"e": 2.5}}
    twin = copied(value)
    assert twin == value
    twin["a"][0]["b"].append(3)
    twin["d"]["e"] = 3
    assert value == {"a": [{"b": [1, None, "c"]}], "d": {"e": 2.5}}
    assert Entry.new("s", None, "note", value).payload is value
