"""Tapes in one SQLite file: the store that is used when nothing else is configured."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, cast

from hookline.errors import TapeCorrupt, UnknownEntry
from hookline.system.retry import RetryPolicy

from ..entry import Entry, EntryRow, columns, entry_of, row_of
from ..outline import OutlineEntry, outline_columns
from ..placement import PLACES
from ..store import OPENING, Hit, SessionInfo
from ..text import phrases_of
from .append import SEQ, span
from .group_commit import Writers
from .index import catch_up, find
from .schema import MARKS, MARKS_ONLY, connect, is_busy, told

T = TypeVar("T")

_BUSY = RetryPolicy(first=0.0005, max=0.05)
"""The delays while another process writes."""
_FROM = f"FROM entries e CROSS JOIN sessions s ON s.number = e.seq / {PLACES}"
_SELECT = f"SELECT {columns()}, jump {_FROM}"
_OUTLINE = f"SELECT {columns(unread=('meta', 'payload'))}, jump {_FROM}"
_ID, _PARENT, _KIND = map(EntryRow._fields.index, ("id", "parent_id", "kind"))
_SHAPES = f"SELECT {outline_columns(session='?')} FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq"
_SAID = f"""
    SELECT {outline_columns()} FROM entries
    WHERE seq BETWEEN ? AND ? AND kind = 'message' ORDER BY seq
"""
_JUMP = """
    SELECT seq, parent_id FROM entries INDEXED BY entries_jump_places
    WHERE jump = 1 AND seq BETWEEN ? AND ? ORDER BY seq DESC LIMIT 1
"""
_NAME = f"""
    {_SELECT} WHERE seq = (
        SELECT max(seq) FROM entries WHERE kind = 'name' AND {MARKS_ONLY} AND seq BETWEEN ? AND ?
    )
"""
_outline_entry: Callable[[Any], OutlineEntry] = partial(
    cast("Any", tuple).__new__,
    OutlineEntry,  # a third of the time that `_make` takes
)
_BACK = "WHERE seq BETWEEN ? AND ? ORDER BY seq DESC"
_CHILDREN = f"""
    {_SELECT} WHERE seq IN (
        SELECT seq FROM entries WHERE parent_id = :id AND jump = 1
        UNION ALL
        SELECT seq FROM entries WHERE seq = :seq + 1 AND jump = 0
    ) ORDER BY time, e.id
"""
_SESSIONS = f"""
    SELECT number, (
        SELECT max(seq) FROM entries
        WHERE seq BETWEEN number * {PLACES} AND number * {PLACES} + {PLACES - 1}
    ) AS last, time
    FROM sessions CROSS JOIN entries ON seq = last
    WHERE substr(sessions.id, 1, length(:prefix)) = :prefix
    ORDER BY time DESC, entries.id DESC LIMIT :limit
"""


class SQLiteStore:
    """A `TapeStore` in one SQLite file, which other processes may use at the same time.

    A commit takes tens of microseconds, so calls are made where they stand, without a thread. When
    another process is writing, the call waits without blocking the event loop, for `lock_timeout`
    seconds at most; only opening the file may block that long. With `synchronous="NORMAL"` a commit
    survives the death of the process; with "FULL" the loss of power too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        lock_timeout: float = 10.0,
    ) -> None:
        self.path = os.fspath(path)
        self._lock_timeout = lock_timeout
        self._db = connect(self.path, synchronous, lock_timeout)
        self._guard = threading.Lock()  # held for one call at a time, never while waiting
        self._writers = Writers(self._run)

    async def append(
        self, entries: Sequence[Entry], *, expect: Mapping[str, str | None] | None = None
    ) -> None:
        """Keep the entries, all or none."""
        rows = [row_of(entry) for entry in entries]
        expected = expect or {}
        if rows or expected:
            await self._writers.append(rows, expected)

    async def get(self, entry_id: str) -> Entry | None:
        """The entry with this id."""
        statement = f"{_SELECT} WHERE e.id = ?"
        return await self._run("read", lambda db: self._one(db.execute(statement, (entry_id,))))

    async def leaf(self, session_id: str) -> Entry | None:
        """The entry last appended to the session."""

        def select(db: sqlite3.Connection) -> Entry | None:
            places = span(db, session_id)
            return places and self._one(db.execute(f"{_SELECT} {_BACK} LIMIT 1", places))

        return await self._run("read", select)

    async def branch(
        self, entry_id: str, *, stop_at: Collection[str] = frozenset(), until: str | None = None
    ) -> list[Entry]:
        """The path to this entry, oldest first."""

        def walk(db: sqlite3.Connection) -> list[Entry]:
            path: list[Entry] = []
            for row in self._path(db, entry_id, _SELECT):
                path.append(self._entry(row))
                if row[_KIND] in stop_at or row[_ID] == until:
                    break
            path.reverse()
            return path

        return await self._run("read", walk)

    async def nearest(self, entry_id: str, kinds: Collection[str]) -> Entry | None:
        """The nearest entry of one of these kinds on the path to the root."""

        def walk(db: sqlite3.Connection) -> str | None:
            steps = self._path(db, entry_id, _OUTLINE)
            return next((row[_ID] for row in steps if row[_KIND] in kinds), None)

        found = await self._run("read", walk)
        return None if found is None else await self.get(found)

    def _path(self, db: sqlite3.Connection, entry_id: str, select: str) -> Iterator[tuple[Any, ...]]:
        """The rows from this entry to the root: from each jump to the one before, a range of places."""
        next_id: str | None = entry_id
        while next_id is not None:
            seq = self._seq(db, next_id)
            next_id = None
            for row in db.execute(f"{select} {_BACK}", (seq - seq % PLACES, seq)):
                yield row
                if row[-1]:
                    next_id = row[_PARENT]
                    break

    async def entries(
        self,
        session_id: str,
        *,
        kinds: Collection[str] | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Entry]:
        """The session's entries as appended."""

        def select(db: sqlite3.Connection) -> list[Entry]:
            places = span(db, session_id)
            low = self._seq(db, after, session_id) + 1 if after is not None else places and places[0]
            high = self._seq(db, before, session_id) - 1 if before is not None else places and places[1]
            if places is None:
                return []
            where, values = _of_kinds(" WHERE seq BETWEEN ? AND ?", [low, high], kinds)
            order = "DESC" if newest_first else "ASC"
            statement = f"{_SELECT}{where} ORDER BY seq {order} LIMIT ?"
            rows = db.execute(statement, (*values, -1 if limit is None else limit))
            return [self._entry(row) for row in rows]

        return await self._run("read", select)

    async def outline(self, session_id: str) -> list[OutlineEntry]:
        """The session's tree in outline."""

        def select(db: sqlite3.Connection) -> list[OutlineEntry]:
            places = span(db, session_id)
            own = list(self._outlined(db, *places)) if places else []
            if not own or own[0].parent_id is None:
                return own
            runs = self._runs(db, own[0].parent_id)
            inherited = [e for low, high in reversed(runs) for e in self._outlined(db, low, high)]
            return inherited + own

        return await self._run("read", select)

    async def common_ancestor(self, first_id: str, second_id: str) -> str | None:
        """The nearest entry that is on the paths to both."""

        def select(db: sqlite3.Connection) -> str | None:
            second = dict(self._runs(db, second_id))
            for low, high in self._runs(db, first_id):
                if low in second:  # where two paths share a run, they share its start
                    seq = min(high, second[low])
                    return db.execute("SELECT id FROM entries WHERE seq = ?", (seq,)).fetchone()[0]
            return None

        return await self._run("read", select)

    def _runs(self, db: sqlite3.Connection, entry_id: str) -> list[tuple[int, int]]:
        """The runs of places that the path to this entry is made of, the nearest first."""
        runs: list[tuple[int, int]] = []
        next_id: str | None = entry_id
        while next_id is not None:
            high = self._seq(db, next_id)
            first = high - high % PLACES
            low, next_id = db.execute(_JUMP, (first, high)).fetchone() or (first, None)
            runs.append((low, high))
        return runs

    def _outlined(self, db: sqlite3.Connection, low: int, high: int) -> Iterator[OutlineEntry]:
        session = db.execute("SELECT id FROM sessions WHERE number = ?", (low // PLACES,)).fetchone()[0]
        return map(_outline_entry, db.execute(_SHAPES, (session, low, high)))

    async def children(self, entry_id: str) -> list[Entry]:
        """The entries whose parent this is."""

        def select(db: sqlite3.Connection) -> list[Entry]:
            named = {"id": entry_id, "seq": self._seq(db, entry_id)}
            return [self._entry(row) for row in db.execute(_CHILDREN, named)]

        return await self._run("read", select)

    async def sessions(
        self, *, prefix: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The sessions, the one written to last first."""

        def select(db: sqlite3.Connection) -> list[SessionInfo]:
            named = {"prefix": prefix or "", "limit": -1 if limit is None else limit}
            infos: list[SessionInfo] = []
            for number, last, updated in db.execute(_SESSIONS, named).fetchall():
                place = number * PLACES
                first = db.execute(f"{_SELECT} WHERE seq = ?", (place,)).fetchone()
                name = self._one(db.execute(_NAME, (place, last)))
                opening = map(_outline_entry, db.execute(_SAID, (place, place + OPENING - 1)))
                infos.append(
                    SessionInfo.of(self._entry(first), updated, last % PLACES + 1, name, opening)
                )
            return infos

        return await self._run("read", select)

    async def search(
        self,
        text: str,
        *,
        session_id: str | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        """The entries with all these words, newest first."""
        phrases = phrases_of(text)
        if not phrases:
            return []
        while await self._run("index", catch_up):
            await asyncio.sleep(0)  # a batch at a time, so that others get their turn

        def select(db: sqlite3.Connection) -> list[Hit]:
            places = None if session_id is None else span(db, session_id)
            if session_id is not None and places is None:
                return []
            where, values = (" AND seq BETWEEN ? AND ?", [*places]) if places else ("", [])
            where, values = _of_kinds(where, values, kinds)
            found = find(db, phrases, where, values, limit)
            rows = [db.execute(f"{_SELECT} WHERE seq = ?", (seq,)).fetchone() for seq in found]
            return [Hit.of(self._entry(row), phrases) for row in rows]

        return await self._run("search", select)

    async def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._guard:
            self._db.close()

    async def using(self, doing: str, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do something else with the file, such as keeping a table next to the tape's own."""
        return await self._run(doing, action)

    # --- How a call is made ---

    async def _run(self, doing: str, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do it now; while another process writes, wait without blocking and try again."""
        deadline = 0.0
        failures = 0
        while True:
            try:
                with self._guard:
                    return action(self._db)
            except sqlite3.Error as error:
                now = time.monotonic()
                deadline = deadline or now + self._lock_timeout
                if not is_busy(error) or now > deadline:
                    raise told(error, self.path, doing) from error
            failures += 1
            await asyncio.sleep(_BUSY.delay(failures))

    def _seq(self, db: sqlite3.Connection, entry_id: str, session_id: str | None = None) -> int:
        found = db.execute(SEQ, (entry_id,)).fetchone()
        if found is None:
            raise UnknownEntry(entry_id)
        if session_id is not None:
            places = span(db, session_id)
            if places is None or not places[0] <= found[0] <= places[1]:
                raise UnknownEntry(entry_id, session_id)
        return found[0]

    def _one(self, rows: sqlite3.Cursor) -> Entry | None:
        row = rows.fetchone()
        return None if row is None else self._entry(row)

    def _entry(self, row: Sequence[Any]) -> Entry:
        try:
            return entry_of(row)
        except ValueError as error:
            damaged = row[_ID]
            raise TapeCorrupt(
                f"{self.path} is damaged: entry {damaged!r} is not JSON ({error}); restore a copy"
            ) from error


def _of_kinds(where: str, values: list[Any], kinds: Collection[str] | None) -> tuple[str, list[Any]]:
    if kinds is None:
        return where, values
    where += f" AND kind IN ({', '.join('?' * len(kinds))})"
    if MARKS.issuperset(kinds):  # these words let the database use the index by kind
        where += f" AND {MARKS_ONLY}"
    return where, [*values, *kinds]
