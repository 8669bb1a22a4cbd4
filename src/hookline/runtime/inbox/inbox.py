"""What a place for accepted messages must do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hookline.types import Envelope, address_of, field_of

JOINED = "joined"
"""The field of an envelope that names the messages which became part of it, a line each."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message was accepted, now or before."""

    number: int
    """Grows with every message: the order in which they were accepted."""
    duplicate: bool = False
    """Whether its key was known already: it has its turn, or will have it."""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message that is not done with."""

    number: int
    envelope: dict[str, Any]
    accepted: float


class Inbox(Protocol):
    """Keeps messages between being accepted and being done with."""

    async def accept(self, envelope: Envelope, owner: str) -> Accepted:
        """Keep a message, unless its key is known; it is durable when this returns."""
        ...

    async def settle(self, envelope: Envelope, outcome: str) -> None:
        """Note what became of a message, and let go of what it said."""
        ...

    async def waiting(self, owner: str, *, after: int = 0, limit: int = 100) -> list[QueuedMessage]:
        """An owner's messages that are not done with, in the order in which they were accepted."""
        ...

    async def owner_of(self, envelope: Envelope) -> str | None:
        """Who has a message that is not done with; None where it is, or was never accepted."""
        ...

    async def take_over(self, owner: str, is_alive: Callable[[str], bool]) -> int:
        """Give an owner what those have who are gone; how many messages that are."""
        ...

    async def forget(self, before: float) -> int:
        """Forget the keys of messages that were done with before a time; how many."""
        ...


def key_of(envelope: Envelope) -> str:
    """What a message is known by: its channel, its chat, and its id there."""
    return _key(envelope, str(field_of(envelope, "message_id") or ""))


def keys_of(envelope: Envelope) -> list[str]:
    """The keys of a message and of those that became part of it."""
    joined = str(field_of(envelope, JOINED) or "")
    return [key_of(envelope), *(_key(envelope, name) for name in joined.splitlines())]


def _key(envelope: Envelope, message_id: str) -> str:
    return "\n".join((*address_of(envelope), message_id))
