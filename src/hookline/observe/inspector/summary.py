"""A turn in one sentence, and each of its tool calls in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from hookline.tape.entry import TOOL_CALL, TOOL_RESULT

from ..trace.turns import requested
from ..trace.why import brief, parsed
from .decisions import decision_of
from .plain import cut, in_few_words

if TYPE_CHECKING:
    from hookline.tape import Entry

MOST: Final = 200
"""Calls that are listed; all of them are counted."""
ABOUT: Final = ("command", "path", "url", "file_path", "query", "pattern")
"""Arguments that say what a call is about, the most telling first."""
ORDER: Final = ("ran", "rewritten", "approved", "failed", "cut off", "denied")


@dataclass(slots=True)
class CallLine:
    """A tool call: what was asked for, what happened to it, and who decided that."""

    tool: str
    asked: str
    entry_id: str = ""
    outcome: str = "cut off"
    by: str = ""
    reason: str = ""


def summary_of(entries: list[Entry], *, running: bool = False) -> dict[str, Any]:
    """The sentence about a turn, and its calls in the order in which the model asked for them."""
    calls = calls_of(entries)
    if running:
        for call in calls:
            call.outcome = "running" if call.outcome == "cut off" else call.outcome
    return {"sentence": sentence_of(calls), "calls": [asdict(call) for call in calls[:MOST]]}


def calls_of(entries: list[Entry]) -> list[CallLine]:
    """The calls of a turn."""
    calls: list[CallLine] = []
    waiting: dict[str, CallLine] = {}
    for entry in entries:
        for call in requested(entry):
            given: dict[str, Any] = call.get("function") or call
            line = CallLine(cut(str(given.get("name", "")), 200), asked_for(given.get("arguments")))
            line.entry_id = entry.id
            waiting[str(call.get("id"))] = line
            calls.append(line)
        if entry.kind in (TOOL_CALL, TOOL_RESULT):
            is_result = entry.kind == TOOL_RESULT
            call_id = str(entry.payload.get("tool_call_id" if is_result else "id"))
            line = waiting.get(call_id)
            if line is None:
                line = waiting[call_id] = CallLine(cut(str(entry.payload.get("name", "")), 200), "")
                calls.append(line)
            _add(line, entry, is_result)
    return calls


def asked_for(arguments: Any) -> str:
    """What a call is about: the command, file or address among its arguments, or all of them."""
    given = parsed(arguments)
    if isinstance(given, dict):
        for name in ABOUT:
            if isinstance(value := cast("dict[str, Any]", given).get(name), str) and value:
                return brief(value, 160)
    return in_few_words(given)


def _add(line: CallLine, entry: Entry, is_result: bool) -> None:
    line.entry_id = entry.id
    if not is_result:
        line.asked = asked_for(entry.payload.get("arguments")) or line.asked
        return
    made = decision_of(entry)
    rulings: list[dict[str, Any]] = made["rulings"] if made else []
    decision = made["decision"] if made else "allow"
    if decision == "deny":
        line.outcome = "denied"
        _name(line, [each for each in rulings if each.get("decision") == "deny"])
        line.reason = line.reason or (made["said"] if made else "")
    elif entry.payload.get("is_error"):
        line.outcome = "failed"
    elif changed := [each for each in rulings if each.get("changed")]:
        line.outcome = "rewritten"
        _name(line, changed)
    else:
        line.outcome = "approved" if decision == "ask" else "ran"


def _name(line: CallLine, rulings: list[dict[str, Any]]) -> None:
    if rulings:
        line.by = cut(str(rulings[-1].get("by", "")), 200)
        line.reason = cut(str(rulings[-1].get("reason") or ""), 300)


def sentence_of(calls: list[CallLine]) -> str:
    """The calls counted by outcome, for example `2 tool calls: 1 ran, 1 was denied by git`."""
    if not calls:
        return "No tool was called."
    counts = Counter((call.outcome, call.by) for call in calls)
    places = {name: place for place, name in enumerate(ORDER)}
    parts: list[str] = []
    for (outcome, by), count in sorted(counts.items(), key=lambda item: places.get(item[0][0], 9)):
        verb = "was" if count == 1 else "were"
        who = f" by {by}" if by else ""
        words = {"ran": "ran", "failed": "failed", "running": f"{verb} still running"}
        parts.append(f"{count} {words.get(outcome, f'{verb} {outcome}')}{who}")
    tools = "1 tool call" if len(calls) == 1 else f"{len(calls):,} tool calls"
    return f"{tools}: {', '.join(parts)}."
