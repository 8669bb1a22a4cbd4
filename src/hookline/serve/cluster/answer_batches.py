"""Gathering: the pieces of all answers that a worker makes go to their gateways together.

PostgreSQL wakes everybody who listens, for every notice that somebody sends. So the pieces of many
answers go as one, and the busier the database is, the more are gathered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from .items import Bundle, Item, together
from .relay import Relay

PAUSE: Final = 0.02
"""Seconds for which pieces are gathered before they are sent on their way."""
LONGEST_PAUSE: Final = 0.5
SHARE: Final = 5
"""How many times longer than the last sending took pieces are gathered."""


@dataclass(eq=False, slots=True)
class Pieces:
    """What is shown of one answer, and is not on its way yet."""

    gateway: str
    to: dict[str, Any]
    """The message that is answered."""
    items: list[Item] = field(default_factory=list[Item])


class Gathering:
    """Sends the pieces of answers, those of one answer in their order."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._waiting: dict[Pieces, None] = {}
        self._leaving: dict[Pieces, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._sent = asyncio.Event()
        self._pause = PAUSE

    def show(self, pieces: Pieces, item: Item) -> None:
        """Show something more of an answer soon."""
        pieces.items.append(item)
        self._waiting[pieces] = None
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def rest(self, pieces: Pieces) -> list[Item]:
        """What was not sent, when all that was is on its way: whoever asks sends it."""
        while pieces in self._leaving:
            await self._sent.wait()
        self._waiting.pop(pieces, None)
        items, pieces.items = pieces.items, []
        return together(items)

    async def _send(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while self._waiting:
                await asyncio.sleep(self._pause)
                began = clock()
                await self._sent_together()
                self._pause = min(max(PAUSE, SHARE * (clock() - began)), LONGEST_PAUSE)
        finally:
            self._sending = None

    async def _sent_together(self) -> None:
        self._leaving, self._waiting = self._waiting, {}
        self._sent.clear()
        shown: list[tuple[str, Bundle]] = []
        for pieces in self._leaving:
            items, pieces.items = pieces.items, []
            shown.append((pieces.gateway, Bundle(pieces.to, together(items))))
        try:
            await self._relay.show(shown)
        finally:
            self._leaving = {}
            self._sent.set()
