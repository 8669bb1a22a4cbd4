"""A feed: what a run has said, on its way to the one who reads it."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, get_running_loop

from hookline.types import StreamEvent


class Feed:
    """Events in order, for one reader.

    It does what a queue does, for less: it is asked for every piece of every answer.
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
        """Let the reader end when it has read what is there."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    async def take(self) -> list[StreamEvent]:
        """Everything that is there, when something is; nothing at the end."""
        while not self._events and not self._closed:
            self._waiter = self._loop.create_future()
            await self._waiter
        events, self._events = self._events, []
        return events
