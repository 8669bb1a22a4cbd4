"""How entries get into a SQLite file: each at the next place of its session."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from hookline.errors import DuplicateEntry, TapeConflict, UnknownEntry
from hookline.system.recent import Recent

from ..entry import EntryRow
from ..placement import COLUMNS, PLACES, Expected, Leaf, only_session, place
from .schema import transaction

SEQ: Final = "SELECT seq FROM entries WHERE id = ?"

_NUMBER = "SELECT number FROM sessions WHERE id = ?"
_BEGIN = "INSERT INTO sessions (id) VALUES (?)"
_LEAF = "SELECT id, seq FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq DESC LIMIT 1"
_VALUES = f"({', '.join('?' * len(COLUMNS))})"
_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES {_VALUES}"
_FEW = 8
_INSERT_FEW = [_INSERT + f", {_VALUES}" * more for more in range(_FEW)]
_MOST_LEAVES = 1_000  # remembered; others are read again when they are needed


class Appender:
    """Appends to one connection, and remembers the leaves of the sessions that it appended to."""

    def __init__(self) -> None:
        self._leaves: Recent[str, Leaf] = Recent(_MOST_LEAVES)

    def append(self, db: sqlite3.Connection, rows: Sequence[EntryRow], expect: Expected) -> None:
        """Append all or none: a few of one session by one statement, which is its own transaction.

        The leaf remembered may be old. Then its next place is taken, the database refuses the
        statement, and the leaf is read in a transaction: so that most appends need not read first.
        """
        session_id = rows[0].session_id if rows else ""
        leaf = self._leaves.get(session_id)
        if leaf is None or len(rows) > _FEW or not only_session(session_id, leaf, rows, expect):
            return self._append_slowly(db, rows, expect)
        leaves = {session_id: leaf}
        placed = _placed(db, rows, leaves)
        try:
            db.execute(_INSERT_FEW[len(rows) - 1], tuple(chain.from_iterable(placed)))
        except sqlite3.IntegrityError:
            return self._append_slowly(db, rows, expect)
        self._leaves[session_id] = leaves[session_id]
        return None

    def forget(self) -> None:
        """Forget the leaves: the last append was rolled back."""
        self._leaves.clear()

    def _append_slowly(
        self, db: sqlite3.Connection, rows: Sequence[EntryRow], expect: Expected
    ) -> None:
        """Append in one transaction, in which the leaves are read."""
        leaves: dict[str, Leaf] = {}
        sessions = {row.session_id for row in rows}
        try:
            with transaction(db):
                for session_id in sessions.union(expect):
                    leaf = _leaf(db, session_id, begin=session_id in sessions)
                    expected = expect.get(session_id, leaf.id)
                    if leaf.id != expected:
                        raise TapeConflict(session_id, expected, leaf.id)
                    if session_id in sessions:
                        leaves[session_id] = leaf
                db.executemany(_INSERT, _placed(db, rows, leaves))
        except sqlite3.IntegrityError as error:
            raise DuplicateEntry(_first_duplicate(db, rows)) from error
        for session_id, leaf in leaves.items():
            self._leaves[session_id] = leaf


def _placed(
    db: sqlite3.Connection, rows: Sequence[EntryRow], leaves: dict[str, Leaf]
) -> list[tuple[Any, ...]]:
    """The rows with their places; afterwards `leaves` are the new ones."""
    placed, foreign = place(rows, leaves)
    for entry_id, parent_id in foreign.items():
        if not _has(db, parent_id):
            raise UnknownEntry(parent_id, parent_of=entry_id)
    return placed


def _first_duplicate(db: sqlite3.Connection, rows: Sequence[EntryRow]) -> str:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen or _has(db, row.id):
            return row.id
        seen.add(row.id)
    return rows[0].id


def _leaf(db: sqlite3.Connection, session_id: str, *, begin: bool = False) -> Leaf:
    found = span(db, session_id)
    if found is None:
        number = db.execute(_BEGIN, (session_id,)).lastrowid if begin else 0
        return Leaf(None, (number or 0) * PLACES)
    leaf = db.execute(_LEAF, found).fetchone()
    return Leaf(leaf[0], leaf[1] + 1) if leaf else Leaf(None, found[0])


def span(db: sqlite3.Connection, session_id: str) -> tuple[int, int] | None:
    """The first and the last place that a session may use; None when it does not exist."""
    found = db.execute(_NUMBER, (session_id,)).fetchone()
    return None if found is None else (found[0] * PLACES, found[0] * PLACES + PLACES - 1)


def _has(db: sqlite3.Connection, entry_id: str) -> bool:
    return db.execute(SEQ, (entry_id,)).fetchone() is not None
