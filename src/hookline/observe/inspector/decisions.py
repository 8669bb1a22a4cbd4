"""Decisions on tool calls, who made them and why: from the tape, approvals and audit log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from hookline.channel import Question
from hookline.policy.approvals import bound_to
from hookline.tape import MESSAGE, TOOL_CALL, TOOL_RESULT

from ..trace.turns import requested
from .plain import cut, in_few_words, plain

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.tape import Entry, TapeStore

SESSIONS: Final = 50
"""How many sessions are looked through, the latest first."""
AUDITED: Final = 200


async def decisions(
    store: TapeStore, session_id: str | None, decision: str | None, limit: int
) -> list[dict[str, Any]]:
    """The decisions of a session, or of the latest ones, the newest first."""
    if session_id is not None:
        return await _of_session(store, session_id, decision, limit)
    found: list[dict[str, Any]] = []
    for info in await store.sessions(limit=SESSIONS):
        if len(found) >= limit and info.updated < found[limit - 1]["time"]:
            break  # whatever it has is older than the current state
        found += await _of_session(store, info.id, decision, limit)
        found.sort(key=lambda each: each["time"], reverse=True)
    return found[:limit]


async def _of_session(
    store: TapeStore, session_id: str, decision: str | None, limit: int
) -> list[dict[str, Any]]:
    kinds = {MESSAGE, TOOL_CALL, TOOL_RESULT}
    # A call that ran has two entries, and a message asked for it; none can be chosen by its rulings.
    read = limit * 4 if decision is None else limit * 20
    entries = await store.entries(session_id, kinds=kinds, limit=read, newest_first=True)
    found: dict[str, dict[str, Any]] = {}
    asked: dict[str, str] = {}
    for entry in reversed(entries):
        asked.update(
            (str(call.get("id")), in_few_words(call.get("arguments"))) for call in requested(entry)
        )
        made = decision_of(entry) if entry.kind != MESSAGE else None
        if made is not None:
            made["asked"] = asked.get(made["call_id"], "")
            found[made["call_id"]] = made  # the result knows all that the call did
    shown = [each for each in reversed(found.values()) if decision in (None, each["decision"])]
    return shown[:limit]


def decision_of(entry: Entry) -> dict[str, Any] | None:
    """The decision on a call, or None if no one ruled on it."""
    given: list[Any] = entry.meta.get("rulings") or []
    rulings = [cast("dict[str, Any]", each) for each in given if isinstance(each, dict)]
    is_result = entry.kind == TOOL_RESULT
    ran = bool(entry.payload.get("ran", True)) if is_result else True
    if not rulings and ran:
        return None
    return {
        "session": entry.session_id,
        "entry_id": entry.id,
        "time": entry.time,
        "tool": str(entry.payload.get("name", "")),
        "call_id": str(entry.payload.get("tool_call_id" if is_result else "id") or entry.id),
        "decision": outcome_of(rulings, ran),
        "rulings": plain(rulings, 2000),
        "said": cut(_text(entry.payload.get("content")), 500) if is_result and not ran else "",
    }


def outcome_of(rulings: list[dict[str, Any]], ran: bool) -> str:
    """`deny` if it did not run; otherwise `ask` if a person was asked, `rewrote`, or `allow`."""
    if not ran:
        return "deny"
    if any(ruling.get("decision") == "ask" for ruling in rulings):
        return "ask"
    return "rewrote" if any(ruling.get("changed") for ruling in rulings) else "allow"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else ""


def pending(app: Hookline) -> list[dict[str, Any]]:
    """The questions that wait for a person; an answer names the hash of what was shown.

    A call that is too long to be shown whole can only be rejected here.
    """
    return [_waiting(each.id, each.request, each) for each in app.approvals.pending()]


def _waiting(approval_id: str, request: dict[str, Any], kept: Any) -> dict[str, Any]:
    question = Question.of(request)
    arguments, diff = plain(request.get("arguments")), cut(str(request.get("diff") or ""))
    is_whole = arguments == request.get("arguments") and diff == str(request.get("diff") or "")
    labels = {w: label for w, label in question.labels.items() if is_whole or w == "reject"}
    return {
        "id": approval_id,
        "asked": kept.asked,
        "expires": kept.expires,
        "session": str(request.get("session_id", "")),
        "tool": str(request.get("tool", "")),
        "question": cut(str(request.get("question", "")), 2000),
        "arguments": arguments,
        "diff": diff,
        "whole": is_whole,
        "choices": [{"answer": word, "label": label} for word, label in labels.items()],
        "hash": bound_to(request),
    }


def audited(app: Hookline, session_id: str | None = None) -> list[dict[str, Any]] | None:
    """The last lines of the audit log, newest first; None if there is no log."""
    from hookline.policy.hash_chain import files_of, records

    path = app.safeguards.audit_path
    if not files_of(path):
        return None
    last: deque[dict[str, Any]] = deque(maxlen=AUDITED)
    last.extend(each for each in records(path) if session_id in (None, each.get("session_id")))
    return [plain(each, 2000) for each in reversed(last)]
