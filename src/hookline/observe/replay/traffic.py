"""Traffic: the tool calls of recorded sessions, with their decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from json import JSONDecoder
from typing import Any, NamedTuple, Protocol, TypeAlias

from hookline.errors import TapeCorrupt
from hookline.tape import Entry, TapeStore
from hookline.tape.open import postgres_of
from hookline.tape.sqlite.reader import REFUSED, CallRow, SessionSize, TapeReader
from hookline.types import Identity

from .record import Decided, decided, source_of

ASKED = '"decision":"ask"'
"""What the meta of a call has that was asked about; within a text the quotes are escaped."""

_decode = JSONDecoder().decode
_read = JSONDecoder().raw_decode


class CallSource(Protocol):
    """Where recorded calls are read from."""

    def sessions(self, since: float = 0.0) -> list[SessionSize]:
        """The sessions that were written to since a time."""
        ...

    def calls(self, session_id: str, *, usage: bool = False) -> Iterator[CallRow]:
        """Rows of a session, as `TapeReader.calls` has them."""
        ...

    def asked(self, session_id: str) -> Iterator[tuple[str, str]]:
        """The messages with tool calls: id and payload."""
        ...


Opens: TypeAlias = Callable[[], AbstractContextManager[CallSource]]
"""Opens a source; it can be sent to another process, which opens one of its own."""


def opens(store: TapeStore) -> Opens | None:
    """How several processes can read a store; None if only its own process can."""
    path: str | None = getattr(store, "path", None)
    if path is not None:
        return partial(TapeReader, path)
    database = postgres_of(store)
    if database is None:
        return None
    from hookline.tape.postgres.reader import PostgresReader

    return partial(PostgresReader, database.database.url, database.schema)


class RecordedCall(NamedTuple):
    """A recorded call: its request and its outcome."""

    entry: str
    time: float
    id: str
    name: str
    requested: Any
    arguments: dict[str, Any] | None
    """The arguments that it ran with; None if it did not run."""
    asked: bool
    meta: str

    @property
    def rulings(self) -> list[dict[str, Any]]:
        """Who decided what."""
        return _decode(self.meta).get("rulings") or []

    @property
    def decided(self) -> Decided:
        """The decision."""
        return decided(self.arguments is not None, self.rulings)

    @property
    def source(self) -> str:
        """What made the call."""
        return source_of(_decode(self.meta)) if '"source"' in self.meta else "model"

    @property
    def identity(self) -> Identity | None:
        """On whose behalf, if it was kept with the call; otherwise its turn has it."""
        if '"identity"' not in self.meta:
            return None
        kept = _decode(self.meta).get("identity")
        return Identity.restored(kept) if kept else None


class Turned(NamedTuple):
    """A turn began or ended: from here on, whose message is behind the calls."""

    time: float
    identity: Identity
    began: bool


class Used(NamedTuple):
    """A message that cost something."""

    meta: str


def traffic(
    source: CallSource, session_id: str, *, usage: bool = False
) -> Iterator[RecordedCall | Turned | Used]:
    """The calls of a session, in order."""
    asked: dict[str, list[Asked]] | None = None
    for kind, entry, time, meta, payload in source.calls(session_id, usage=usage):
        if kind == "message":
            yield Used(meta)
            continue
        said = read(payload, entry)
        if kind == "tool_call":
            arguments: dict[str, Any] = said.get("arguments") or {}
            requested = said.get("requested", arguments)
            question = ASKED in meta
            yield RecordedCall(
                entry, time, said["id"], said["name"], requested, arguments, question, meta
            )
        elif kind == "turn":
            began = said.get("status") == "started"
            yield Turned(time, Identity.restored(said.get("identity")), began)
        elif said.get("ran") is False:
            call_id = str(said.get("tool_call_id"))
            if "requested" in said:  # a person's own call, which no message asks for
                wanted, question = said["requested"], ASKED in meta
                yield RecordedCall(entry, time, call_id, said["name"], wanted, None, question, meta)
                continue
            if asked is None:
                asked = requests(source, session_id)
            # Some models give the same ids in every turn: the last one before the result is meant.
            made = [a for a in asked.get(call_id, ()) if a.entry < entry]
            if made:
                name, requested = made[-1].name, made[-1].arguments
                yield RecordedCall(entry, time, call_id, name, requested, None, ASKED in meta, meta)


def read(payload: str, entry: str) -> dict[str, Any]:
    """The payload of an entry."""
    try:
        said, end = _read(payload)  # without looking for blanks around it: the tape writes none
        return said if end == len(payload) else _decode(payload)
    except ValueError as error:
        raise TapeCorrupt(f"entry {entry!r} is not JSON ({error}); restore a copy") from error


class Asked(NamedTuple):
    """A call as a model asked for it, and where."""

    entry: str
    name: str
    arguments: Any


def requests(source: CallSource, session_id: str) -> dict[str, list[Asked]]:
    """What models asked for, by call."""
    found: dict[str, list[Asked]] = {}
    for entry, payload in source.asked(session_id):
        message: dict[str, Any] = read(payload, entry).get("message") or {}
        for call in message.get("tool_calls") or ():
            one = Asked(entry, str(call.get("name")), call.get("arguments") or "{}")
            found.setdefault(str(call.get("id")), []).append(one)
    return found


class StoredTraffic:
    """The same for any store, read in advance: for stores that no other process can read."""

    def __init__(self, entries: dict[str, Sequence[Entry]]) -> None:
        self._entries = entries

    @classmethod
    async def read(
        cls, store: TapeStore, since: float, sessions: Sequence[str] | None
    ) -> StoredTraffic:
        """Read the sessions of a store: these, or all."""
        kinds = ("tool_call", "tool_result", "turn", "message")
        infos = await store.sessions()
        wanted = [i.id for i in infos if i.updated >= since and (not sessions or i.id in sessions)]
        return cls({name: await store.entries(name, kinds=kinds) for name in wanted})

    def sessions(self, since: float = 0.0) -> list[SessionSize]:
        """The sessions that were read."""
        return [SessionSize(n, len(e), e[-1].time if e else 0) for n, e in self._entries.items()]

    def calls(self, session_id: str, *, usage: bool = False) -> Iterator[CallRow]:
        """Rows, made of entries."""
        from hookline.tape.entry import row_of

        for entry in self._entries.get(session_id, ()):
            row = row_of(entry)
            if entry.kind == "message":
                if usage:
                    yield entry.kind, entry.id, entry.time, row.meta, "{}"
            elif entry.kind != "tool_result" or REFUSED in row.payload:
                yield entry.kind, entry.id, entry.time, row.meta, row.payload

    def asked(self, session_id: str) -> Iterator[tuple[str, str]]:
        """The messages: id and payload."""
        from hookline.tape.entry import row_of

        for entry in self._entries.get(session_id, ()):
            if entry.kind == "message":
                yield entry.id, row_of(entry).payload
