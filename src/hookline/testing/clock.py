"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio

PATIENCE = 30.0
"""Seconds of real time after which a test fails because no task went back to sleep."""


class VirtualClock:
    """Time for triggers under test: `await clock.advance(60)` is a minute, and takes no time.

    It returns when the tasks that it woke sleep again, so that their work is done.
    """

    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        self._sleepers: dict[asyncio.Future[None], float] = {}
        self._changed = asyncio.Condition()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    async def sleep_until(self, when: float) -> None:
        """Sleep until the test has moved the clock there, or has set it."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers[sleeper] = when
        async with self._changed:
            self._changed.notify_all()
        try:
            await sleeper
        finally:
            self._sleepers.pop(sleeper, None)

    async def asleep(self, count: int = 1) -> None:
        """Wait until this many tasks sleep."""
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(lambda: len(self._sleepers) >= count)

    async def advance(self, seconds: float) -> None:
        """Advance the time: due tasks wake, work and sleep again."""
        self._now += seconds
        await self._wake([s for s, when in self._sleepers.items() if when <= self._now])

    async def jump(self, to: float) -> None:
        """Set the clock forward or back; every sleeping task looks at it again."""
        self._now = to
        await self._wake([*self._sleepers])

    async def _wake(self, sleepers: list[asyncio.Future[None]]) -> None:
        count = len(self._sleepers)
        for sleeper in sleepers:
            self._sleepers.pop(sleeper)
            sleeper.set_result(None)
        await self.asleep(count)
