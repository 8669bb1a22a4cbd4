"""The size of messages and entries in a model's context, and their text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

from hookline.tape import ANCHOR, MESSAGE, SWITCH, TOOL_RESULT, Entry
from hookline.tape.context import said_by
from hookline.types import Message

Estimate: TypeAlias = Callable[[Entry], int]
"""How many tokens an entry takes up in the context."""

_CHARACTERS_PER_TOKEN = 4
_PER_CALL = 40  # characters around the id, the name and the arguments of a call
_PART = 4_800  # characters that a picture or a sound counts for, however large its data


def estimate_tokens(entry: Entry) -> int:
    """About how many tokens an entry takes up: a quarter of its characters."""
    if entry.meta.get("context") is False:
        return 0
    if entry.kind == MESSAGE:
        return _of_message(message_of(entry))
    if entry.kind == TOOL_RESULT:
        return _of_content(entry.payload.get("content"))
    if entry.kind in (ANCHOR, SWITCH):
        return _of_content(said_by(entry))
    return 0


def estimate_messages(messages: Iterable[Message]) -> int:
    """About how many tokens these messages are."""
    return sum(map(_of_message, messages))


def context_tokens(entries: Sequence[Entry], estimate: Estimate = estimate_tokens) -> int:
    """How many tokens the context of these entries takes, as counted by the model if possible.

    The last answer's usage covers everything before it, if it is newer than the last anchor; the rest
    is estimated.
    """
    for place in range(len(entries) - 1, _since_anchor(entries) - 1, -1):
        counted = _counted(entries[place])
        if counted:
            return counted + sum(map(estimate, entries[place + 1 :]))
    return sum(map(estimate, entries))


def _counted(entry: Entry) -> int:
    usage: Any = entry.meta.get("usage")
    if entry.kind != MESSAGE or not isinstance(usage, dict):
        return 0
    counts = cast("dict[str, Any]", usage)
    numbers = (counts.get(name) for name in ("input_tokens", "output_tokens"))
    return sum(number for number in numbers if isinstance(number, int))


def _since_anchor(entries: Sequence[Entry]) -> int:
    """The position of the first entry written after the anchor; what it kept comes before."""
    if not entries or entries[0].kind != ANCHOR:
        return 0
    after = (n for n, entry in enumerate(entries) if entry.parent_id == entries[0].id)
    return next(after, len(entries))


def _of_message(message: Message) -> int:
    calls: Any = message.get("tool_calls")
    tokens = _of_content(message.get("content"))
    for call in cast("list[Any]", calls if isinstance(calls, list) else ()):
        values = cast("dict[str, Any]", call).values() if isinstance(call, dict) else (call,)
        tokens += _tokens(_PER_CALL + sum(len(as_json(value)) for value in values))
    return tokens


def _of_content(content: Any) -> int:
    if isinstance(content, str):
        return _tokens(len(content))
    return _tokens(sum(_PART if text is None else len(text) for text in _texts(content)))


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)


# --- What an entry says ---


def message_of(entry: Entry) -> Message:
    """The message of an entry; an empty one when it has none."""
    message: Any = entry.payload.get("message") if entry.kind == MESSAGE else None
    return cast("Message", message) if isinstance(message, dict) else {}


def role_of(entry: Entry) -> str:
    """Who said it; empty when it is no message."""
    return str(message_of(entry).get("role") or "")


def calls_of(entry: Entry) -> list[dict[str, Any]]:
    """The tool calls that a message makes."""
    calls: Any = message_of(entry).get("tool_calls")
    found = cast("list[Any]", calls) if isinstance(calls, list) else []
    return [cast("dict[str, Any]", call) for call in found if isinstance(call, dict)]


def content_text(content: Any) -> str:
    """Content as text; other content is named."""
    if isinstance(content, str):
        return content
    return "\n".join("(not text)" if text is None else text for text in _texts(content))


def _texts(content: Any) -> list[str | None]:
    """The text of each part, None for one that is something else."""
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return [_part_text(part) for part in parts]


def _part_text(part: Any) -> str | None:
    text: Any = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None


def as_json(value: Any) -> str:
    """A value as JSON text, which it may be already."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
