"""Records: one dispatch, or one span of a turn, as it is read back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

FAILED = ("raised", "timed out")
"""The action of a handler that failed."""
SpanKind = Literal["turn", "model", "tool"]
"""A turn of the session; a model turn with its tools; a tool call."""
Kind = Literal["hook"] | SpanKind
"""A dispatch, or a span."""


@dataclass(slots=True)
class HandlerRecord:
    """One handler's part in a dispatch."""

    by: str
    """The plugin, or the handler's own name."""
    place: str = ""
    """Its location: `file.py:12`."""
    after: float = 0.0
    """Seconds from the start of the dispatch to its own."""
    duration: float = 0.0
    did: str = ""
    """value, none, raised, timed out, denied, asked, rewrote or skipped."""
    changes: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """The fields that it changed, each as `[before, after]`."""
    decision: str = ""
    reason: str = ""
    error: str = ""
    returned: Any = None
    """Its result if that is not a decision; only at level "full"."""


@dataclass(slots=True)
class TraceRecord:
    """One dispatch of one hook, or one span of a turn."""

    id: str
    kind: Kind = "hook"
    name: str = ""
    """The hook, the agent, the model, or the tool."""
    session: str = ""
    turn: str = ""
    step: int | None = None
    """The index of the model turn."""
    call: str = ""
    """The id of the tool call."""
    parent: str = ""
    """The id of the span that it is in."""
    time: float = 0.0
    duration: float = 0.0
    decision: str = ""
    reason: str = ""
    error: str = ""
    payload: Any = None
    """What the hook was called with; at level "full" alone."""
    handlers: list[HandlerRecord] = field(default_factory=list[HandlerRecord])

    def as_json(self) -> dict[str, Any]:
        """The record as plain data, with nothing that is empty."""
        found = trimmed(asdict(self))
        if self.handlers:
            found["handlers"] = [trimmed(asdict(each)) for each in self.handlers]
        return found


def span_id(turn: str, step: int | None = None, call: str = "") -> str:
    """The id of a span: a turn's own, a model turn's, a tool call's."""
    if call:
        return f"{turn}/{call}"
    return turn if step is None else f"{turn}/{step}"


def parent_id(kind: Kind, turn: str, step: int | None, call: str) -> str:
    """The span that something is in."""
    if kind == "turn":
        return ""
    if kind == "model":
        return turn
    return span_id(turn, step, "" if kind == "tool" else call)


def changes_of(kept: Any) -> dict[str, list[Any]]:
    """The changes of a handler, from the record; a note if they were too long."""
    if isinstance(kept, dict):
        return cast("dict[str, list[Any]]", kept)
    return {} if kept is None else {"…": [None, kept]}


def decision_by(did: str | None) -> str:
    """The decision of a handler, from its action."""
    return {"denied": "deny", "asked": "ask"}.get(did or "", "")


def trimmed(data: dict[str, Any]) -> dict[str, Any]:
    """Without empty values; a zero is kept."""
    return {name: value for name, value in data.items() if value not in ("", None, [], {})}
