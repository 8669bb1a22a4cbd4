"""The clock that triggers go by, so that tests can have one of their own."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

LOOK_AGAIN = 30.0
"""The longest sleep in seconds before the clock is read again: it may have been set."""


class Clock(Protocol):
    """Tells the time, and wakes people."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    async def sleep_until(self, when: float) -> None:
        """Sleep until a time, or less: the caller reads the clock again."""
        ...


class SystemClock:
    """The clock of this machine, which may be set forward and back at any time."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def sleep_until(self, when: float) -> None:
        """Sleep until a time, but never so long that a change of the clock goes unnoticed."""
        await asyncio.sleep(min(max(when - self.now(), 0.0), LOOK_AGAIN))
