"""How entries get into PostgreSQL: each at the next place of its session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_type_hints

from psycopg import errors

from hookline.errors import DuplicateEntry, TapeConflict, TapeLocked, UnknownEntry
from hookline.system.recent import Recent
from hookline.system.retry import RetryPolicy

from ..entry import STORED, EntryRow, columns, storable
from ..placement import COLUMNS, PLACES, Expected, Leaf, only_session, place
from .connection import Connection
from .tables import within

_TYPES = {float: "float8", int: "bigint", bool: "boolean"}
_HINTS = {**get_type_hints(EntryRow), "seq": int, "jump": bool}
_COLUMNS = ", ".join(COLUMNS)
_ARRAYS = ", ".join(f"%s::{_TYPES.get(_HINTS[name], 'text')}[]" for name in COLUMNS)
_INSERT = f"""
    INSERT INTO {{schema}}.entries ({_COLUMNS}) VALUES ({", ".join(["%s"] * len(COLUMNS))})
"""
_INSERT_MANY = f"INSERT INTO {{schema}}.entries ({_COLUMNS}) SELECT * FROM unnest({_ARRAYS})"
_INSERT_FIRST = f"""
    WITH begun AS (
        INSERT INTO {{schema}}.sessions (id) VALUES (%s) ON CONFLICT (id) DO NOTHING RETURNING number
    )
    INSERT INTO {{schema}}.entries ({_COLUMNS})
    SELECT {", ".join(f"e.{name}" for name in STORED)}, number * {PLACES} + e.seq, e.jump
    FROM begun CROSS JOIN unnest({_ARRAYS}) e ({_COLUMNS})
    RETURNING seq
"""
_BEGIN = """
    INSERT INTO {schema}.sessions (id) SELECT unnest(%s::text[]) ON CONFLICT (id) DO NOTHING
"""
_LEAVES = f"""
    SELECT s.id, s.number, leaf.id, leaf.seq FROM {{schema}}.sessions s LEFT JOIN LATERAL (
        SELECT e.id, e.seq FROM {{schema}}.entries e
        WHERE e.seq BETWEEN s.number * {PLACES} AND s.number * {PLACES} + {PLACES - 1}
        ORDER BY e.seq DESC LIMIT 1
    ) leaf ON true WHERE s.id = ANY(%s::text[])
"""
_KNOWN = "SELECT id FROM {schema}.entries WHERE id = ANY(%s::text[])"
_KEPT = f"""
    SELECT {columns()} FROM {{schema}}.entries e
    JOIN {{schema}}.sessions s ON s.number = e.seq / {PLACES} WHERE e.id = ANY(%s::text[])
"""
_MOST_LEAVES: Final = 1_000
_RETRY: Final = RetryPolicy(attempts=200, first=0.0005, max=0.05, jitter=1.0)
"""After another writer was faster: each time, that writer's append succeeded."""


NO_LEAF: Final = Leaf(None, 0)
"""Of a session that did not exist when it was looked for: its places are counted from its first."""


class Appending:
    """One append, which may be tried on several connections until its outcome is known."""

    def __init__(self, appender: PostgresAppender, rows: Sequence[EntryRow], expect: Expected) -> None:
        self._appender = appender
        self._rows = rows
        self._expect = expect
        self._tried = False
        self.sending = False
        """Whether it may have reached the database: from then on, it is waited for."""

    async def __call__(self, connection: Connection) -> None:
        """Append all or none, unless an earlier try did so and its response was lost.

        The database decides the race with such a try that is still in progress: both have the same
        ids, and one is refused.
        """
        again, self._tried, self.sending = self._tried, True, True
        try:
            if again and await self._appender.kept(connection, self._rows):
                return
            await self._appender.append(connection, self._rows, self._expect)
        except (DuplicateEntry, TapeConflict):
            if not again or not await self._appender.kept(connection, self._rows):
                raise


class PostgresAppender:
    """Appends, and remembers the leaves of the sessions that it saw."""

    def __init__(self, schema: str) -> None:
        self._leaves: Recent[str, Leaf] = Recent(_MOST_LEAVES)
        self._insert = within(_INSERT, schema)
        self._insert_many = within(_INSERT_MANY, schema)
        self._insert_first = within(_INSERT_FIRST, schema)
        self._begin = within(_BEGIN, schema)
        self._read_leaves = within(_LEAVES, schema)
        self._known = within(_KNOWN, schema)
        self._kept = within(_KEPT, schema)

    def remember(self, session_id: str, leaf_id: str | None, seq: int) -> None:
        """The leaf of a session as it was read: the next append need not read it."""
        known = self._leaves.get(session_id)
        if known is None or known.next_seq <= seq:  # answers may come in another order
            self._leaves[session_id] = Leaf(leaf_id, seq + 1)

    def remember_none(self, session_id: str) -> None:
        """A session was looked for in vain: the next append begins it, and need not look first."""
        if session_id not in self._leaves:
            self._leaves[session_id] = NO_LEAF

    def forget(self) -> None:
        """Forget the leaves: another server may not have them."""
        self._leaves.clear()

    async def append(self, connection: Connection, rows: Sequence[EntryRow], expect: Expected) -> None:
        """Append all or none: to one session whose leaf is known by one statement.

        The leaf remembered may be old. Then its next place is taken, the database refuses the
        statement, and the leaf is read in a transaction: so that most appends need not read first.
        """
        session_id = rows[0].session_id if rows else ""
        leaf = self._leaves.get(session_id)
        if leaf is not None and only_session(session_id, leaf, rows, expect):
            leaves = {session_id: leaf}
            placed, foreign = place(rows, leaves)
            if not foreign and await self._append_quickly(connection, rows[-1], leaf, placed):
                if leaf is not NO_LEAF:
                    self._remember(leaves)
                return
        await self._append_slowly(connection, rows, expect)

    async def kept(self, connection: Connection, rows: Sequence[EntryRow]) -> bool:
        """Whether all these are on the tape already, as they are."""
        found = await connection.execute(self._kept, ([row.id for row in rows],))
        stored = {row.id: row for row in map(EntryRow._make, await found.fetchall())}
        return bool(rows) and all(stored.get(row.id) == row for row in rows)

    def _remember(self, leaves: Mapping[str, Leaf]) -> None:
        for session_id, leaf in leaves.items():
            self.remember(session_id, leaf.id, leaf.next_seq - 1)

    async def _append_quickly(
        self, connection: Connection, last: EntryRow, leaf: Leaf, placed: Sequence[tuple[Any, ...]]
    ) -> bool:
        """Append by one statement, and say whether that could be: the leaf may be an old one."""
        try:
            if leaf is not NO_LEAF:
                await self._write(connection, placed)
                return True
            arrays = [list(column) for column in zip(*placed, strict=True)]
            done = await connection.execute(self._insert_first, (last.session_id, *arrays))
            places = [seq for (seq,) in await done.fetchall()]
        except (errors.UniqueViolation, errors.CheckViolation):  # the leaf is another one by now
            places = []
        self._leaves.pop(last.session_id, None)
        if places:
            self.remember(last.session_id, last.id, max(places))
        return bool(places)

    async def _append_slowly(
        self, connection: Connection, rows: Sequence[EntryRow], expect: Expected
    ) -> None:
        """Append in one transaction, in which the leaves are read; again when another was faster."""
        failures = 0
        while not _RETRY.gives_up(failures):
            try:
                async with connection.transaction():
                    leaves = await self._append_once(connection, rows, expect)
            except errors.UniqueViolation as error:
                if error.diag.constraint_name == "entries_id":
                    duplicate = await self._first_duplicate(connection, rows)
                    raise DuplicateEntry(duplicate) from error
            except (errors.DeadlockDetected, errors.SerializationFailure):
                pass
            else:
                self._remember(leaves)
                return
            failures += 1
            await asyncio.sleep(_RETRY.delay(failures))
        raise TapeLocked(
            f"cannot append to {rows[0].session_id!r}: other writers were faster; try again"
        )

    async def _append_once(
        self, connection: Connection, rows: Sequence[EntryRow], expect: Expected
    ) -> dict[str, Leaf]:
        sessions = {row.session_id for row in rows}
        leaves = await self._leaves_of(connection, sessions.union(expect))
        for session_id, expected in expect.items():
            leaf = leaves.get(session_id)
            found = leaf and leaf.id
            if found != expected:
                raise TapeConflict(session_id, expected, found)
        if new := sorted(sessions.difference(leaves)):  # sorted: two writers wait for each other once
            await connection.execute(self._begin, (new,))
            leaves |= await self._leaves_of(connection, new)
        leaves = {session_id: leaves[session_id] for session_id in sessions}
        placed, foreign = place(rows, leaves)
        if foreign:
            found = await connection.execute(self._known, (_storable(foreign.values()),))
            known = {entry_id for (entry_id,) in await found.fetchall()}
            for entry_id, parent_id in foreign.items():
                if parent_id not in known:
                    raise UnknownEntry(parent_id, parent_of=entry_id)
        await self._write(connection, sorted(placed, key=_seq))
        return leaves

    async def _leaves_of(self, connection: Connection, sessions: Any) -> dict[str, Leaf]:
        found = await connection.execute(self._read_leaves, (_storable(sessions),))
        return {
            session_id: Leaf(leaf_id, number * PLACES if seq is None else seq + 1)
            for session_id, number, leaf_id, seq in await found.fetchall()
        }

    async def _write(self, connection: Connection, placed: Sequence[tuple[Any, ...]]) -> None:
        if len(placed) == 1:
            await connection.execute(self._insert, placed[0])
        elif placed:
            arrays = [list(column) for column in zip(*placed, strict=True)]
            await connection.execute(self._insert_many, arrays)

    async def _first_duplicate(self, connection: Connection, rows: Sequence[EntryRow]) -> str:
        found = await connection.execute(self._known, ([row.id for row in rows],))
        seen = {entry_id for (entry_id,) in await found.fetchall()}
        for row in rows:
            if row.id in seen:
                return row.id
            seen.add(row.id)
        return rows[0].id


def _seq(placed: tuple[Any, ...]) -> int:
    return placed[-2]


def _storable(names: Any) -> list[str]:
    return [name for name in names if storable(name)]
