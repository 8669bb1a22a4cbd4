"""How often a user may ask."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from hookline.hooks import HooklineError


class TooMany(HooklineError, RuntimeError):
    """A user asks too often."""

    def __init__(self, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(f"too many requests; try again in {self.retry_after} s")


class Limiter:
    """So many requests a minute for each user, with a few at once."""

    def __init__(
        self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = per_minute / 60, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, user: str) -> None:
        """Count one request, or refuse it with `TooMany`."""
        if not self._rate:
            return
        now = self._clock()
        left, since = self._left.get(user, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._rate)
        if left < 1:
            raise TooMany((1 - left) / self._rate)
        self._left[user] = (left - 1, now)
