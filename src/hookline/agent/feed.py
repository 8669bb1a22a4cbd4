"""`Feed`: the events of a run, on their way to its reader."""

from __future__ import annotations

from asyncio import AbstractEventLoop, CancelledError, Future, gather, get_running_loop
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from hookline.errors import Cancelled
from hookline.types import StreamEvent

if TYPE_CHECKING:
    from .run import AgentRun


class Feed:
    """Events in order, for one reader.

    A queue would do, but costs more, and every piece of every answer passes here.
    """

    __slots__ = ("_closed", "_events", "_loop", "_waiter")

    def __init__(self) -> None:
        self._events: list[StreamEvent] = []
        self._loop: AbstractEventLoop = get_running_loop()
        self._waiter: Future[None] | None = None
        self._closed = False

    def put(self, event: StreamEvent) -> None:
        """Add an event; never waits."""
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        """End the stream after the events that are there."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    async def take(self) -> list[StreamEvent]:
        """Wait for events and return all that are there; an empty list is the end."""
        while not self._events and not self._closed:
            self._waiter = self._loop.create_future()
            await self._waiter
        events, self._events = self._events, []
        return events

    async def read(self, run: AgentRun) -> AsyncIterator[StreamEvent]:
        """Yield the events of a run until it ends; leaving early cancels the run."""
        task = run.task
        assert task is not None
        try:
            while events := await self.take():
                for event in events:
                    yield event
            try:
                await task
            except CancelledError:
                if run.cancelled:
                    raise Cancelled("parked" if run.parked else "cancelled") from None
                raise
        finally:
            if not task.done():
                task.cancel()
                await gather(task, return_exceptions=True)
