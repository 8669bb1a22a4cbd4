"""Progress: the reports of a running tool, passed on in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class ToolProgress:
    """Takes reports from the tool's thread or task and shows them one by one.

    Nothing is created until the first report comes.
    """

    __slots__ = ("_loop", "_queue", "_show", "_task")

    def __init__(self, show: Callable[[Any], Awaitable[None]]) -> None:
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Any] | None = None
        self._task: asyncio.Task[None] | None = None

    def report(self, value: Any) -> None:
        """Show this as soon as may be; safe from any thread."""
        try:
            running = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            running = False
        if running:
            self._put(value)
        else:
            self._loop.call_soon_threadsafe(self._put, value)

    async def done(self) -> None:
        """Wait until everything reported was shown."""
        await asyncio.sleep(0)  # reports of the tool's thread are already on their way
        if self._queue is not None and self._task is not None:
            self._queue.put_nowait(_END)
            await self._task

    def _put(self, value: Any) -> None:
        if self._queue is None:
            self._queue = asyncio.Queue()
            self._task = self._loop.create_task(self._pump(self._queue))
        self._queue.put_nowait(value)

    async def _pump(self, queue: asyncio.Queue[Any]) -> None:
        while (value := await queue.get()) is not _END:
            await self._show(value)


_END: Any = object()
