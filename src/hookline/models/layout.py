"""The order of an answer's blocks, with what its provider needs back unchanged in the next request.

Providers sign or encrypt a model's thoughts, and refuse a conversation in which these stand in another
place. A message keeps text, reasoning and tool calls apart, so the layout goes with it as the
`signature` of its reasoning: opaque to everything but the client that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from hookline.errors import BadResponse
from hookline.text.foreign_json import parse_json
from hookline.types import Message, StreamEvent

from .model import content_text

MOST_BLOCKS = 10_000
"""More blocks are no answer but a fault."""


class AnswerBlock(NamedTuple):
    """A stretch of text, a tool call, or a block of the provider's own; and what is kept with it."""

    kind: str
    value: Any
    kept: dict[str, Any]


class AnswerLayout:
    """Records the blocks of an answer as they come in."""

    __slots__ = ("_blocks", "_provider", "_worth")

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: list[AnswerBlock] = []
        self._worth = False

    def text(self, size: int, kept: Mapping[str, Any] | None = None) -> None:
        """Add characters of text; those that follow each other without anything kept are one block."""
        last = self._blocks[-1] if self._blocks else None
        if last is not None and last.kind == "text" and not last.kept and not kept:
            self._blocks[-1] = AnswerBlock("text", last.value + size, {})
        else:
            self._add("text", size, kept)

    def call(self, name: str, kept: Mapping[str, Any] | None = None) -> None:
        """Add a tool call."""
        self._add("call", name, kept)

    def own(self, block: Mapping[str, Any]) -> None:
        """Add a block that only the provider understands."""
        self._add("own", None, block)

    def _add(self, kind: str, value: Any, kept: Mapping[str, Any] | None) -> None:
        if len(self._blocks) >= MOST_BLOCKS:
            raise BadResponse(f"more than {MOST_BLOCKS} blocks")
        self._blocks.append(AnswerBlock(kind, value, dict(kept or {})))
        self._worth = self._worth or bool(kept)

    def events(self) -> list[StreamEvent]:
        """The event that carries the layout, unless nothing has to be kept."""
        if not self._worth:
            return []
        text = json.dumps({self._provider: self._blocks}, separators=(",", ":"))
        return [StreamEvent("reasoning", {"delta": "", "signature": text})]


def answer_blocks(message: Message, provider: str) -> list[AnswerBlock]:
    """The blocks of an assistant's message, as the provider sent them.

    If a hook has changed text or calls since, what the provider needs comes first, then the text and
    the calls. A message of another provider is text and calls.
    """
    text = content_text(message.get("content"))
    calls: list[Any] = list(message.get("tool_calls") or ())
    kept = _recorded(message.get("reasoning_signature"), provider)
    sizes = [block.value for block in kept if block.kind == "text"]
    named = [block.value for block in kept if block.kind == "call"]
    if kept and sum(sizes) == len(text) and named == [call.get("name") for call in calls]:
        return _filled(kept, text, calls)
    found = [block for block in kept if block.kind == "own"]
    if text:
        found.append(AnswerBlock("text", text, {}))
    return found + [AnswerBlock("call", call, {}) for call in calls]


def call_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call as an object: what a model once wrote wrong is shown to it as text."""
    arguments = found = call.get("arguments")
    if isinstance(arguments, str):
        try:
            found = parse_json(arguments or "{}")
        except (ValueError, RecursionError):
            found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"invalid": str(arguments)}


def _filled(kept: list[AnswerBlock], text: str, calls: list[Any]) -> list[AnswerBlock]:
    found: list[AnswerBlock] = []
    place, following = 0, iter(calls)
    for block in kept:
        if block.kind == "text":
            found.append(AnswerBlock("text", text[place : place + block.value], block.kept))
            place += block.value
        elif block.kind == "call":
            found.append(AnswerBlock("call", next(following), block.kept))
        else:
            found.append(block)
    return found


def _recorded(signature: object, provider: str) -> list[AnswerBlock]:
    """The layout in a signature; nothing if another provider made it, or it was damaged."""
    if not isinstance(signature, str) or not signature.startswith(f'{{"{provider}":'):
        return []
    try:
        blocks: Any = cast("dict[str, Any]", parse_json(signature))[provider]
        found = [AnswerBlock(*block) for block in blocks]
    except (ValueError, RecursionError, TypeError, KeyError):
        return []
    kinds = {"text": int, "call": str, "own": type(None)}
    right = all(
        type(block.value) is kinds.get(block.kind) and isinstance(block.kept, dict)  # pyright: ignore[reportUnnecessaryIsInstance]
        for block in found
    )
    return found if right else []
