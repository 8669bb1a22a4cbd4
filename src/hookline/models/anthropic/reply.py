"""The events of the Messages API as stream events."""

from __future__ import annotations

import json
from typing import Any, Final

from hookline.errors import BadResponse
from hookline.types import StreamEvent

from ..http.reply import MOST_CALLS, StreamedReply, ToolNames, count, plain_text, table
from ..layout import AnswerLayout
from .wire import PROVIDER

_STOPPED: Final = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
    "model_context_window_exceeded": "length",
}  # fmt: skip


class MessageReply(StreamedReply):
    """An answer as its events come in. Tool calls are given when they are whole."""

    __slots__ = ("_layout", "_thoughts")

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._layout = AnswerLayout(PROVIDER)
        self._thoughts: dict[int, dict[str, Any]] = {}

    def _take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        kind = chunk.get("type")
        if kind == "content_block_delta":
            return self._delta(chunk["index"], chunk["delta"])
        if kind == "content_block_start":
            return self._start(chunk["index"], chunk["content_block"])
        if kind == "content_block_stop":
            self._stop(chunk["index"])
        elif kind == "message_start":
            self._count(chunk["message"].get("usage"))
        elif kind == "message_delta":
            self._count(chunk.get("usage"))
            self._stopped(chunk["delta"])
        elif kind == "message_stop":
            self.done = True
        return []

    def _start(self, index: int, block: dict[str, Any]) -> list[StreamEvent]:
        self.spoken = True
        kind = block["type"]
        if kind == "tool_use":
            name = plain_text(block["name"])
            call = self._add_call(index, {"id": plain_text(block["id"]), "name": name, "pieces": []})
            self._layout.call(self._names.own(name))
            if block.get("input"):
                call["pieces"].append(self._grow(json.dumps(block["input"])))
        elif kind == "text" and block.get("text"):
            return [self._said(block["text"])]
        elif kind == "thinking":
            if len(self._thoughts) >= MOST_CALLS:
                raise BadResponse(f"more than {MOST_CALLS} open blocks")
            signature = plain_text(block.get("signature") or "")
            self._thoughts[index] = {"type": kind, "size": 0, "signature": signature}
            if block.get("thinking"):
                return [self._thought(index, block["thinking"])]
        elif kind == "redacted_thinking":
            self._layout.own({"type": kind, "data": plain_text(block["data"])})
        return []

    def _delta(self, index: int, delta: dict[str, Any]) -> list[StreamEvent]:
        kind = delta["type"]
        if kind == "text_delta":
            return [self._said(delta["text"])]
        if kind == "thinking_delta":
            return [self._thought(index, delta["thinking"])]
        if kind == "signature_delta":
            self._thoughts[index]["signature"] += plain_text(delta["signature"])
        elif kind == "input_json_delta":
            self._calls[index]["pieces"].append(self._grow(plain_text(delta["partial_json"])))
        return []

    def _said(self, text: str) -> StreamEvent:
        self._layout.text(len(plain_text(text)))
        return StreamEvent("text", {"delta": text})

    def _thought(self, index: int, text: str) -> StreamEvent:
        self._thoughts[index]["size"] += len(plain_text(text))
        return StreamEvent("reasoning", {"delta": text})

    def _stop(self, index: int) -> None:
        thought = self._thoughts.pop(index, None)
        if thought is not None and thought["signature"]:
            self._layout.own(thought)

    def _stopped(self, delta: dict[str, Any]) -> None:
        reason = delta.get("stop_reason")
        if reason == "refusal":
            why = table(delta.get("stop_details")).get("explanation")
            self.failure = f"declined to answer (refusal){f': {why}' if why else ''}"
        self.reason = _STOPPED.get(reason, str(reason)) if reason else self.reason

    def _count(self, usage: dict[str, Any] | None) -> None:
        if usage:
            self.counts = {**(self.counts or {}), **{k: v for k, v in usage.items() if v is not None}}

    def end(self) -> list[StreamEvent]:
        """The layout and the tool calls, when everything has come in."""
        calls = [
            StreamEvent(
                "tool_call",
                {
                    "id": call["id"],
                    "name": self._names.own(call["name"]),
                    "arguments": "".join(call["pieces"]) or "{}",
                },
            )
            for call in self._calls.values()
        ]
        return [*self._layout.events(), *calls]

    @property
    def usage(self) -> dict[str, Any]:
        """What was counted: the input is all of it, also what came from the cache or went into it."""
        counts = self.counts or {}
        read, written = (
            count(counts.get(f"cache_{what}_input_tokens")) for what in ("read", "creation")
        )
        found: dict[str, Any] = {
            "input_tokens": count(counts.get("input_tokens")) + read + written,
            "output_tokens": count(counts.get("output_tokens")),
            "cached_tokens": read,
        }
        if thought := count(table(counts.get("output_tokens_details")).get("thinking_tokens")):
            found["reasoning_tokens"] = thought
        return {**found, "cache_write_tokens": written} if written else found
