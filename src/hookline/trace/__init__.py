"""The trace: what each dispatch of a session's hooks did, kept beside its tape.

    [trace]
    level = "decisions"     # or "full"; "off" unless said

| name | what it is |
|---|---|
| `TraceRecord`, `HandlerRecord` | one dispatch or span, and one handler's part in it |
| `TraceStore`, `traces_of` | where records are kept, and the one that belongs to a tape's store |
| `session_trace` | the trace of a session, with the spans of its turns |
| `explain` | who saw, changed and decided on a call, a message or a turn |
| `measure` | calls, times and errors for each hook and plugin |
| `cover` | every declared hook with its call sites, and handlers that can never run |
"""

from .coverage import Coverage, cover
from .errors import TraceError
from .record import HandlerRecord, TraceRecord
from .settings import OtelSettings, TraceSettings
from .spans import session_trace
from .stats import Stats, measure
from .store import MemoryTraces, SQLiteTraces, Trace, TraceStore, traces_of
from .why import Explanation, explain

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
