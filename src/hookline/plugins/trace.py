"""`HOOKLINE_TRACE_PLUGINS=1`: every step of loading plugins, on standard error."""

from __future__ import annotations

import os
import sys
from time import perf_counter

VARIABLE = "HOOKLINE_TRACE_PLUGINS"

_started = perf_counter()


def trace(step: str, plugin: str = "", detail: str = "") -> None:
    """Print one step if the variable asks for it: milliseconds, step, plugin, details."""
    if os.environ.get(VARIABLE, "") in ("", "0"):
        return
    took = (perf_counter() - _started) * 1e3
    parts = (f"plugins {took:8.1f} ms", f"{step:<10}", plugin, detail)
    print(" ".join(part for part in parts if part), file=sys.stderr)
