"""An inbox in the tape's SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from hookline.types import Envelope

from .codec import packed, unpacked
from .inbox import Accepted, QueuedMessage, key_of, keys_of

_ACCEPT: Final = (
    "INSERT INTO inbox (id, owner, accepted, envelope) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)
_SETTLE: Final = (
    "UPDATE inbox SET outcome = ?, settled = ?, owner = '', envelope = NULL "
    "WHERE id = ? AND outcome IS NULL"
)
_WAITING: Final = (
    "SELECT number, envelope, accepted FROM inbox "
    "WHERE owner = ? AND outcome IS NULL AND number > ? ORDER BY number LIMIT ?"
)
_TAKE_OVER: Final = "UPDATE inbox SET owner = ? WHERE owner = ? AND outcome IS NULL"
_KEEPING: Final = "keep a message in"


class File(Protocol):
    """A SQLite file of tapes."""

    async def using(self, doing: str, action: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do something with the file."""
        ...


class SQLiteInbox:
    """Keeps messages in the file in which their turns are recorded.

    What a message said is let go of when it is done with; its key stays until it is forgotten, so that
    a channel may deliver it again without harm.
    """

    def __init__(self, file: File) -> None:
        self._using: Callable[[str, Callable[[sqlite3.Connection], Any]], Awaitable[Any]] = file.using

    async def accept(self, envelope: Envelope, owner: str) -> Accepted:
        """Keep a message, unless its key is known."""
        key = key_of(envelope)
        row = (key, owner, time.time(), packed(envelope))

        def insert(db: sqlite3.Connection) -> Accepted:
            done = db.execute(_ACCEPT, row)
            if done.rowcount:
                return Accepted(done.lastrowid or 0)
            (number,) = db.execute("SELECT number FROM inbox WHERE id = ?", (key,)).fetchone()
            return Accepted(number, duplicate=True)

        return await self._using(_KEEPING, insert)

    async def settle(self, envelope: Envelope, outcome: str) -> None:
        """Note what became of a message, and of those that became part of it."""
        now = time.time()
        for key in keys_of(envelope):
            row = (outcome, now, key)
            await self._using("note an outcome in", lambda db, row=row: db.execute(_SETTLE, row))

    async def waiting(self, owner: str, *, after: int = 0, limit: int = 100) -> list[QueuedMessage]:
        """An owner's messages that are not done with, in order."""
        rows: list[tuple[int, str, float]] = await self._using(
            "read", lambda db: db.execute(_WAITING, (owner, after, limit)).fetchall()
        )
        return [QueuedMessage(number, unpacked(said), at) for number, said, at in rows]

    async def owner_of(self, envelope: Envelope) -> str | None:
        """Who has a message that is not done with."""
        statement = "SELECT owner FROM inbox WHERE id = ? AND outcome IS NULL"
        key = key_of(envelope)
        row = await self._using("read", lambda db: db.execute(statement, (key,)).fetchone())
        return row[0] if row else None

    async def take_over(self, owner: str, is_alive: Callable[[str], bool]) -> int:
        """Give an owner what those have who are gone."""
        owners = "SELECT DISTINCT owner FROM inbox WHERE outcome IS NULL AND owner != ?"
        found = await self._using("read", lambda db: db.execute(owners, (owner,)).fetchall())
        taken = 0
        for (other,) in found:
            if not is_alive(other):
                row = (owner, other)
                done = await self._using(_KEEPING, lambda db, row=row: db.execute(_TAKE_OVER, row))
                taken += done.rowcount
        return taken

    async def forget(self, before: float) -> int:
        """Forget the keys of messages that were done with before a time."""
        statement = "DELETE FROM inbox WHERE outcome IS NOT NULL AND settled < ?"
        done = await self._using(_KEEPING, lambda db: db.execute(statement, (before,)))
        return done.rowcount
