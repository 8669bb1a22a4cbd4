"""Storage of records: next to the tape, in its own file, bounded."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from .record import TraceRecord
from .rows import records_of
from .settings import TraceSettings

T = TypeVar("T")

EVERY = 16
"""Of how many chunks one makes its session be looked at, whether it is too large."""
SESSIONS = 1_000
"""How many sessions' growth is remembered."""


@dataclass(slots=True)
class Chunk:
    """Records of one session that are written together."""

    session: str
    started: float
    ended: float
    records: int
    body: str
    """The records, as `rows` has it."""
    fired: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    """How often each hook was called, and when last; of chunks that are written together, one may tell
    for all."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.body) if self.body.isascii() else len(self.body.encode())


@dataclass(slots=True)
class Trace:
    """The trace that was read, in order."""

    records: list[TraceRecord]
    damaged: int = 0
    """Parts that could not be read."""
    dropped: int = 0
    """Older records that were dropped to make room."""

    def _repr_html_(self) -> str:
        """Show the trace in a notebook."""
        from .trace_document import trace_document

        return trace_document(self).fragment()


class TraceStore(Protocol):
    """Stores chunks of records, and drops the oldest if there are too many."""

    async def write(self, chunks: Sequence[Chunk], bounds: TraceSettings) -> None:
        """Store chunks atomically, and drop the excess."""
        ...

    async def read(self, session: str | None = None, *, since: float = 0.0) -> Trace:
        """The records of a session, or of all, from a time on."""
        ...

    async def fired(self) -> dict[str, tuple[int, float]]:
        """How often each hook was seen, and when last; dropped records count too."""
        ...


class Growths:
    """How much was written since the last check, by session and in total. The check repeats after a
    twentieth of the limit.
    """

    def __init__(self) -> None:
        self._total = (0, 0)
        self._sessions: dict[str, tuple[int, int]] = {}
        self._is_first = True

    def of(self, chunks: Sequence[Chunk], last: int, bounds: TraceSettings) -> tuple[set[str], bool]:
        """The sessions that may have become too large with these, and whether all may have.

        `last` is the number of the last one. Sessions are looked at by these numbers too, and all
        when a process first writes: whatever other processes wrote is counted then.
        """
        sessions = self._sessions
        most_records, most_bytes = bounds.session_records, bounds.session_bytes
        grown: set[str] = set()
        total_records, total_bytes = self._total
        for number, chunk in enumerate(chunks, last - len(chunks) + 1):
            session, size = chunk.session, chunk.size
            total_records, total_bytes = total_records + chunk.records, total_bytes + size
            records, before = sessions.pop(session, (0, 0))  # the one written to last stands last
            records, size = records + chunk.records, before + size
            if records * 20 > most_records or size * 20 > most_bytes or number % EVERY == 0:
                grown.add(session)
            else:
                sessions[session] = records, size
        while len(sessions) > SESSIONS:
            del sessions[next(iter(sessions))]
        due = total_records * 20 > bounds.records or total_bytes * 20 > bounds.bytes or self._is_first
        self._total = (0, 0) if due else (total_records, total_bytes)
        self._is_first = False
        return grown, due


def values_of(chunk: Chunk) -> tuple[str, float, float, int, int, str]:
    """A chunk as a row of the table."""
    return chunk.session, chunk.started, chunk.ended, chunk.records, chunk.size, chunk.body


class MemoryTraces:
    """Keeps records while the process lives."""

    def __init__(self) -> None:
        self._chunks: deque[Chunk] = deque()
        self._dropped: dict[str, int] = {}
        self._fired: dict[str, tuple[int, float]] = {}

    async def write(self, chunks: Sequence[Chunk], bounds: TraceSettings) -> None:
        """Keep chunks."""
        self._chunks.extend(chunks)
        for chunk in chunks:
            for hook, (count, last) in chunk.fired.items():
                before, latest = self._fired.get(hook, (0, 0.0))
                self._fired[hook] = (before + count, max(last, latest))
            own = [each for each in self._chunks if each.session == chunk.session]
            self._drop(own, bounds.session_records, bounds.session_bytes)
        self._drop(list(self._chunks), bounds.records, bounds.bytes)

    def _drop(self, chunks: list[Chunk], records: int, size: int) -> None:
        for chunk in chunks[: too_many([(c.records, c.size) for c in chunks], records, size)]:
            self._chunks.remove(chunk)
            self._dropped[chunk.session] = self._dropped.get(chunk.session, 0) + chunk.records

    async def read(self, session: str | None = None, *, since: float = 0.0) -> Trace:
        """The records of a session, or of all."""
        found = (c for c in self._chunks if session in (None, c.session) and c.ended >= since)
        dropped = self._dropped
        lost = sum(dropped.values()) if session is None else dropped.get(session, 0)
        return parsed((c.body for c in found), since, lost)

    async def fired(self) -> dict[str, tuple[int, float]]:
        """How often each hook was seen, and when last."""
        return dict(self._fired)


class TapeFile(Protocol):
    """A tape's store in a SQLite file that allows other tables next to its own."""

    async def using(self, doing: str, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file."""
        ...


_TABLES = """
    CREATE TABLE IF NOT EXISTS trace (
        number INTEGER PRIMARY KEY, session TEXT NOT NULL, started REAL NOT NULL,
        ended REAL NOT NULL, records INTEGER NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS trace_sessions ON trace (session, number, records, bytes);
    CREATE TABLE IF NOT EXISTS trace_dropped (session TEXT PRIMARY KEY, records INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS trace_hooks (
        hook TEXT PRIMARY KEY, count INTEGER NOT NULL, last REAL NOT NULL
    );
"""
_INSERT = "INSERT INTO trace (session, started, ended, records, bytes, body) VALUES (?, ?, ?, ?, ?, ?)"
_FIRED = """
    INSERT INTO trace_hooks VALUES (?, ?, ?) ON CONFLICT (hook) DO UPDATE SET
    count = count + excluded.count, last = max(last, excluded.last)
"""
_DROPPED = """
    INSERT INTO trace_dropped VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET
    records = records + excluded.records
"""


class SQLiteTraces:
    """Keeps records in tables of their own in the tape's file."""

    def __init__(self, file: TapeFile) -> None:
        self._file = file
        self._made = False
        self._growths = Growths()

    async def write(self, chunks: Sequence[Chunk], bounds: TraceSettings) -> None:
        """Keep chunks."""

        def insert(db: sqlite3.Connection) -> None:
            if not self._made:
                for statement in filter(str.strip, _TABLES.split(";")):
                    db.execute(statement)
                self._made = True
            db.execute("BEGIN IMMEDIATE")
            try:
                db.executemany(_INSERT, map(values_of, chunks))
                db.executemany(_FIRED, ((h, n, at) for h, (n, at) in fired_in(chunks).items()))
                (last,) = db.execute("SELECT last_insert_rowid()").fetchone()
                grown, all_grown = self._growths.of(chunks, last, bounds)
                for session in grown:
                    limits = (bounds.session_records, bounds.session_bytes)
                    self._drop(db, "WHERE session = ?", (session,), limits)
                if all_grown:
                    self._drop(db, "", (), (bounds.records, bounds.bytes))
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

        await self._file.using("write the trace beside", insert)

    def _drop(
        self, db: sqlite3.Connection, where: str, values: tuple[str, ...], limits: tuple[int, int]
    ) -> None:
        sums = f"SELECT total(records), total(bytes) FROM trace {where}"
        records, size = db.execute(sums, values).fetchone()
        if records <= limits[0] and size <= limits[1]:
            return
        listed = f"SELECT number, session, records, bytes FROM trace {where} ORDER BY number"
        rows = db.execute(listed, values).fetchall()
        for number, session, count, _ in rows[: too_many([r[2:] for r in rows], *limits)]:
            db.execute("DELETE FROM trace WHERE number = ?", (number,))
            db.execute(_DROPPED, (session, count))

    async def read(self, session: str | None = None, *, since: float = 0.0) -> Trace:
        """The records of a session, or of all."""

        def select(db: sqlite3.Connection) -> tuple[list[str], int]:
            if not has_tables(db):
                return [], 0
            where = "" if session is None else " AND session = ?"
            values = () if session is None else (session,)
            query = f"SELECT CAST(body AS TEXT) FROM trace WHERE ended >= ?{where} ORDER BY number"
            rows = db.execute(query, (since, *values)).fetchall()
            total = f"SELECT total(records) FROM trace_dropped WHERE 1 {where}"
            (lost,) = db.execute(total, values).fetchone()
            return [row[0] for row in rows], int(lost)

        bodies, lost = await self._file.using("read the trace beside", select)
        return parsed(bodies, since, lost)

    async def fired(self) -> dict[str, tuple[int, float]]:
        """How often each hook was seen, and when last."""

        def select(db: sqlite3.Connection) -> dict[str, tuple[int, float]]:
            if not has_tables(db):
                return {}
            rows = db.execute("SELECT hook, count, last FROM trace_hooks")
            return {hook: (count, last) for hook, count, last in rows}

        return await self._file.using("read the trace beside", select)


def fired_in(chunks: Iterable[Chunk]) -> dict[str, tuple[int, float]]:
    """How often each hook was called in these, and when last."""
    fired: dict[str, tuple[int, float]] = {}
    for chunk in chunks:
        for hook, (count, last) in chunk.fired.items():
            before, latest = fired.get(hook, (0, 0.0))
            fired[hook] = (before + count, max(last, latest))
    return fired


def has_tables(db: sqlite3.Connection) -> bool:
    """Whether anything was ever traced into this file."""
    named = "SELECT 1 FROM sqlite_master WHERE name = 'trace_hooks'"
    return db.execute(named).fetchone() is not None


def too_many(sizes: Sequence[tuple[int, int]], records: int, size: int) -> int:
    """How many of the oldest chunks must go; the newest stays, however large."""
    count, total = sum(n for n, _ in sizes), sum(b for _, b in sizes)
    gone = 0
    while gone < len(sizes) - 1 and (count > records or total > size):
        count, total = count - sizes[gone][0], total - sizes[gone][1]
        gone += 1
    return gone


def parsed(bodies: Iterable[str], since: float, dropped: int) -> Trace:
    """Decode chunks; damaged ones are counted and skipped."""
    trace = Trace([], dropped=dropped)
    for body in bodies:
        records, damaged = records_of(body)
        trace.damaged += damaged
        trace.records += [record for record in records if record.time >= since]
    trace.records.sort(key=lambda record: record.time)
    return trace


def traces_of(store: object) -> TraceStore:
    """The trace store of a tape: next to the tape if its store allows it, otherwise in memory.

    A store of tapes may have a method `traces()` that returns the `TraceStore`.
    """
    own: Any = getattr(store, "traces", None)
    if callable(own):
        return cast("TraceStore", own())
    if callable(getattr(store, "connection", None)):
        from .postgres import PostgresTraces, TapeDatabase

        return PostgresTraces(cast("TapeDatabase", store))
    if callable(getattr(store, "using", None)):
        return SQLiteTraces(cast("TapeFile", store))
    return MemoryTraces()
