"""The tape: an append-only tree of entries for each session, and the stores that keep it.

store = SQLiteStore("tape.db")
tape = await Tape.open(store, "s1")
await tape.append("message", {"message": {"role": "user", "content": "Hello"}})
messages = TapeContext().messages(await tape.context_entries())
"""

from typing import TYPE_CHECKING

from hookline.errors import (
    BadEntry,
    BadLine,
    DuplicateEntry,
    NotATape,
    SessionExists,
    TapeClosed,
    TapeConflict,
    TapeCorrupt,
    TapeDenied,
    TapeError,
    TapeFull,
    TapeLocked,
    TapeReadOnly,
    TapeUnavailable,
    TapeUncertain,
    TapeVersionMismatch,
    UnknownEntry,
)
from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .context import TapeContext
    from .entry import (
        ANCHOR,
        DECISION,
        FORK,
        IMPORT,
        INBOUND,
        KINDS,
        LABEL,
        MERGE,
        MESSAGE,
        MODEL,
        NAME,
        STATE,
        SWITCH,
        THINKING,
        TOOL_CALL,
        TOOL_RESULT,
        TURN,
        Entry,
        EntryKind,
        new_id,
    )
    from .jsonl import Imported, export, import_
    from .memory import MemoryTapeStore
    from .outline import OutlineEntry
    from .sqlite.store import SQLiteStore
    from .store import Hit, SessionInfo, TapeStore
    from .tape import Tape
else:
    __getattr__ = lazy_names(__name__, "entry context store tape outline jsonl memory sqlite.store")

__all__ = [
    "ANCHOR",
    "DECISION",
    "FORK",
    "IMPORT",
    "INBOUND",
    "KINDS",
    "LABEL",
    "MERGE",
    "MESSAGE",
    "MODEL",
    "NAME",
    "STATE",
    "SWITCH",
    "THINKING",
    "TOOL_CALL",
    "TOOL_RESULT",
    "TURN",
    "BadEntry",
    "BadLine",
    "DuplicateEntry",
    "Entry",
    "EntryKind",
    "Hit",
    "Imported",
    "MemoryTapeStore",
    "NotATape",
    "OutlineEntry",
    "SQLiteStore",
    "SessionExists",
    "SessionInfo",
    "Tape",
    "TapeClosed",
    "TapeConflict",
    "TapeContext",
    "TapeCorrupt",
    "TapeDenied",
    "TapeError",
    "TapeFull",
    "TapeLocked",
    "TapeReadOnly",
    "TapeStore",
    "TapeUnavailable",
    "TapeUncertain",
    "TapeVersionMismatch",
    "UnknownEntry",
    "export",
    "import_",
    "new_id",
]
