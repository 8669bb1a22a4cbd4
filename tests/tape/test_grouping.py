"""Appends of several tasks at the same time: one transaction, each with its own outcome."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hookline.tape import DuplicateEntry, SQLiteStore, Tape, TapeConflict, TapeLocked, UnknownEntry
from hookline.tape.sqlite.group_commit import AT_ONCE

from .conftest import chain, note, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStore]:
    opened = SQLiteStore(path, lock_timeout=0.2)
    yield opened
    await opened.close()


async def written_by(path: Path, *, together: bool) -> int:
    """The bytes that twenty sessions of three entries write before they reach the file itself."""
    store = SQLiteStore(path)
    log = path.with_name(f"{path.name}-wal")
    before = log.stat().st_size

    async def one(session: str) -> None:
        tape = await Tape.open(store, session)
        for number in range(3):
            await tape.append("note", {"text": f"number {number}"})

    sessions = [f"s{number}" for number in range(20)]
    if together:
        await asyncio.gather(*map(one, sessions))
    else:
        for session in sessions:
            await one(session)
    for session in sessions:
        assert texts(await store.entries(session)) == ["number 0", "number 1", "number 2"]
    size = log.stat().st_size - before
    await store.close()
    return size


async def test_tasks_that_append_at_once_share_their_transactions(tmp_path: Path):
    alone = await written_by(tmp_path / "alone.db", together=False)
    together = await written_by(tmp_path / "together.db", together=True)
    assert together < alone / 4


async def test_what_is_refused_is_told_to_its_own_task_alone(store: SQLiteStore):
    await store.append(first := chain(2))
    results = await asyncio.gather(
        *(store.append([note("writes at once", session=f"a{each}")]) for each in range(AT_ONCE)),
        store.append([note("late", first[0])], expect={"s1": first[0].id}),
        store.append([first[0]]),
        store.append([note("orphan", note("nowhere"), session="s3")]),
        store.append([note("half", session="s4"), first[1]]),
        store.append([note("goes on", first[1])], expect={"s1": first[1].id}),
        return_exceptions=True,
    )
    refused = [TapeConflict, DuplicateEntry, UnknownEntry, DuplicateEntry]
    done = type(None)
    assert [type(result) for result in results] == [done] * AT_ONCE + [*refused, done]
    assert texts(await store.entries("s1")) == ["number 0", "number 1", "goes on"]
    assert {info.id: info.entries for info in await store.sessions()} == {"s1": 3, "a0": 1, "a1": 1}


async def test_an_append_that_is_cancelled_while_it_waits_is_not_made(store: SQLiteStore):
    tapes = [await Tape.open(store, f"s{number}") for number in range(AT_ONCE + 2)]
    tasks = [asyncio.create_task(tape.append("note", {"text": "first"})) for tape in tapes]
    await asyncio.sleep(0)
    tasks[-2].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[-2], asyncio.CancelledError)
    sessions = {info.id for info in await store.sessions()}
    assert sessions == {tape.session_id for tape in tapes} - {tapes[-2].session_id}
    await tapes[-2].append("note", {"text": "second"})
    assert texts(await store.entries(tapes[-2].session_id)) == ["second"]


async def test_an_append_that_is_cancelled_when_it_is_made_returns_first(store: SQLiteStore):
    others = [await Tape.open(store, f"a{number}") for number in range(AT_ONCE)]
    tape = await Tape.open(store, "s1")
    returned: list[str] = []

    async def append_and_go_on() -> None:
        returned.append((await tape.append("note", {"text": "made"})).id)
        await asyncio.sleep(0)
        returned.append("never")

    first = [asyncio.create_task(each.append("note", {"text": "at once"})) for each in others]
    task = asyncio.create_task(append_and_go_on())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(task.cancel)  # after the write, before the task goes on
    await asyncio.gather(*first, task, return_exceptions=True)
    assert task.cancelled()
    assert tape.leaf is not None
    assert returned == [tape.leaf.id]
    await tape.append("note", {"text": "next"})
    assert texts(await store.entries("s1")) == ["made", "next"]


async def test_a_group_waits_for_another_process_or_fails_as_a_whole(path: Path, store: SQLiteStore):
    tapes = [await Tape.open(store, f"s{number}") for number in range(4)]
    for tape in tapes:
        await tape.append("note", {"text": "before"})
    other = sqlite3.connect(path, isolation_level=None)

    def all_append(text: str) -> "asyncio.Future[list[object]]":
        appends = [tape.append("note", {"text": text}) for tape in tapes]
        return asyncio.gather(*appends, return_exceptions=True)

    other.execute("BEGIN IMMEDIATE")
    assert [type(result) for result in await all_append("in vain")] == [TapeLocked] * 4
    waiting = all_append("after")
    await asyncio.sleep(0.01)
    assert not waiting.done()
    other.execute("COMMIT")
    await waiting
    other.close()
    for tape in tapes:
        assert texts(await store.entries(tape.session_id)) == ["before", "after"]
    assert [info.entries for info in await store.sessions()] == [2] * 4


def test_a_store_outlives_the_event_loop_that_it_was_used_in(path: Path):
    store = SQLiteStore(path)

    async def at_once(sessions: list[str]) -> None:
        await asyncio.gather(*(store.append([note("here", session=each)]) for each in sessions))

    for number in range(3):
        asyncio.run(at_once([f"{number}.{each}" for each in range(4)]))
    assert len(asyncio.run(store.sessions())) == 12
    asyncio.run(store.close())
