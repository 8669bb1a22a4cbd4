"""Requests as the Messages API reads them, and its events as stream events.

Prompt caching: the system prompt, with the tools before it, and the end of the conversation are marked,
so that the next request of a session finds everything before its new messages in the cache.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from hookline.errors import BadResponse
from hookline.text.foreign_json import parse_json
from hookline.types import AudioPart, ImagePart, Message, StreamEvent, TextPart

from ..model import ModelRequest, content_text
from ..openai.settings import RESERVED, Settings
from ..openai.wire import MOST_ARGUMENTS, MOST_CALLS, StreamedReply, ToolNames
from ..thinking_level import THINKING, thinking_of

MAX_TOKENS: Final = 8192
"""The longest answer, which the API wants to be told, unless an option says otherwise."""
BUDGETS: Final = {"low": 2048, "medium": 8192, "high": 24576}
"""Tokens for thinking, on top of those for the answer."""
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}
_OURS: Final = (*RESERVED, THINKING, "system", "tool_choice")
_STOPPED: Final = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
}  # fmt: skip
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]")


def body(request: ModelRequest, model: str, names: ToolNames, settings: Settings) -> dict[str, Any]:
    """The request as the API reads it."""
    budget = BUDGETS.get(thinking_of(request, settings.options), 0)
    system, messages = conversation(request, names, thoughts=budget > 0)
    found: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
    for options in (settings.options, request.options):
        found.update((name, value) for name, value in options.items() if name not in _OURS)
    found.setdefault("max_tokens", MAX_TOKENS)
    if "stop" in found:
        stop = found.pop("stop")
        found["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if system:
        found["system"] = [{"type": "text", "text": system, **_CACHED}]
    if budget:
        found["thinking"] = {"type": "enabled", "budget_tokens": budget}
        found["max_tokens"] += budget
        found.pop("temperature", None)  # the API does not take it together with thinking
    if request.tools:
        found["tools"] = [_tool(schema, names) for schema in request.tools]
        if not system:
            found["tools"][-1].update(_CACHED)
        choice = _choice(request, names, forced=not budget)
        if choice is not None:
            found["tool_choice"] = choice
    return {name: value for name, value in found.items() if value is not None}


def _tool(schema: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    return {
        "name": names.wire(schema["name"]),
        "description": schema.get("description") or "",
        "input_schema": schema.get("parameters") or {"type": "object"},
    }


def _choice(request: ModelRequest, names: ToolNames, *, forced: bool) -> dict[str, Any] | None:
    """Which tool to call; while the model thinks, none can be forced."""
    choice = request.tool_choice
    if choice == "none":
        return {"type": "none"}
    if choice == "auto" or not forced:
        return None
    if isinstance(choice, dict):
        return {"type": "tool", "name": names.wire(choice.get("name", ""))}
    return {"type": "any"}


def conversation(
    request: ModelRequest, names: ToolNames, *, thoughts: bool
) -> tuple[str, list[Message]]:
    """The system prompt, and the messages in turns of user and assistant; with signed thoughts."""
    systems = [request.system]
    found: list[Message] = []
    for message in request.messages:
        role = message.get("role")
        if role in ("system", "developer"):
            systems.append(content_text(message.get("content")))
            continue
        blocks = _blocks(message, names, thoughts)
        side = "assistant" if role == "assistant" else "user"
        if found and found[-1]["role"] == side:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": side, "content": blocks})
    if found:
        # Thinking cannot be marked; what is marked is the end of what was said.
        markable = [b for b in found[-1]["content"] if b["type"] != "thinking"]
        if markable:
            markable[-1].update(_CACHED)
    return "\n\n".join(filter(None, systems)), found


def _blocks(message: Message, names: ToolNames, thoughts: bool) -> list[dict[str, Any]]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": _BAD_ID.sub("_", str(message.get("tool_call_id", ""))),
            "content": _parts(content),
        }
        return [{**result, "is_error": True} if message.get("is_error") else result]
    if role != "assistant":
        return _parts(content)
    found: list[dict[str, Any]] = []
    reasoning, signature = message.get("reasoning"), message.get("reasoning_signature")
    if thoughts and reasoning and signature:
        found.append({"type": "thinking", "thinking": reasoning, "signature": signature})
    if text := content_text(content):
        found.append({"type": "text", "text": text})
    return found + [_called(call, names) for call in message.get("tool_calls") or ()]


def _called(call: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": _BAD_ID.sub("_", str(call.get("id", ""))),
        "name": names.wire(call.get("name", "")),
        "input": _arguments(call.get("arguments")),
    }


def _arguments(arguments: object) -> dict[str, Any]:
    """An object, always: what a model once wrote wrong is shown to it as text."""
    found = arguments
    if isinstance(arguments, str):
        try:
            found = parse_json(arguments or "{}")
        except (ValueError, RecursionError):
            found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"invalid": str(arguments)}


def _parts(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str) or not isinstance(content, Iterable):
        text = content_text(content)
        return [{"type": "text", "text": text}] if text.strip() else []
    parts = (_part(part) for part in cast("Iterable[object]", content))
    return [part for part in parts if part.get("type") != "text" or str(part["text"]).strip()]


def _part(part: object) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return _image(part.url, part.data, part.mime_type)
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, AudioPart):
        return {"type": "text", "text": f"[audio, {part.mime_type}: this model takes none]"}
    if isinstance(part, dict):
        table = cast("dict[str, Any]", part)
        if table.get("type") == "image" and "source" not in table:
            return _image(table.get("url"), table.get("data"), table.get("mime_type") or "image/png")
        if table.get("type") == "audio":
            return {"type": "text", "text": "[audio: this model takes none]"}
        return table
    return {"type": "text", "text": str(part)}


def _image(url: str | None, data: bytes | str | None, mime_type: str) -> dict[str, Any]:
    if url:
        return {"type": "image", "source": {"type": "url", "url": url}}
    encoded = data if isinstance(data, str) else b64encode(data or b"").decode()
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": mime_type, "data": encoded},
    }


class MessageReply(StreamedReply):
    """An answer as its events come in. Tool calls are given when they are whole."""

    __slots__ = ("_blocks", "_written", "done")

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._written = 0
        self.done = False

    def take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        """The events of one event of the API; one of an unknown kind is passed over."""
        try:
            return self._take(chunk)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise BadResponse("an event of another form") from error

    def _take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        kind = chunk.get("type")
        if kind == "content_block_delta":
            return self._delta(chunk["index"], chunk["delta"])
        if kind == "content_block_start":
            return self._start(chunk["index"], chunk["content_block"])
        if kind == "message_start":
            self._count(chunk["message"].get("usage"))
        elif kind == "message_delta":
            self._count(chunk.get("usage"))
            reason = chunk["delta"].get("stop_reason")
            self.reason = _STOPPED.get(reason, str(reason)) if reason else self.reason
        elif kind == "message_stop":
            self.done = True
        return []

    def _start(self, index: int, block: dict[str, Any]) -> list[StreamEvent]:
        self.spoken = True
        if block["type"] == "tool_use":
            if len(self._blocks) >= MOST_CALLS:
                raise BadResponse(f"more than {MOST_CALLS} tool calls")
            self._blocks[index] = {"id": block["id"], "name": block["name"], "pieces": []}
            if block.get("input"):
                self._blocks[index]["pieces"].append(json.dumps(block["input"]))
        elif block["type"] == "text" and block.get("text"):
            return [StreamEvent("text", {"delta": block["text"]})]
        return []

    def _delta(self, index: int, delta: dict[str, Any]) -> list[StreamEvent]:
        kind = delta["type"]
        if kind == "text_delta":
            return [StreamEvent("text", {"delta": delta["text"]})]
        if kind == "thinking_delta":
            return [StreamEvent("reasoning", {"delta": delta["thinking"]})]
        if kind == "signature_delta":
            return [StreamEvent("reasoning", {"delta": "", "signature": delta["signature"]})]
        if kind == "input_json_delta":
            text = delta["partial_json"]
            self._written += len(text)
            if self._written > MOST_ARGUMENTS:
                raise BadResponse(f"more than {MOST_ARGUMENTS} characters of arguments")
            self._blocks[index]["pieces"].append(text)
        return []

    def _count(self, usage: dict[str, Any] | None) -> None:
        if usage:
            self.counts = {**(self.counts or {}), **{k: v for k, v in usage.items() if v is not None}}

    def end(self) -> list[StreamEvent]:
        """The tool calls, when everything has come in."""
        return [
            StreamEvent(
                "tool_call",
                {
                    "id": call["id"],
                    "name": self._names.own(call["name"]),
                    "arguments": "".join(call["pieces"]) or "{}",
                },
            )
            for _, call in sorted(self._blocks.items())
        ]

    @property
    def finish_reason(self) -> str:
        """Why it ended."""
        return self.reason or "stop"

    @property
    def usage(self) -> dict[str, Any]:
        """What was counted: the input is all of it, also what came from the cache or went into it."""
        counts = self.counts or {}
        read, written = (
            int(counts.get(f"cache_{what}_input_tokens") or 0) for what in ("read", "creation")
        )
        found: dict[str, Any] = {
            "input_tokens": int(counts.get("input_tokens") or 0) + read + written,
            "output_tokens": int(counts.get("output_tokens") or 0),
            "cached_tokens": read,
        }
        return {**found, "cache_write_tokens": written} if written else found
