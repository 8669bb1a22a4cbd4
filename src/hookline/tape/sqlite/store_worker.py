"""A store's own thread: its calls are made there one after the other, so none blocks the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hookline.errors import StoreClosed

T = TypeVar("T")


class StoreWorker:
    """Makes calls in the order in which they came. A call that began is finished, even if cancelled."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(1, "hookline:store")
        self._closed = False

    async def run(self, call: Callable[[], T]) -> T:
        """Make a call, and wait for what it gives."""
        if self._closed:
            raise StoreClosed(self._place)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def close(self, last: Callable[[], None]) -> None:
        """Make one last call, after those that wait."""
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, last)
        finally:
            self._thread.shutdown(wait=False)
