"""Reads records for the page: outlines, the entries around one, and the trace, each once."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi import HTTPException

from hookline.observe.trace.plugin import Tracing
from hookline.tape import SQLiteStore
from hookline.tape.entry import TOOL_CALL, TOOL_RESULT, TURN

from .outlines import Outline, Outlines, OutlineTurn
from .tail import Tail

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.tape import Entry, TapeStore
    from hookline.tape.outline import OutlineEntry

    from ..trace import Trace, TraceRecord, TraceStore
    from .timeline import Bar

T = TypeVar("T")

CALLS: Final = (TOOL_CALL, TOOL_RESULT)
BEFORE: Final = 60.0
"""Seconds before its first entry in which the hooks of a turn may have run."""
SETTLED: Final = 60.0
"""Seconds after its last entry in which a turn may still be traced."""
TIMELINES: Final = 3
"""How many timelines are kept: a long one is asked for in parts."""
GLANCE: Final = 600
"""Entries of a turn at a first glance: more than its first bars are made of."""
MOMENT: Final = 2.0
"""Seconds for which a growing record is fresh enough for the next part of the same list."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The bars of a turn, as they were at a time."""

    leaf: str
    read: float
    bars: list[Bar]
    traced: bool

    def is_good(self, outline: Outline, turn: OutlineTurn) -> bool:
        """Whether nothing can have come to it since."""
        is_settled = outline.entries[turn.end - 1].time + SETTLED < self.read
        return self.leaf == outline.entries[-1].id and (is_settled or time() - self.read < MOMENT)


class AppReader:
    """Reads what an app has recorded and what it is doing."""

    def __init__(self, app: Hookline, leaving: asyncio.Event) -> None:
        self.app = app
        self.outlines = Outlines()
        self.tail = Tail(app, leaving)
        self.replaying = asyncio.Lock()
        self._traced = TracedTurns()
        self._timelines: OrderedDict[tuple[str, int, bool], Timeline] = OrderedDict()

    async def outline(self, session: str) -> Outline:
        """A session in outline, or 404."""
        found = await self.outlines.of(self.app.store(), session)
        if found is None:
            raise HTTPException(404, f"there is no session {session!r}")
        return found

    async def entries(self, outline: Outline, turn: OutlineTurn) -> list[Entry]:
        """The entries of a turn."""
        first, last = outline.entries[turn.start], outline.entries[turn.end - 1]
        own = await self.app.store().branch(last.id, until=first.id)
        if own[0].id == first.id:
            return own
        return await self._each(outline.entries[turn.start : turn.end])  # a switch in its middle

    async def around(self, outline: Outline, place: int, call_id: str | None) -> list[Entry]:
        """An entry with the others of its call: the call, its result, and who asked for it."""
        turn = outline.turn_at(place)
        if call_id is None or turn is None:
            return await self._each([outline.entries[place]])
        entry, named = outline.entries[place], json.dumps(call_id, ensure_ascii=False)
        before, after = outline.entries[turn.start : place][::-1], outline.entries[place + 1 : turn.end]
        asked = next((e for e in before if e.role == "assistant"), None)
        # Some models give one id to several calls: the nearest is meant.
        near = before if entry.kind == TOOL_RESULT else after
        pair = next((e for e in near if e.kind in CALLS and named in e.head), None)
        if pair is not None and pair.kind == entry.kind:  # the other one is missing
            pair = None
        return await self._each([e for e in (asked, pair, entry) if e is not None])

    async def _each(self, wanted: Sequence[OutlineEntry]) -> list[Entry]:
        found = [await self.app.store().get(each.id) for each in wanted]
        return [entry for entry in found if entry is not None]

    async def records(self, outline: Outline, turn: OutlineTurn) -> list[TraceRecord]:
        """The trace of a turn."""
        return (await self._records(outline, [turn])).get(turn.turn_id, [])

    async def _records(
        self, outline: Outline, turns: Sequence[OutlineTurn]
    ) -> dict[str, list[TraceRecord]]:
        """The traces of consecutive turns, by turn."""
        first, last = outline.entries[turns[0].start], outline.entries[turns[-1].end - 1]
        return await self._traced.of(self.trace, first.session_id, first.time, last.time)

    async def turn_lines(self, outline: Outline, start: int, count: int) -> list[dict[str, Any]]:
        """A range of turns; each lasts as long as its timeline shows."""
        turns = outline.turns[start : start + count]
        if not turns:
            return []
        traced = await self._records(outline, turns)
        return [outline.turn_line(turn, traced.get(turn.turn_id, ())) for turn in turns]

    async def trace(self, session: str | None, since: float) -> Trace:
        """The trace of a session, or of all."""
        return await self.apart(lambda tape, traces: traces.read(session, since=since))

    async def apart(self, reading: Callable[[TapeStore, TraceStore], Coroutine[Any, Any, T]]) -> T:
        """Read much of the trace in a thread, because that may take seconds.

        A file is opened again in the thread. Other stores belong to the loop.
        """
        tape = self.app.store()
        traces = await Tracing.of(self.app).store()  # with what waited to be kept
        path: str | None = getattr(tape, "path", None)
        if path is None or path == ":memory:":
            return await reading(tape, traces)
        return await asyncio.to_thread(asyncio.run, _reading_file(path, reading))

    async def timeline(self, outline: Outline, turn: OutlineTurn, *, hooks: bool) -> Timeline:
        """The bars of a turn, with those of hooks or without."""
        key = outline.session_id, turn.number, hooks
        known = self._timelines.get(key)
        if known is None or not known.is_good(outline, turn):
            known = self._timelines[key] = await self._made(outline, turn, hooks)
        self._timelines.move_to_end(key)
        while len(self._timelines) > TIMELINES:
            self._timelines.popitem(last=False)
        return known

    async def glance(self, outline: Outline, turn: OutlineTurn) -> Timeline:
        """The first bars of a turn, shown while the rest is read."""
        from .timeline import bars_of

        if turn.end - turn.start <= 2 * GLANCE:
            return await self.timeline(outline, turn, hooks=False)
        beginning = replace(turn, end=turn.start + GLANCE)
        entries = await self.entries(outline, beginning)
        last = await self._each([outline.entries[turn.end - 1]])
        ended = [entry for entry in last if entry.kind == TURN]
        bars = bars_of([*entries, *ended], [], running=not ended)
        return Timeline(outline.entries[-1].id, time(), bars, False)

    async def _made(self, outline: Outline, turn: OutlineTurn, hooks: bool) -> Timeline:
        from .timeline import bars_of

        read = time()
        entries = await self.entries(outline, turn)
        records = await self.records(outline, turn)
        is_running = self.app.sessions.run(outline.session_id) is not None
        running = is_running and turn.number == len(outline.turns)
        bars = bars_of(entries, records, running=running, hooks=hooks)
        return Timeline(outline.entries[-1].id, read, bars, bool(records))


async def _reading_file(
    path: str, reading: Callable[[TapeStore, TraceStore], Coroutine[Any, Any, T]]
) -> T:
    from ..trace import traces_of

    store = SQLiteStore(path)
    try:
        return await reading(store, traces_of(store))
    finally:
        await store.close()


class TracedTurns:
    """The trace of the last viewed session, by turn.

    A trace is read from a point in time to its end, so a turn that ended long before the last read
    comes from that read.
    """

    def __init__(self) -> None:
        self._session = ""
        self._since = 0.0
        self._read = 0.0
        self._turns: dict[str, list[TraceRecord]] = {}
        self._reading = asyncio.Lock()

    async def of(
        self,
        trace: Callable[[str, float], Awaitable[Trace]],
        session: str,
        began: float,
        ended: float,
    ) -> dict[str, list[TraceRecord]]:
        """The records of the turns whose entries are between these times, by turn."""
        since = began - BEFORE
        async with self._reading:  # a page asks for a turn and for an entry of it at once
            is_held = session == self._session and since >= self._since
            if not is_held or ended + SETTLED >= self._read:
                read = time()
                turns = by_turn((await trace(session, since)).records)
                if is_held:  # the earlier read goes further back
                    return turns
                self._session, self._since, self._read, self._turns = session, since, read, turns
            return self._turns


def by_turn(records: list[TraceRecord]) -> dict[str, list[TraceRecord]]:
    """Records by the turn that they belong to."""
    found: dict[str, list[TraceRecord]] = {}
    for record in records:
        found.setdefault(record.turn, []).append(record)
    return found


def turn_of(outline: Outline, number: int) -> OutlineTurn:
    """A turn by its number, or 404."""
    if not 1 <= number <= len(outline.turns):
        raise HTTPException(404, f"session {outline.session_id!r} has {len(outline.turns)} turns")
    return outline.turns[number - 1]
