"""A session's history, as a page shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, Field

from hookline.tape.entry import INBOUND, MESSAGE, TOOL_RESULT, TURN

if TYPE_CHECKING:
    from hookline.tape import Entry


class HistoryCall(BaseModel):
    """A tool call that the model asked for."""

    id: str
    name: str
    arguments: Any = None


class HistoryItem(BaseModel):
    """One message of the history."""

    id: str
    time: float
    role: Literal["user", "assistant", "tool"]
    text: str = ""
    reasoning: str = ""
    tool_calls: list[HistoryCall] = Field(default_factory=list[HistoryCall])
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    outcome: Literal["", "cancelled", "failed", "blocked", "dropped"] = ""
    """The outcome of a message without a complete answer; `text` has the part that was shown."""
    reason: str = ""


def history_of(entries: list[Entry]) -> list[HistoryItem]:
    """The messages of a branch."""
    return [item for entry in entries if (item := _item(entry)) is not None]


def _item(entry: Entry) -> HistoryItem | None:
    payload = entry.payload
    if entry.kind in (TURN, INBOUND):
        return _unanswered(entry)
    if entry.kind == TOOL_RESULT:
        return HistoryItem(
            id=entry.id,
            time=entry.time,
            role="tool",
            text=_text(payload.get("content")),
            call_id=payload.get("tool_call_id"),
            name=payload.get("name"),
            is_error=bool(payload.get("is_error")),
        )
    message: dict[str, Any] = payload["message"] if entry.kind == MESSAGE else {}
    if message.get("role") not in ("user", "assistant"):
        return None
    calls: list[dict[str, Any]] = message.get("tool_calls") or []
    return HistoryItem(
        id=entry.id,
        time=entry.time,
        role=message["role"],
        text=_text(message.get("content")),
        reasoning=str(message.get("reasoning") or ""),
        tool_calls=[_call(call) for call in calls],
    )


def _unanswered(entry: Entry) -> HistoryItem | None:
    """A turn that was stopped or failed, or a message without a turn."""
    payload = entry.payload
    envelope: dict[str, Any] = payload.get("envelope") or {}
    if entry.kind == TURN and payload.get("status") in ("cancelled", "failed"):
        return HistoryItem(
            id=entry.id,
            time=entry.time,
            role="assistant",
            text=str(payload.get("partial") or ""),
            outcome=payload["status"],
            reason=str(payload.get("error") or ""),
        )
    if entry.kind == INBOUND and payload.get("outcome") in ("blocked", "dropped"):
        return HistoryItem(
            id=entry.id,
            time=entry.time,
            role="user",
            text=_text(envelope.get("content")),
            outcome=payload["outcome"],
            reason=str(payload.get("reason") or ""),
        )
    return None


def _call(call: dict[str, Any]) -> HistoryCall:
    function: dict[str, Any] = call.get("function") or call
    return HistoryCall(
        id=str(call.get("id", "")),
        name=str(function.get("name", "")),
        arguments=function.get("arguments"),
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "\n".join(part.get("text") or f"[{part.get('type')}]" for part in parts)
    return "" if content is None else str(content)
