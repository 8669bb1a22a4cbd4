"""One record on a tape: its kinds, its identity, and its form as JSON."""

from __future__ import annotations

import os
import threading
import time as clock
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from json import JSONDecoder, JSONEncoder
from math import isfinite
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from hookline.errors import BadEntry
from hookline.text.compact_json import compact_encoder

Json: TypeAlias = dict[str, Any]
"""A JSON object."""

EntryKind: TypeAlias = Literal[
    "message",  # message: a model message (role, content, tool_calls)
    "tool_call",  # id, name, arguments: written before the tool runs
    "tool_result",  # tool_call_id, name, content, is_error
    "turn",  # status, message_id: where a turn starts and how it ends
    "anchor",  # name, state, summary, keep_from: where context starts
    "switch",  # entry_id, from_id, summary: the session continues from that entry
    "fork",  # session_id, entry_id, position: the first entry of a forked session
    "merge",  # session_id, entry_id, count: a fork's entries were copied here
    "label",  # entry_id (None takes the label away), name
    "name",  # name: what the session is called from now on
    "model",  # the model chosen from here on
    "thinking",  # how long models think from here on
    "state",  # what a turn leaves for the next one
    "decision",  # hook, decision, reason: what a gate decided outside of a tool call
    "inbound",  # an envelope that came in
    "import",  # entries: how many of the entries before it came from a file
]
"""The kinds of entries that Hookline writes, with their payloads. Others are legal, stored and kept."""

KINDS: Final[frozenset[EntryKind]] = frozenset(get_args(EntryKind))

MESSAGE: Final[EntryKind] = "message"
TOOL_CALL: Final[EntryKind] = "tool_call"
TOOL_RESULT: Final[EntryKind] = "tool_result"
TURN: Final[EntryKind] = "turn"
ANCHOR: Final[EntryKind] = "anchor"
SWITCH: Final[EntryKind] = "switch"
FORK: Final[EntryKind] = "fork"
MERGE: Final[EntryKind] = "merge"
LABEL: Final[EntryKind] = "label"
NAME: Final[EntryKind] = "name"
MODEL: Final[EntryKind] = "model"
THINKING: Final[EntryKind] = "thinking"
STATE: Final[EntryKind] = "state"
DECISION: Final[EntryKind] = "decision"
INBOUND: Final[EntryKind] = "inbound"
IMPORT: Final[EntryKind] = "import"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record on a session's tape. It is never changed and never deleted.

    >>> entry = Entry.new("s1", None, "note", {"text": "hello"})
    >>> entry.kind, entry.payload["text"], len(entry.id)
    ('note', 'hello', 20)
    """

    id: str
    session_id: str
    parent_id: str | None
    kind: str
    payload: Json
    meta: Json = field(default_factory=dict[str, Any])
    time: float = 0.0

    @classmethod
    def new(
        cls,
        session_id: str,
        parent_id: str | None,
        kind: str,
        payload: Json,
        meta: Json | None = None,
    ) -> Entry:
        """Make an entry with a new id and the present time."""
        now = clock.time()
        return cls(new_id(now), session_id, parent_id, kind, payload, {} if meta is None else meta, now)


# --- Identity: 9 characters of milliseconds, 3 of counter, 8 of process, in Crockford's base 32 ---

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PER_MILLISECOND = 32**3


def _base32(number: int, width: int) -> str:
    return "".join(_DIGITS[number >> shift & 31] for shift in range(5 * (width - 1), -1, -5))


class _Ids:
    """Ids that sort by time, in one process strictly by when they were made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.milliseconds = 0
        self.count = 0
        self.prefix = ""
        self.second = -1
        self.high = ""
        self.process = _base32(int.from_bytes(os.urandom(5), "big"), 8)

    def next(self, now: float) -> str:
        milliseconds = int(now * 1000)
        with self.lock:
            if milliseconds > self.milliseconds:
                self._turn_to(milliseconds)
            elif self.count == _PER_MILLISECOND:
                # A full millisecond, or a clock set back: borrow from the future rather than repeat.
                self._turn_to(self.milliseconds + 1)
            count = self.count
            self.count = count + 1
            low = _DIGITS[count >> 10] + _DIGITS[count >> 5 & 31] + _DIGITS[count & 31]
            return self.prefix + low + self.process

    def _turn_to(self, milliseconds: int) -> None:
        self.milliseconds, self.count = milliseconds, 0
        if milliseconds >> 10 != self.second:  # the last two digits are all that changes meanwhile
            self.second, self.high = milliseconds >> 10, _base32(milliseconds >> 10, 7)
        self.prefix = self.high + _DIGITS[milliseconds >> 5 & 31] + _DIGITS[milliseconds & 31]


_ids = _Ids()


def _start_again_in_child() -> None:
    global _ids
    _ids = _Ids()


if hasattr(os, "register_at_fork"):  # a forked process must not continue its parent's numbers
    os.register_at_fork(after_in_child=_start_again_in_child)


def new_id(now: float | None = None) -> str:
    """A globally unique id that sorts by time, 20 characters long."""
    return _ids.next(clock.time() if now is None else now)


# --- JSON ---


_encode = compact_encoder()
_decode = JSONDecoder().raw_decode  # a third of the time that `json.loads` takes for a short text
_encode_ascii = JSONEncoder(allow_nan=False, separators=(",", ":")).encode

_NUMBER = (float, int)

DEEPEST: Final = 200
"""How many lists and dicts may stand in each other: more could be written, but not surely read."""


class EntryRow(NamedTuple):
    """An entry as stores keep it: the columns that both databases write and read by name."""

    id: str
    session_id: str
    parent_id: str | None
    kind: str
    time: float
    meta: str
    """JSON."""
    payload: str
    """JSON."""


STORED: Final = tuple(name for name in EntryRow._fields if name != "session_id")
"""The columns of the table of entries; sessions have a table of their own."""
stored_values: Callable[[EntryRow], tuple[Any, ...]] = itemgetter(*map(EntryRow._fields.index, STORED))
"""The values of a row for the columns `STORED`."""


def columns(entries: str = "e", sessions: str = "s", *, unread: Collection[str] = ()) -> str:
    """The columns of an `EntryRow` in SQL, of the tables with these names; NULL for the unread ones."""

    def column(name: str) -> str:
        if name in unread:
            return "NULL"
        return f"{sessions}.id" if name == "session_id" else f"{entries}.{name}"

    return ", ".join(map(column, EntryRow._fields))


WIDTH: Final = len(EntryRow._fields)


def row_of(entry: Entry) -> EntryRow:
    """The entry as stores keep it; refuse what could not be read back."""
    _check_names(entry)
    meta = _text_of(entry, "meta", entry.meta) if entry.meta else "{}"
    payload = _text_of(entry, "payload", entry.payload)
    return EntryRow(
        entry.id, entry.session_id, entry.parent_id, entry.kind, float(entry.time), meta, payload
    )


def entry_of(row: Sequence[Any]) -> Entry:
    """The entry of a row, which may have more values after its columns.

    Raises `ValueError` if the row is not JSON any more.
    """
    entry_id, session_id, parent_id, kind, time, meta, payload = row[:WIDTH]
    content, end = _decode(payload)
    if end != len(payload):
        raise ValueError("more text after the payload")
    about: Json = {} if meta == "{}" else _decode(meta)[0]
    return Entry(entry_id, session_id, parent_id, kind, content, about, time)


def _check_names(entry: Entry) -> None:
    names: Any = (entry.id, entry.session_id, entry.kind)
    try:  # the usual case in one look
        usual = all(names) and (joined := "".join(names)).isascii() and "\0" not in joined
    except TypeError:
        usual = False
    if not (usual or all(map(_is_name, names))):
        raise _bad_name(entry)
    parent: Any = entry.parent_id
    if parent is not None and (not isinstance(parent, str) or parent == entry.id):
        raise BadEntry(
            f"entry {entry.id!r}: parent_id must be another entry's id or None, not {parent!r}"
        )
    time: Any = entry.time
    if not isinstance(time, _NUMBER) or not isfinite(time):
        raise BadEntry(f"entry {entry.id!r}: time must be seconds as a number, not {time!r}")
    if not isinstance(entry.payload, dict) or not isinstance(entry.meta, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadEntry(f"entry {entry.id!r}: payload and meta must be dicts; wrap other values in one")


def _is_name(value: Any) -> bool:
    """Whether a database can hold it as a name: text, no NUL, no half of a surrogate pair."""
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    return value.isascii() or not _has_surrogate(value)


def storable(name: str) -> bool:
    """Whether PostgreSQL can hold this as a name; one that it cannot hold does not exist there."""
    return "\0" not in name and (name.isascii() or name.encode(errors="replace").decode() == name)


def _bad_name(entry: Entry) -> BadEntry:
    names = ("id", "session_id", "kind")
    name = next(name for name in names if not _is_name(getattr(entry, name)))
    value = getattr(entry, name)
    return BadEntry(f"entry {entry.id!r}: {name} must be text that is not empty, not {value!r}")


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _text_of(entry: Entry, name: str, value: Json) -> str:
    try:
        text = _encode(value)
        if text.count("{") + text.count("[") > DEEPEST and _depth(value) > DEEPEST:
            raise ValueError(f"more than {DEEPEST} levels deep")
        if text.isascii() or not _has_surrogate(text):
            return text
        return _encode_ascii(value)  # half a surrogate pair has no UTF-8, but it has an escape
    except (TypeError, ValueError, RecursionError) as error:
        raise BadEntry(
            f"entry {entry.id!r}: {name} is not JSON ({error}); "
            "convert it to text, numbers, lists and dicts first"
        ) from error


def _depth(value: Any) -> int:
    """How deep the containers stand in each other, as far as it matters."""
    level: list[Any] = [value]
    depth = 0
    while level and depth <= DEEPEST:
        inner: list[Any] = []
        for each in level:
            inner += each.values() if isinstance(each, dict) else each
        level = [each for each in inner if isinstance(each, dict | list | tuple)]
        depth += 1
    return depth
