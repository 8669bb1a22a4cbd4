"""One entry with its explanation: its content, its changes, and who decided where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.tape.entry import TOOL_CALL, TOOL_RESULT

from ..trace.turns import call_id_of, identity_of, requested
from .decisions import decision_of
from .plain import cut, diff_of, plain

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks
    from hookline.tape import Entry

    from ..trace import TraceRecord


def explained(
    entry: Entry,
    around: list[Entry],
    records: list[TraceRecord] | None,
    hooks: Hooks,
    turn: Entry | None = None,
) -> dict[str, Any]:
    """An entry as the page shows it; `around` are the entries of its call.

    `turn` is the first entry of its turn. Without records, nothing is said about the handlers.
    """
    told: dict[str, Any] = {
        "id": entry.id,
        "session": entry.session_id,
        "parent": entry.parent_id,
        "kind": entry.kind,
        "time": entry.time,
        "payload": plain(entry.payload),
        "meta": plain(entry.meta),
    }
    call_id = call_id_of(entry)
    if call_id is None:
        return told
    pair = [each for each in around if call_id_of(each) == call_id]
    call = next((each for each in pair if each.kind == TOOL_CALL), None)
    result = next((each for each in pair if each.kind == TOOL_RESULT), None)
    decided = decision_of(result or call or entry)
    told["call"] = {
        "id": call_id,
        "tool": str(entry.payload.get("name", "")),
        "behalf": cut(str(identity_of(pair, turn)), 500),
        "requested": plain(call.payload.get("requested") if call else asked_for(around, call_id)),
        "arguments": plain(call.payload.get("arguments")) if call else None,
        "diff": diff_of(call.payload.get("requested"), call.payload.get("arguments")) if call else "",
        "result": plain(result.payload.get("content")) if result else None,
        "is_error": bool(result and result.payload.get("is_error")),
        "ran": bool(result.payload.get("ran", True)) if result else None,
    }
    if decided is not None:
        told["decision"] = decided["decision"]
        told["rulings"] = [{**each, "place": place_of(hooks, each)} for each in decided["rulings"]]
    if records is not None:
        seen = [each for each in records if each.kind == "hook" and each.call == call_id]
        told["dispatches"] = [dispatch(record) for record in seen]
    return told


def asked_for(entries: list[Entry], call_id: str) -> Any:
    """What the model asked for with a call that was refused: it is in its message alone."""
    calls = (call for entry in entries for call in requested(entry) if call.get("id") == call_id)
    return next(((call.get("function") or call).get("arguments") for call in calls), None)


def place_of(hooks: Hooks, ruling: dict[str, Any]) -> str:
    """Where the handler that ruled is written, if it is attached now."""
    found = (impl for impl in hooks["tool_call"].run_order() if impl.name == ruling.get("by"))
    impl = next(found, None)
    return impl.location if impl is not None else ""


def dispatch(record: TraceRecord) -> dict[str, Any]:
    """A dispatch as the page shows it, each change as a diff."""
    told = plain(record.as_json())
    for handler, shown in zip(record.handlers, told.get("handlers", ()), strict=True):
        shown["diffs"] = {
            cut(name, 200): diff_of(*values)
            for name, values in handler.changes.items()
            if len(values) == 2
        }
    return told
