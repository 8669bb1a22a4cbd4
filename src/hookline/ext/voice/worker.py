"""An engine's own thread: its work is done there one piece after the other, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from .errors import VoiceError

T = TypeVar("T")

Stopped = Callable[[], bool]
"""Whether the work was cancelled."""

MOST_WAITING = 64


class VoiceWorker:
    """Does work in the order in which it came."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, f"hookline:{name}")
        self._waiting = 0

    async def run(self, work: Callable[[Stopped], T]) -> T:
        """Run a piece of work. On cancellation it stops at its next step."""
        if self._waiting >= MOST_WAITING:
            raise VoiceError(
                f"{self._waiting} recordings or answers wait already; try again in a while"
            )
        over = Event()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, over.is_set)
        finally:
            over.set()
            self._waiting -= 1

    def close(self) -> None:
        """Take no more work; what waits is dropped."""
        self._thread.shutdown(wait=False, cancel_futures=True)
