"""Comparison: the differences between a replay and its original, item by item.

Ids and times do not count as differences. If two replays of the same record disagree, that is reported
separately as nondeterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from .record import RecordedItem, RecordedToolCall, plain_text

Field: TypeAlias = Literal[
    "outcome", "message", "system", "call", "decision", "arguments", "result", "answer"
]

Key: TypeAlias = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a recording and its replay."""

    item: int
    """Which item of the session, counted from 0."""
    entry: str
    """The entry of the original that it is about."""
    field: Field
    before: Any
    after: Any
    call: str = ""
    tool: str = ""
    place: str = ""
    """The number of the answer within its turn, if there are several."""

    @property
    def key(self) -> Key:
        """The key of a difference, independent of the values."""
        return self.item, self.field, self.call or self.place


@dataclass(frozen=True, slots=True)
class Pair:
    """An item of the original and its replay."""

    index: int
    original: RecordedItem
    replayed: RecordedItem


@dataclass(slots=True)
class Comparison:
    """A replay next to its original."""

    session_id: str
    pairs: list[Pair] = field(default_factory=list[Pair])
    differences: list[Difference] = field(default_factory=list[Difference])
    random: list[Difference] = field(default_factory=list[Difference])
    """What two replays did not agree on: `before` and `after` are those of the two."""
    notes: list[str] = field(default_factory=list[str])
    diverged: str | None = None
    """Where and why the record had no answer any more."""
    stopped: str | None = None
    """Why the replay stopped before its end."""
    branch: str | None = None
    """The session on the tape that has the replay."""

    @property
    def same(self) -> bool:
        """Whether everything came out as it was."""
        return not (self.differences or self.random or self.diverged or self.stopped)

    def data(self) -> dict[str, Any]:
        """The whole comparison as JSON data: what `hookline replay --json` prints."""
        return {
            "session_id": self.session_id,
            "branch": self.branch,
            "same": self.same,
            "diverged": self.diverged,
            "stopped": self.stopped,
            "notes": self.notes,
            "differences": [asdict(difference) for difference in self.differences],
            "random": [asdict(difference) for difference in self.random],
            "items": [
                {
                    "index": pair.index,
                    "kind": pair.original.kind,
                    "entry": pair.original.entry,
                    "original": view(pair.original),
                    "replayed": view(pair.replayed),
                }
                for pair in self.pairs
            ],
        }


def view(item: RecordedItem) -> dict[str, Any]:
    """An item as data, without values that differ each time."""
    return {
        "outcome": outcome(item),
        "message": item.prompt if item.kind == "turn" else (item.envelope or {}).get("content"),
        "system": item.system,
        "answers": [plain_text(answer.get("content")) for answer in item.answers],
        "answer": item.answer,
        "calls": [call_view(call) for call in item.calls.values()],
    }


def call_view(call: RecordedToolCall) -> dict[str, Any]:
    """A call as data."""
    return {
        "id": call.id,
        "tool": call.name,
        "entry": call.entry,
        "requested": call.requested,
        "arguments": call.arguments,
        "rewritten": call.rewritten,
        **decision(call),
        "rulings": call.rulings,
        "result": call.content if call.answered else None,
        "is_error": call.is_error,
    }


def decision(call: RecordedToolCall) -> dict[str, Any]:
    """The decision on a call, with who made it and why."""
    return {"decision": call.decided, "by": call.by, "reason": call.reason}


def outcome(item: RecordedItem) -> str:
    """How an item ended, in a few words."""
    return f"{item.status}: {item.error}" if item.error else item.status


def compare(index: int, then: RecordedItem, now: RecordedItem) -> Iterator[Difference]:
    """The differences of an item."""

    def found(kind: Field, before: Any, after: Any, **about: str) -> Iterator[Difference]:
        if before != after:
            entry = about.pop("entry", "") or then.entry
            yield Difference(index, entry, kind, before, after, **about)

    yield from found("outcome", outcome(then), outcome(now))
    if then.kind == now.kind == "turn":
        yield from found("message", plain_text(then.prompt), plain_text(now.prompt))
        if then.system is not None:
            yield from found("system", then.system, now.system)
        for number in range(max(len(then.answers), len(now.answers))):
            before, after = _answer(then, number), _answer(now, number)
            yield from found("answer", before, after, place=str(number))
    for call_id in dict.fromkeys([*then.calls, *now.calls]):
        yield from _compare_call(found, then.calls.get(call_id), now.calls.get(call_id))


def _answer(item: RecordedItem, number: int) -> str | None:
    return plain_text(item.answers[number].get("content")) if number < len(item.answers) else None


def _compare_call(
    found: Any, then: RecordedToolCall | None, now: RecordedToolCall | None
) -> Iterator[Difference]:
    either = then or now
    assert either is not None
    about = {"call": either.id, "tool": either.name, "entry": then.entry if then else ""}
    if then is None or now is None:
        asked = {"tool": either.name, "requested": either.requested}
        yield from found("call", asked if then else None, asked if now else None, **about)
        return
    if (then.decided, then.by) != (now.decided, now.by):
        yield from found("decision", decision(then), decision(now), **about)
    if then.ran and now.ran:
        yield from found("arguments", then.arguments, now.arguments, **about)
    yield from found("result", _result(then), _result(now), **about)


def _result(call: RecordedToolCall) -> Mapping[str, Any] | None:
    if not call.answered:
        return None
    return {"content": plain_text(call.content), "is_error": call.is_error}
