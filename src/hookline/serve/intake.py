"""The intake: a message is in the inbox before it is acknowledged, and leaves it once settled.

While the backlog of earlier processes is processed, new messages only enter the inbox and are taken
from there in order, so that messages of one session never overtake each other.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from hookline.agent.journal import field_names
from hookline.runtime.inbox import Inbox, QueuedMessage
from hookline.system.file_lock import Lock
from hookline.system.private_files import private_folder
from hookline.types import Envelope, field_of

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.tape import SQLiteStore

REMEMBERED = 7 * 86400.0
"""Seconds for which a settled message's key is kept."""
FORGET_EVERY = 10_000
"""Messages between two deletions of old keys."""
_PAGE = 100


class Intake:
    """One gateway's part of the inbox."""

    def __init__(self, app: Hookline, inbox: Inbox | None = None) -> None:
        self._app = app
        self._given = inbox
        self._inbox: Inbox | None = None
        self._file: SQLiteStore | None = None
        self.owner = uuid4().hex
        """The name of this process as owner of messages."""
        self._alive = self._lock_of(self.owner)
        self._last = 0
        self._count = 0
        self.catching_up = False
        """Whether messages are taken from the inbox, because earlier ones still wait there."""

    def _lock_of(self, owner: str) -> Lock:
        return Lock(self._app.home / "inbox" / f"{owner}.lock")

    def _is_alive(self, owner: str) -> bool:
        return owner == self.owner or self._lock_of(owner).is_held()

    @property
    def inbox(self) -> Inbox:
        """The inbox. A gateway that never started has none."""
        assert self._inbox is not None, "the intake is not open"
        return self._inbox

    @property
    def is_with_the_tape(self) -> bool:
        """Whether every writer of these tapes also uses this inbox."""
        return self._file is None

    # --- the running scope --------------------------------------------------------------------

    async def open(self) -> None:
        """Take over the messages of dead processes."""
        self._alive.acquire()
        self._inbox = self._given or self._beside_the_tape()
        await self._inbox.forget(time.time() - REMEMBERED)
        self.catching_up = await self._inbox.take_over(self.owner, self._is_alive) > 0

    async def close(self) -> None:
        """Release everything. Unsettled messages wait for the next start."""
        self._alive.release(forget=True)
        if self._file is not None:
            await self._file.close()
            self._file = None

    def _beside_the_tape(self) -> Inbox:
        """An inbox in the tape's file, or in a separate one if a plugin provides the tapes."""
        store: Any = self._app.store()
        if hasattr(store, "using"):
            return Inbox(store)
        from hookline.tape import SQLiteStore

        private_folder(self._app.home)
        self._file = SQLiteStore(self._app.home / "inbox.db")
        return Inbox(self._file)

    # --- messages -----------------------------------------------------------------------------

    async def accept(self, envelope: Envelope) -> bool:
        """Store a message. Returns False if it was accepted before."""
        accepted = await self.inbox.accept(envelope, self.owner)
        if accepted.duplicate:
            return False
        self._last = accepted.number
        return True

    async def settle(self, envelope: Envelope, outcome: str) -> None:
        """Record the outcome of a message."""
        await self.inbox.settle(envelope, outcome)
        self._count += 1
        if self._count % FORGET_EVERY == 0:
            await self.inbox.forget(time.time() - REMEMBERED)

    async def is_elsewhere(self, envelope: Envelope) -> bool:
        """Whether another live process owns a message."""
        owner = await self.inbox.owner_of(envelope)
        return owner is not None and owner != self.owner and self._is_alive(owner)

    async def backlog(self) -> AsyncGenerator[QueuedMessage]:
        """Messages waiting from earlier processes, and those that arrive meanwhile, in order."""
        after = 0
        while self.catching_up:
            page = await self.inbox.waiting(self.owner, after=after, limit=_PAGE)
            for waiting in page:
                after = waiting.number
                yield waiting
            # Nothing is accepted between this check and the change: both run in one step of the loop.
            if not page and after >= self._last:
                self.catching_up = False


def with_id(message: Envelope) -> Envelope:
    """Return the message with an id by which it is found again."""
    if field_of(message, "message_id"):
        return message
    name = uuid4().hex
    if isinstance(message, dict):
        message["message_id"] = name
        return cast("Envelope", message)
    try:
        message.message_id = name
    except (
        AttributeError,
        TypeError,
    ):  # an object that accepts no fields: pass its fields on as a mapping
        fields = {field: field_of(message, field) for field in field_names(message)}
        return {**fields, "message_id": name}
    return message
