"""Export and import as JSON Lines."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hookline import tape
from hookline.tape import (
    BadLine,
    Entry,
    MemoryTapeStore,
    Tape,
    TapeConflict,
    TapeError,
    TapeStore,
    export,
)

from ..tables import each_row
from .conftest import chain, note

import_ = partial(tape.import_, mark=False)


async def lines_of(store: TapeStore, *sessions: str) -> list[str]:
    return [line async for line in export(store, sessions or None)]


@pytest.fixture
async def source() -> MemoryTapeStore:
    """Two sessions, one forked from the other, and one apart."""
    store = MemoryTapeStore()
    tape = await Tape.open(store, "a")
    first = await tape.append("note", {"text": "line\nbreak \u2028 世界 \ud800"}, meta={"x": 1})
    await tape.append("note", {"n": 2})
    await tape.switch(first.id)
    fork = await tape.fork("b")
    await fork.append("note", {"n": 3})
    await fork.switch(first.id)
    await (await Tape.open(store, "c")).append("note", {"n": 4})
    return store


async def test_an_imported_tape_is_the_exported_one(source: TapeStore, store: TapeStore):
    lines = await lines_of(source)
    done = await import_(store, lines)
    assert (done.sessions, done.added, done.skipped) == (3, 7, 0)
    for session in ("a", "b", "c"):
        assert await store.entries(session) == await source.entries(session)
    assert sorted(await lines_of(store)) == sorted(lines)


async def test_a_store_can_be_piped_into_another(source: TapeStore, store: TapeStore):
    await import_(store, export(source))
    assert len(await store.sessions()) == 3


async def test_importing_again_adds_nothing(source: TapeStore, store: TapeStore):
    lines = await lines_of(source)
    await import_(store, lines)
    assert (await import_(store, [line.encode() for line in lines])).skipped == 7
    assert len(await store.entries("a")) == 3


async def test_a_later_export_brings_what_is_new(source: TapeStore, store: TapeStore):
    await import_(store, await lines_of(source))
    entry = await (await Tape.open(source, "a")).append("note", {"n": 9})
    assert (await import_(store, await lines_of(source))).added == 1
    assert await store.leaf("a") == entry


async def test_a_fork_is_exported_with_the_sessions_it_came_from(source: TapeStore, store: TapeStore):
    await import_(store, await lines_of(source, "b"))
    assert {info.id for info in await store.sessions()} == {"a", "b"}


async def test_exporting_an_unknown_session_is_refused(source: TapeStore):
    with pytest.raises(TapeError, match="no session 'nobody'"):
        await lines_of(source, "nobody")


async def test_what_is_appended_during_an_export_is_left_out(source: TapeStore, store: TapeStore):
    tape = await Tape.open(source, "c")

    async def interrupted() -> AsyncIterator[str]:
        async for line in export(source):
            await tape.append("note", {})
            yield line

    await import_(store, interrupted())
    assert len(await store.entries("c")) == 1


async def test_long_sessions_are_exported_whole(store: TapeStore):
    await store.append(chain(2500))
    target = MemoryTapeStore()
    await import_(target, export(store, ["s1"]))
    assert await target.entries("s1") == await store.entries("s1")


async def test_a_session_that_went_on_here_is_not_imported_over(source: TapeStore, store: TapeStore):
    await import_(store, await lines_of(source))
    await (await Tape.open(store, "a")).append("note", {"here": True})
    await (await Tape.open(source, "a")).append("note", {"there": True})
    before = await store.entries("a")
    with pytest.raises(BadLine, match="went on here"):
        await import_(store, await lines_of(source))
    assert await store.entries("a") == before


async def test_lines_in_another_order_are_put_right(source: TapeStore, store: TapeStore):
    header, *lines = await lines_of(source)
    sessions = [json.loads(line)["session_id"] for line in lines]
    backwards = [
        line for name in "cba" for line, session in zip(lines, sessions, strict=True) if session == name
    ]
    await import_(store, [header, *backwards])
    assert await store.entries("b") == await source.entries("b")


def edit(number: int, **changes: Any) -> Callable[[list[str]], list[str]]:
    def edited(lines: list[str]) -> list[str]:
        value = json.loads(lines[number - 1])
        for name, change in changes.items():
            if change is None:
                del value[name]
            else:
                value[name] = change
        return [*lines[: number - 1], json.dumps(value), *lines[number:]]

    return edited


BROKEN: dict[str, tuple[Callable[[list[str]], list[Any]], str]] = {
    "empty": (lambda lines: [], "line 1: no header"),
    "without its header": (lambda lines: lines[1:], "line 1: no header"),
    "not JSON": (lambda lines: [*lines[:3], "{oops\n", *lines[4:]], "line 4: not JSON"),
    "not UTF-8": (lambda lines: [*lines[:3], b'{"\xff"}', *lines[4:]], "line 4: not JSON"),
    "not an object": (lambda lines: [*lines[:3], "[]\n", *lines[4:]], "line 4: not a JSON object"),
    "cut off": (lambda lines: lines[:-1], "the file ends with 0 entries of session 'c'"),
    "with a line twice": (lambda lines: [*lines, lines[2]], "line 9: .* is on line 3 too"),
    "of a newer format": (edit(1, hookline_tape=99), "line 1: the format is version 99"),
    "without counts": (edit(1, sessions=None), "line 1: the header has no counts"),
    "without a field": (edit(3, kind=None), "line 3: the entry has no 'kind'"),
    "with a wrong field": (edit(3, payload=[]), "line 3: .*payload and meta must be dicts"),
    "with a parent missing": (edit(3, parent_id="nobody"), "line 3: the parent 'nobody'"),
}


@each_row("how", BROKEN)
async def test_a_broken_file_is_refused_whole_with_the_line(
    source: TapeStore, store: TapeStore, how: str
):
    breaking, message = BROKEN[how]
    with pytest.raises(BadLine, match=f"{message}.*nothing was imported"):
        await import_(store, breaking(await lines_of(source)))
    assert await store.sessions() == []


async def test_a_circle_of_parents_is_refused(store: TapeStore):
    first, second = chain(2)
    circle = MemoryTapeStore()
    await circle.append([first, second])
    lines = await lines_of(circle)
    with pytest.raises(BadLine, match=r"line 2: .* its own ancestor"):
        await import_(store, edit(2, parent_id=second.id)(lines))
    assert await store.sessions() == []


async def test_an_entry_with_other_content_is_refused(store: TapeStore):
    entry = note("one")
    await store.append([entry])
    changed = MemoryTapeStore()
    await changed.append([replace(entry, payload={"text": "two"}), Entry.new("s2", None, "note", {})])
    with pytest.raises(BadLine, match=r"line \d: .*with other content"):
        await import_(store, await lines_of(changed))
    assert [info.id for info in await store.sessions()] == ["s1"]


async def test_a_session_written_while_importing_is_not_overwritten(
    source: TapeStore, store: TapeStore
):
    class Slow:
        """Another writer gets in between the check and the append."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def append(self, entries: Any, *, expect: Any) -> None:
            await (await Tape.open(store, "a")).append("note", {})
            await store.append(entries, expect=expect)

    with pytest.raises(TapeConflict):
        await import_(Slow(), await lines_of(source))
    assert len(await store.entries("a")) == 1
