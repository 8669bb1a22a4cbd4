"""The entrance of a chat: its messages are received one after another, in the order they came."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from hookline.types import Envelope, address_of


class Entrances:
    """The entrance of each chat; one that nobody goes through is forgotten.

    A message goes through when it is received, and is out of it when it has its place in the session:
    what takes long before that, such as speech becoming text, lets no later message overtake.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str], Lock] = WeakValueDictionary()

    def of(self, message: Envelope) -> Lock:
        """The entrance of a message's chat. Keep it as long as it is used."""
        address = address_of(message)
        lock = self._locks.get(address)
        if lock is None:
            lock = self._locks[address] = Lock()
        return lock

    @asynccontextmanager
    async def enter(self, message: Envelope) -> AsyncGenerator[Callable[[], None]]:
        """Wait for the entrance; calling what this yields, or leaving the block, lets the next in."""
        lock = self.of(message)
        await lock.acquire()
        is_inside = True

        def leave() -> None:
            nonlocal is_inside
            if is_inside:
                is_inside = False
                lock.release()

        try:
            yield leave
        finally:
            leave()
