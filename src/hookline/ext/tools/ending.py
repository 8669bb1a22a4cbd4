"""Ending: how a process ended, in words."""

from __future__ import annotations

import signal


def ending(code: int | None) -> str:
    """An exit code, or the signal that it stands for."""
    if code is not None and code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"exit code {code}"
