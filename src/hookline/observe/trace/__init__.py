"""The trace: what each dispatch of a session's hooks did, kept beside its tape.

    [trace]
    level = "decisions"     # the default; or "full", or "off"

| name | what it is |
|---|---|
| `TraceRecord`, `HandlerRecord` | one dispatch or span, and one handler's part in it |
| `TraceStore`, `traces_of` | where records are kept, and the one that belongs to a tape's store |
| `session_trace` | the trace of a session, with the spans of its turns |
| `explain` | who saw, changed and decided on a call, a message or a turn |
| `measure` | calls, times and errors for each hook and plugin |
| `cover` | every declared hook with its call sites, and handlers that can never run |
"""

from typing import TYPE_CHECKING

from hookline.errors import TraceError

if TYPE_CHECKING:
    from .coverage import Coverage, cover
    from .record import HandlerRecord, TraceRecord
    from .settings import OtelSettings, TraceSettings
    from .spans import session_trace
    from .stats import Stats, measure
    from .store import MemoryTraces, SQLiteTraces, Trace, TraceStore, traces_of
    from .why import Explanation, explain
else:
    # Every run of an app starts its trace, and needs a small part of this.
    _HOMES = {
        "Coverage": "coverage",
        "Explanation": "why",
        "HandlerRecord": "record",
        "MemoryTraces": "store",
        "OtelSettings": "settings",
        "SQLiteTraces": "store",
        "Stats": "stats",
        "Trace": "store",
        "TraceRecord": "record",
        "TraceSettings": "settings",
        "TraceStore": "store",
        "cover": "coverage",
        "explain": "why",
        "measure": "stats",
        "session_trace": "spans",
        "traces_of": "store",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'hookline.observe.trace' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"hookline.observe.trace.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


__all__ = [
    "Coverage",
    "Explanation",
    "HandlerRecord",
    "MemoryTraces",
    "OtelSettings",
    "SQLiteTraces",
    "Stats",
    "Trace",
    "TraceError",
    "TraceRecord",
    "TraceSettings",
    "TraceStore",
    "cover",
    "explain",
    "measure",
    "session_trace",
    "traces_of",
]
