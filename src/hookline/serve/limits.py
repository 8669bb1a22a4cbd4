"""Rate limits: requests per minute, and failed attempts."""

from __future__ import annotations

import time
from collections.abc import Callable

from hookline.errors import TooManyRequests

TOO_MANY = 4429
"""Closes a WebSocket that sends too many frames."""
MOST_KEYS = 10_000
"""How many keys a limiter remembers. Keys whose allowance is full again are dropped first."""


class Limiter:
    """A number of requests a minute per key, with bursts. 0 means no limit."""

    def __init__(
        self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = per_minute / 60, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, key: str) -> None:
        """Count one request, or raise `TooManyRequests`."""
        if not self._rate:
            return
        left, now = self._now(key)
        if left < 1:
            raise TooManyRequests((1 - left) / self._rate)
        if len(self._left) >= MOST_KEYS and key not in self._left:
            self._forget(now)
        self._left[key] = (left - 1, now)

    def _now(self, key: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._left.get(key, (float(self._burst), now))
        return min(float(self._burst), left + (now - since) * self._rate), now

    def _forget(self, now: float) -> None:
        """Drop keys whose allowance is full; if there are none, the oldest half."""
        self._drop_full(now)
        if len(self._left) >= MOST_KEYS:
            for key in sorted(self._left, key=lambda key: self._left[key][1])[: MOST_KEYS // 2]:
                del self._left[key]

    def _drop_full(self, now: float) -> None:
        for key, (left, since) in [*self._left.items()]:
            if left + (now - since) * self._rate >= self._burst:
                del self._left[key]
