"""How the entries of a tape become the messages that a model is given."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, cast

from .entry import ANCHOR, MESSAGE, SWITCH, TOOL_RESULT, Entry, Json

INTERRUPTED = "The call was interrupted before it returned. It may or may not have had its effect."


@dataclass(slots=True)
class _MessageGroup:
    """Messages that only make sense together: one, or an assistant's calls and their results."""

    message: Json
    results: dict[str, Json | None] = field(default_factory=dict[str, Json | None])
    carried: bool = False  # said by an anchor or a switch

    def messages(self) -> list[Json]:
        return [self.message, *(result for result in self.results.values() if result)]


@dataclass(frozen=True, slots=True)
class TapeContext:
    """Turns entries into messages: `TapeContext().messages(await tape.context_entries())`.

    The messages share nothing with the entries.

    - `message` entries give their `payload["message"]`, in order.
    - After an assistant's message come the results of its calls, in the order of the calls. A result
      without its call is left out.
    - A call without result gets one that says it was interrupted; with `unanswered="drop"` it is left
      out, with "keep" it stands alone.
    - An anchor gives its summary and state, a switch the summary of the branch left behind.
    - An entry whose `meta` has `"context": false` gives nothing.

    `kinds` takes only entries of these kinds; without `tool_result` there are no calls either. `last`
    takes the last messages, this many at most, never a result without its call; what anchors and
    switches say comes on top.
    """

    last: int | None = None
    kinds: Collection[str] | None = None
    unanswered: Literal["interrupted", "drop", "keep"] = "interrupted"

    def messages(self, entries: Iterable[Entry]) -> list[Json]:
        """The messages that these entries give."""
        groups = self._groups(entries)
        done = [group for group in map(self._answered, groups) if group is not None]
        return [message for group in self._last(done) for message in group.messages()]

    def _groups(self, entries: Iterable[Entry]) -> list[_MessageGroup]:
        groups: list[_MessageGroup] = []
        calls: dict[str, _MessageGroup] = {}  # by call id, the last group that made such a call
        for entry in entries:
            if self.kinds is not None and entry.kind not in self.kinds:
                continue
            if entry.meta.get("context") is False:
                continue
            if entry.kind == MESSAGE:
                message = entry.payload.get("message")
                if isinstance(message, dict):
                    group = _group(copied(message))
                    groups.append(group)
                    calls.update(dict.fromkeys(group.results, group))
            elif entry.kind == TOOL_RESULT:
                call_id = entry.payload.get("tool_call_id")
                if _is_name(call_id) and call_id in calls:
                    calls[call_id].results[call_id] = _result(entry.payload)
            elif entry.kind in (ANCHOR, SWITCH) and (told := said_by(entry)):
                groups.append(_MessageGroup({"role": "user", "content": told}, carried=True))
        return groups

    def _answered(self, group: _MessageGroup) -> _MessageGroup | None:
        """The group with every call answered, as `unanswered` has it."""
        open_calls = [call_id for call_id, result in group.results.items() if result is None]
        if not open_calls or self.unanswered == "keep":
            return group
        no_results = self.kinds is not None and TOOL_RESULT not in self.kinds
        if self.unanswered == "interrupted" and not no_results:
            for call in _calls(group.message):
                if call["id"] in open_calls:
                    said = {"tool_call_id": call["id"], "name": call.get("name", "")}
                    group.results[call["id"]] = _result(
                        {**said, "content": INTERRUPTED, "is_error": True}
                    )
            return group
        calls = [call for call in _calls(group.message) if call["id"] not in open_calls]
        message = {key: value for key, value in group.message.items() if key != "tool_calls"}
        if calls:
            message["tool_calls"] = calls
        elif not message.get("content"):
            return None
        return _MessageGroup(message, {call["id"]: group.results[call["id"]] for call in calls})

    def _last(self, groups: list[_MessageGroup]) -> list[_MessageGroup]:
        if self.last is None:
            return groups
        room = self.last
        chosen: list[_MessageGroup] = []
        for group in reversed(groups):
            size = 0 if group.carried else len(group.messages())
            if size <= room:
                chosen.append(group)
                room -= size
            else:
                room = 0  # everything older than an omitted message is omitted too
        chosen.reverse()
        return chosen


def _group(message: Json) -> _MessageGroup:
    calls = _calls(message)
    if message.get("tool_calls") and message["tool_calls"] != calls:
        message["tool_calls"] = calls  # a call that nothing can answer would be refused by a model
    return _MessageGroup(message, dict.fromkeys(call["id"] for call in calls))


def _calls(message: Json) -> list[Json]:
    calls: Any = message.get("tool_calls") if message.get("role") == "assistant" else None
    return list(filter(_is_call, calls)) if isinstance(calls, list) else []  # pyright: ignore[reportUnknownArgumentType]


def _is_call(call: Any) -> TypeGuard[Json]:
    return isinstance(call, dict) and _is_name(call.get("id"))  # pyright: ignore[reportUnknownMemberType]


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _result(payload: Json) -> Json:
    message: Json = {
        "role": "tool",
        "tool_call_id": payload["tool_call_id"],
        "name": payload.get("name", ""),
        "content": copied(payload.get("content", "")),
    }
    return {**message, "is_error": True} if payload.get("is_error") else message


def copied(value: Any) -> Any:
    """A copy of a JSON value: an entry's own stays as it is, whatever is done with the copy."""
    if type(value) is dict:
        known = cast("Json", value)
        return {k: v if type(v) is str else copied(v) for k, v in known.items()}
    if type(value) is list:
        return [copied(each) for each in cast("list[Any]", value)]
    return value


def said_by(entry: Entry) -> str:
    """The text of an anchor or a switch for the model."""
    summary, state = entry.payload.get("summary"), entry.payload.get("state")
    if entry.kind == SWITCH:
        return f"Summary of another attempt, which was left:\n{summary}" if summary else ""
    parts = [f"Summary of the conversation so far:\n{summary}"] if summary else []
    if state:
        parts.append(f"State carried over:\n{json.dumps(state, ensure_ascii=False, indent=2)}")
    return "\n\n".join(parts)
