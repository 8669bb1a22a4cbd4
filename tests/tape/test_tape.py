"""One session's tape, on every store."""

import asyncio

import pytest

from hookline.tape import (
    BadEntry,
    Entry,
    SessionExists,
    Tape,
    TapeConflict,
    TapeStore,
    UnknownEntry,
)


def kinds(entries: list[Entry]) -> list[str]:
    return [entry.kind for entry in entries]


def numbers(entries: list[Entry]) -> list[int]:
    return [entry.payload["n"] for entry in entries if "n" in entry.payload]


async def write(tape: Tape, *values: int) -> list[Entry]:
    return [await tape.append("note", {"n": value}) for value in values]


# --- Appending ---


async def test_a_session_begins_with_its_first_entry(store: TapeStore):
    tape = await Tape.open(store, "s1")
    assert tape.leaf is None
    assert await tape.branch() == await tape.context_entries() == []
    assert await store.sessions() == []
    entry = await tape.append("note", {"n": 1}, meta={"who": "me"})
    assert (entry.parent_id, entry.meta, tape.leaf) == (None, {"who": "me"}, entry)
    assert (await Tape.open(store, "s1")).leaf == entry


async def test_a_session_without_a_name_gets_one(store: TapeStore):
    first, second = await Tape.open(store), await Tape.open(store)
    assert first.session_id != second.session_id


async def test_each_entry_follows_the_one_before(tape: Tape):
    entries = await write(tape, 1, 2, 3)
    assert [entry.parent_id for entry in entries] == [None, entries[0].id, entries[1].id]
    assert await tape.branch() == entries


async def test_many_entries_are_appended_all_or_none(tape: Tape):
    made = await tape.append_many([("note", {"n": 1}), ("note", {"n": 2}, {"by": "x"})])
    assert tape.leaf == made[-1]
    assert made[1].parent_id == made[0].id
    with pytest.raises(BadEntry):
        await tape.append_many([("note", {"n": 3}), ("note", {"n": object()})])
    assert await tape.append_many([]) == []
    assert await tape.branch() == made
    assert tape.leaf == made[-1]


async def test_tasks_that_share_a_tape_append_one_after_the_other(tape: Tape):
    await asyncio.gather(*(write(tape, value) for value in range(50)))
    assert sorted(numbers(await tape.branch())) == list(range(50))


async def test_an_append_after_another_writers_is_refused_until_the_tape_is_refreshed(store: TapeStore):
    mine, other = await Tape.open(store, "s1"), await Tape.open(store, "s1")
    await write(mine, 1)
    with pytest.raises(TapeConflict, match="s1"):
        await write(other, 2)
    with pytest.raises(TapeConflict, match="s1"):
        await other.append_many([("note", {"n": 2}), ("note", {"n": 3})])
    assert await other.refresh() == mine.leaf
    await write(other, 4)
    assert numbers(await other.branch()) == [1, 4]


# --- Anchors ---


async def test_context_starts_at_the_last_anchor(tape: Tape):
    await write(tape, 1)
    await tape.anchor("first")
    await write(tape, 2)
    anchor = await tape.anchor("second", state={"step": 2}, summary="so far")
    await write(tape, 3, 4)
    context = await tape.context_entries()
    assert context[0] == anchor
    assert anchor.payload == {"name": "second", "state": {"step": 2}, "summary": "so far"}
    assert numbers(context) == [3, 4]
    assert numbers(await tape.branch()) == [1, 2, 3, 4]
    assert await tape.last("anchor") == anchor


async def test_a_handoff_is_an_anchor_with_state(tape: Tape):
    entry = await tape.handoff("to review", state={"todo": ["x"]}, summary="done so far")
    assert (entry.kind, entry.payload["state"], entry.meta) == (
        "anchor",
        {"todo": ["x"]},
        {"handoff": True},
    )


async def test_an_anchor_can_keep_entries_from_before_it(tape: Tape):
    await write(tape, 1)
    await tape.anchor("old")
    _, kept, _ = await write(tape, 2, 3, 4)
    anchor = await tape.anchor("compacted", summary="1 and 2", keep_from=kept.id)
    await write(tape, 5)
    context = await tape.context_entries()
    assert context[0] == anchor
    assert numbers(context) == [3, 4, 5]


async def test_an_anchor_cannot_keep_what_is_not_on_the_branch(tape: Tape):
    first, second = await write(tape, 1, 2)
    await tape.switch(first.id)
    leaf = tape.leaf
    with pytest.raises(BadEntry, match="not on the branch"):
        await tape.anchor("x", keep_from=second.id)
    assert tape.leaf == leaf


# --- Navigating ---


async def test_switching_goes_on_from_an_earlier_entry_and_loses_nothing(tape: Tape):
    first, second, third = await write(tape, 1, 2, 3)
    switch = await tape.switch(first.id, summary="a dead end")
    assert switch.parent_id == first.id
    assert switch.payload == {"entry_id": first.id, "from_id": third.id, "summary": "a dead end"}
    await write(tape, 4)
    assert numbers(await tape.branch()) == [1, 4]
    assert len(await tape.store.entries("s1")) == 5
    assert await tape.store.children(first.id) == [second, switch]


async def test_switching_before_an_anchor_brings_back_the_context_of_then(tape: Tape):
    _, second = await write(tape, 1, 2)
    await tape.anchor("later")
    await tape.switch(second.id)
    assert numbers(await tape.context_entries()) == [1, 2]


async def test_switching_to_an_unknown_or_foreign_entry_is_refused(store: TapeStore, tape: Tape):
    await write(tape, 1)
    foreign = await (await Tape.open(store, "other")).append("note", {})
    leaf = tape.leaf
    with pytest.raises(UnknownEntry, match="nobody"):
        await tape.switch("nobody")
    with pytest.raises(BadEntry, match="other"):
        await tape.switch(foreign.id)
    with pytest.raises(BadEntry, match="other"):
        await tape.fork(entry_id=foreign.id)
    with pytest.raises(UnknownEntry):
        await tape.label("nobody", "x")
    assert tape.leaf == await store.leaf("s1") == leaf


async def test_switching_to_before_the_first_entry_begins_again_with_nothing(tape: Tape):
    await write(tape, 1, 2)
    switch = await tape.switch(None)
    assert switch.parent_id is None
    assert numbers(await tape.context_entries()) == []
    await write(tape, 3)
    assert numbers(await tape.branch()) == [3]
    assert len(await tape.outline()) == 4


async def test_where_a_session_is_survives_opening_it_again(store: TapeStore, tape: Tape):
    first, _ = await write(tape, 1, 2)
    await tape.switch(first.id)
    again = await Tape.open(store, "s1")
    assert numbers(await again.branch()) == [1]
    await again.switch(None)
    assert numbers(await (await Tape.open(store, "s1")).branch()) == []


async def test_what_a_switch_would_leave_behind_is_told_before(store: TapeStore, tape: Tape):
    first, second, third = await write(tape, 1, 2, 3)
    assert await tape.left_behind(first.id) == (first.id, [second, third])
    assert await tape.left_behind(third.id) == (third.id, [])
    assert await tape.left_behind(None) == (None, [first, second, third])
    await tape.switch(second.id)
    assert await tape.left_behind(third.id) == (second.id, [tape.leaf])
    foreign = await (await Tape.open(store, "other")).append("note", {})
    with pytest.raises(BadEntry):
        await tape.left_behind(foreign.id)
    with pytest.raises(UnknownEntry):
        await tape.left_behind("nobody")
    assert await (await Tape.open(store, "empty")).left_behind(None) == (None, [])


async def test_an_empty_name_is_refused(tape: Tape):
    with pytest.raises(BadEntry, match="must not be empty"):
        await tape.rename("  ")
    assert tape.leaf is None


async def test_a_tape_that_somebody_else_writes_is_not_forked_until_it_is_refreshed(
    store: TapeStore, tape: Tape
):
    (first,) = await write(tape, 1)
    await (await Tape.open(store, "s1")).append("note", {"n": 2})
    for entry_id in (None, first.id):
        with pytest.raises(TapeConflict, match=r"'s1' was appended to by another writer.*refresh"):
            await tape.fork("child", entry_id=entry_id)
    assert await store.entries("child") == []
    await tape.refresh()
    assert numbers(await (await tape.fork("child")).branch()) == [1, 2]


async def test_labels_name_entries_and_the_last_use_of_a_name_counts(tape: Tape):
    first, second = await write(tape, 1, 2)
    await tape.label(first.id, "start")
    await tape.label(first.id, "draft")
    await tape.label(second.id, "draft")
    assert await tape.labels() == {"start": first.id, "draft": second.id}
    await tape.label(None, "start")
    assert await tape.labels() == {"draft": second.id}


# --- Forking and merging ---


async def test_a_fork_shares_what_came_before_and_goes_its_own_way(tape: Tape):
    await write(tape, 1, 2)
    fork = await tape.fork("s2")
    await write(fork, 3)
    await write(tape, 4)
    assert numbers(await fork.branch()) == [1, 2, 3]
    assert numbers(await tape.branch()) == [1, 2, 4]
    first = (await tape.store.entries("s2"))[0]
    assert first.kind == "fork"
    assert first.payload["session_id"] == "s1"
    assert {info.id: info.parent for info in await tape.store.sessions()} == {"s1": None, "s2": "s1"}


async def test_a_fork_can_be_made_at_or_before_an_entry(tape: Tape):
    first, second, _ = await write(tape, 1, 2, 3)
    assert numbers(await (await tape.fork(entry_id=second.id)).branch()) == [1, 2]
    assert numbers(await (await tape.fork(entry_id=second.id, position="before")).branch()) == [1]
    assert numbers(await (await tape.fork(entry_id=first.id, position="before")).branch()) == []
    with pytest.raises(ValueError, match="after"):
        await tape.fork(position="after")


async def test_an_empty_tape_can_be_forked(tape: Tape):
    assert kinds(await (await tape.fork()).branch()) == ["fork"]


async def test_forking_into_a_session_that_exists_is_refused(tape: Tape):
    await write(tape, 1)
    with pytest.raises(SessionExists, match="s1"):
        await tape.fork("s1")
    await tape.fork("s2")
    with pytest.raises(SessionExists, match="s2"):
        await tape.fork("s2")
    assert numbers(await tape.branch()) == [1]


async def test_a_fork_can_go_back_to_what_it_shares_but_not_to_what_its_parent_did_since(tape: Tape):
    first, second = await write(tape, 1, 2)
    fork = await tape.fork("s2")
    (third,) = await write(tape, 3)
    await fork.switch(first.id)
    await write(fork, 4)
    assert numbers(await fork.branch()) == [1, 4]
    with pytest.raises(BadEntry):
        await fork.switch(third.id)
    assert kinds(await tape.store.children(second.id)) == ["fork", "note"]


async def test_merging_copies_what_the_fork_wrote_and_names_where_it_came_from(tape: Tape):
    await write(tape, 1)
    fork = await tape.fork("s2")
    third = (await write(fork, 2, 3))[1]
    await fork.label(third.id, "good")
    await write(tape, 4)
    made = await tape.merge(fork)
    assert kinds(made) == ["note", "note", "label", "merge"]
    assert numbers(await tape.branch()) == [1, 4, 2, 3]
    assert made[1].meta["origin"] == {"session_id": "s2", "entry_id": third.id}
    assert made[-1].payload == {"session_id": "s2", "entry_id": fork.leaf.id, "count": 3}
    assert await tape.labels() == {"good": made[1].id}
    assert numbers(await fork.branch()) == [1, 2, 3]


async def test_merging_again_takes_only_what_is_new(tape: Tape):
    fork = await tape.fork("s2")
    await write(fork, 1)
    await tape.merge(fork)
    assert await tape.merge(fork) == []
    await write(fork, 2)
    await tape.merge(fork)
    assert numbers(await tape.branch()) == [1, 2]


async def test_merging_takes_the_branch_that_the_fork_is_on(tape: Tape):
    (first,) = await write(tape, 1)
    fork = await tape.fork("s2")
    (second, _) = await write(fork, 2, 3)
    await fork.switch(second.id)
    await write(fork, 4)
    assert numbers(await tape.merge(fork)) == [2, 4]
    await fork.switch(first.id)
    await write(fork, 5)
    assert numbers(await tape.merge(fork)) == [5]


async def test_merging_what_is_not_a_fork_of_this_session_is_refused(store: TapeStore, tape: Tape):
    await write(tape, 1)
    other = await Tape.open(store, "other")
    await write(other, 2)
    for wrong in (other, tape, await Tape.open(store, "empty"), await other.fork("s3")):
        with pytest.raises(BadEntry, match="not a fork"):
            await tape.merge(wrong)
    assert numbers(await tape.branch()) == [1]


# --- Looking back ---


async def test_the_last_of_a_kind_is_the_last_on_the_branch(tape: Tape):
    assert await tape.last("model") is None
    first = await tape.append("model", {"name": "one"})
    await tape.append("model", {"name": "two"})
    await tape.switch(first.id)
    assert await tape.last("model") == first
    assert await tape.last("state") is None


async def test_searching_a_tape_finds_its_own_entries(store: TapeStore, tape: Tape):
    mine = await tape.append("note", {"text": "a needle"})
    await (await Tape.open(store, "other")).append("note", {"text": "another needle"})
    assert [hit.entry for hit in await tape.search("needle")] == [mine]
