"""Turns as the tape has them, and what its entries are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from hookline.tape import Entry
from hookline.types import Identity

if TYPE_CHECKING:
    from .record import TraceRecord


class Timed(Protocol):
    """An entry of a tape, or of its outline."""

    @property
    def time(self) -> float:
        """When it was written."""
        ...


@dataclass(slots=True)
class TapeTurn:
    """A turn as the tape has it."""

    id: str
    entries: list[Entry]

    @property
    def status(self) -> str:
        """How it ended."""
        ends = [e for e in self.entries if e.kind == "turn" and e.payload.get("status") != "started"]
        return str(ends[-1].payload.get("status")) if ends else "not finished"


def interval(entries: Iterable[Timed], records: Iterable[TraceRecord]) -> tuple[float, float]:
    """When something began and ended: what the tape and the trace have of it together.

    Hooks run before the first entry of a turn or call is written, and after its last. Every place
    that shows how long one took uses this, so that all show the same.
    """
    times = [entry.time for entry in entries]
    for record in records:
        times += (record.time, record.time + record.duration)
    return (min(times), max(times)) if times else (0.0, 0.0)


def turns_of(entries: Sequence[Entry]) -> list[TapeTurn]:
    """The turns of a session, in order; entries before the first belong to none."""
    turns: list[TapeTurn] = []
    for entry in entries:
        payload = entry.payload
        if entry.kind == "turn" and payload.get("status") == "started":
            turns.append(TapeTurn(str(payload.get("turn_id", "")), [entry]))
        elif turns:
            turns[-1].entries.append(entry)
    return turns


def call_id_of(entry: Entry) -> str | None:
    """The tool call that an entry is about."""
    if entry.kind == "tool_call":
        return entry.payload.get("id")
    return entry.payload.get("tool_call_id") if entry.kind == "tool_result" else None


def identity_of(own: Sequence[Entry], turn: Entry | None) -> Identity:
    """On whose behalf a call was judged: the journal keeps it with the call if its turn differs."""
    kept = next((e.meta["identity"] for e in own if e.meta.get("identity")), None)
    if kept is None and turn is not None:
        kept = turn.payload.get("identity")
    return Identity.restored(kept)


def message_of(entry: Entry) -> dict[str, Any]:
    """The text."""
    message: Any = entry.payload.get("message") if entry.kind == "message" else None
    return cast("dict[str, Any]", message) if isinstance(message, dict) else {}


def requested(entry: Entry) -> list[dict[str, Any]]:
    """The tool calls that a message asks for."""
    return list(message_of(entry).get("tool_calls") or ())
