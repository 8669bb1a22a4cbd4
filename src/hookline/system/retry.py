"""How often, and after which delays, a failed operation is tried again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays that grow with each failure in a row, up to a limit, less a random part."""

    attempts: int | None = None
    """How many attempts there are, including the first one; None: until one succeeds."""
    first: float = 0.5
    """Seconds to wait after the first failure."""
    factor: float = 2.0
    """How many times longer each further delay is."""
    max: float = 60.0
    """The longest delay, in seconds."""
    jitter: float = 0.5
    """The random share of a delay: with 0.5, a delay of 10 s takes between 5 and 10 s."""

    def __post_init__(self) -> None:
        if self.attempts is not None and (type(self.attempts) is not int or self.attempts < 1):
            raise ValueError(f"attempts must be a whole number from 1 on, not {self.attempts!r}")
        for name, least, most in _RANGES:
            value: Any = getattr(self, name)
            if type(value) not in (int, float) or not least <= value <= most:
                raise ValueError(f"{name} must be a number from {least:g} to {most:g}, not {value!r}")

    def changed(self, values: Mapping[str, Any]) -> RetryPolicy:
        """Return a policy with some values replaced; a wrong name or value is a ValueError."""
        names = [field.name for field in fields(self)]
        for name in values:
            if name not in names:
                raise ValueError(f"unknown key {name!r}: there are {', '.join(names)}")
        return replace(self, **values)

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row; none after no failure."""
        if failures < 1:
            return 0.0
        # With more failures the power would exceed a float, and the limit was reached long before.
        longest = min(self.first * self.factor ** min(failures - 1, 50), self.max)
        return longest * random.uniform(1 - self.jitter, 1)

    def gives_up(self, failures: int) -> bool:
        """Whether so many failures in a row were the last attempt."""
        return self.attempts is not None and failures >= self.attempts


_RANGES = (("first", 0, 86_400), ("factor", 1, 100), ("max", 0, 86_400), ("jitter", 0, 1))
