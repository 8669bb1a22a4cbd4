"""Batches of answer pieces: everything a worker streams goes to the gateways together.

PostgreSQL wakes every listener for every notification. So the pieces of many answers share one, and a
busier database gets larger batches.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from .items import Bundle, Item, together
from .relay import Relay

PAUSE: Final = 0.02
"""Seconds to collect pieces before sending them."""
LONGEST_PAUSE: Final = 0.5
SHARE: Final = 5
"""How many times the duration of the last send to wait before the next."""


@dataclass(eq=False, slots=True)
class Pieces:
    """The unsent pieces of one answer."""

    gateway: str
    to: dict[str, Any]
    """The message being answered."""
    items: list[Item] = field(default_factory=list[Item])


class Gathering:
    """Sends pieces of answers, keeping the order within each answer."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._waiting: dict[Pieces, None] = {}
        self._leaving: dict[Pieces, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._sent = asyncio.Event()
        self._pause = PAUSE

    def show(self, pieces: Pieces, item: Item) -> None:
        """Queue a piece of an answer."""
        pieces.items.append(item)
        self._waiting[pieces] = None
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def rest(self, pieces: Pieces) -> list[Item]:
        """Wait for the sends in progress and return the unsent pieces; the caller sends them."""
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
