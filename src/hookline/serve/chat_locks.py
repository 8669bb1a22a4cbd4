"""One lock per chat: a chat's messages are received one after another, in the order they arrived."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from hookline.types import Envelope, address_of


class ChatLocks:
    """A lock for each chat; unused locks are dropped.

    A message holds the lock from its arrival until it has its place in the session's queue. Slow steps
    before that, such as speech recognition, cannot let a later message overtake it.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str], Lock] = WeakValueDictionary()

    def of(self, message: Envelope) -> Lock:
        """Return the lock of a message's chat. Keep a reference while you use it."""
        address = address_of(message)
        lock = self._locks.get(address)
        if lock is None:
            lock = self._locks[address] = Lock()
        return lock

    @asynccontextmanager
    async def enter(self, message: Envelope) -> AsyncGenerator[Callable[[], None]]:
        """Acquire the lock. Calling what this yields, or leaving the block, releases it."""
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
