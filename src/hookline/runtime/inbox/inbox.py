"""The inbox: messages of channels in the ledger, with their envelopes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from hookline.types import Envelope, address_of, field_of

from .codec import packed, unpacked
from .ledger import Ledger, LedgerRecord
from .storage import SQLiteLedgerStorage

JOINED = "joined"
"""The field of an envelope that names the messages which became part of it, a line each."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message was accepted, now or before."""

    number: int
    """Grows with every message: the order in which they were accepted."""
    duplicate: bool = False
    """Whether its id was known: it has its turn, or will have it."""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message whose turn is not over."""

    number: int
    envelope: dict[str, Any]
    accepted: float


class MessageFile(Protocol):
    """A SQLite file of tapes."""

    async def using(self, doing: str, action: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do something with the file."""
        ...


class Inbox:
    """Keeps messages in the file in which their turns are recorded.

    The content of a message is deleted when its turn is over. Its id stays until it is forgotten, so
    that a channel may deliver the message again without harm.
    """

    def __init__(self, file: MessageFile) -> None:
        self._ledger = Ledger(SQLiteLedgerStorage(partial(file.using, "keep a message in")))

    async def accept(self, envelope: Envelope, owner: str) -> Accepted:
        """Record a message unless its id is known; it is durable when this returns."""
        source, name = _place(key_of(envelope))
        record = LedgerRecord(0, source, name, "started", packed(envelope), time.time(), owner)
        taken, found = await self._ledger.claim(record)
        return Accepted(found.number, duplicate=not taken)

    async def settle(self, envelope: Envelope, outcome: str) -> None:
        """Record the outcome of a message, and of those that became part of it."""
        for key in keys_of(envelope):
            await self._ledger.settle(*_place(key), "", "done", outcome)

    async def waiting(self, owner: str, *, after: int = 0, limit: int = 100) -> list[QueuedMessage]:
        """The messages of an owner whose turns are not over, in order."""
        found = await self._ledger.unfinished(owner, after=after, limit=limit)
        return [QueuedMessage(each.number, unpacked(each.body), each.time) for each in found]

    async def owner_of(self, envelope: Envelope) -> str | None:
        """The owner of a message; None if its turn is over or it was never accepted."""
        found = await self._ledger.find(*_place(key_of(envelope)))
        return found.owner if found is not None and found.state == "started" else None

    async def take_over(self, owner: str, is_alive: Callable[[str], bool]) -> int:
        """Reassign the messages of dead owners to `owner`. Returns how many there were."""
        others = [other for other in await self._ledger.owners() if other != owner]
        gone = [other for other in others if not is_alive(other)]
        return sum([await self._ledger.take_over_all(other, owner) for other in gone])

    async def forget(self, before: float) -> int:
        """Forget the ids of messages whose turns were over before a time. Returns how many."""
        return await self._ledger.forget_before(before)


def key_of(envelope: Envelope) -> str:
    """What a message is known by: its channel, its chat, and its id there."""
    return _key(envelope, str(field_of(envelope, "message_id") or ""))


def keys_of(envelope: Envelope) -> list[str]:
    """The keys of a message and of those that became part of it."""
    joined = str(field_of(envelope, JOINED) or "")
    return [key_of(envelope), *(_key(envelope, name) for name in joined.splitlines())]


def _key(envelope: Envelope, message_id: str) -> str:
    return "\n".join((*address_of(envelope), message_id))


def _place(key: str) -> tuple[str, str]:
    """The source and the id under which the ledger has a message."""
    source, _, name = key.rpartition("\n")
    return source, name
