"""The chunks of the Gemini API as stream events."""

from __future__ import annotations

import json
from typing import Any, Final

from hookline.types import StreamEvent

from ..http.reply import StreamedReply, ToolNames, count, plain_text
from ..layout import AnswerLayout
from .wire import PROVIDER, SIGNATURE

_STOPPED: Final = {"STOP": "stop", "MAX_TOKENS": "length"}
_TRY_AGAIN: Final = (
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
    "OTHER",
)  # fmt: skip
"""Reasons for which another attempt may succeed."""


class ContentReply(StreamedReply):
    """An answer as its chunks come in. A tool call comes whole, in one chunk."""

    __slots__ = ("_layout",)

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._layout = AnswerLayout(PROVIDER)

    def _take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        counts: Any = chunk.get("usageMetadata")
        if counts:
            self.counts = {**(self.counts or {}), **counts}
        feedback: Any = chunk.get("promptFeedback")
        if feedback and (reason := feedback.get("blockReason")):
            self._refuse("blocked the prompt", reason, feedback.get("blockReasonMessage"))
        candidates: Any = chunk.get("candidates")
        if not candidates:
            return []
        candidate: dict[str, Any] = candidates[0]
        found: list[StreamEvent] = []
        content: Any = candidate.get("content")
        for part in (content and content.get("parts")) or ():
            found += self._part(part)
        if reason := candidate.get("finishReason"):
            self._finish(plain_text(reason), candidate.get("finishMessage"))
        return found

    def _part(self, part: dict[str, Any]) -> list[StreamEvent]:
        signature = part.get(SIGNATURE)
        kept = {SIGNATURE: plain_text(signature)} if signature else None
        if call := part.get("functionCall"):
            self._call(call, kept)
            return []
        text = plain_text(part.get("text") or "")
        self.spoken = self.spoken or bool(text)
        if part.get("thought"):
            if kept:
                self._layout.own({"text": text, "thought": True, **kept})
            return [StreamEvent("reasoning", {"delta": text})] if text else []
        if text or kept:
            self._layout.text(len(text), kept)
        return [StreamEvent("text", {"delta": text})] if text else []

    def _call(self, call: dict[str, Any], kept: dict[str, str] | None) -> None:
        arguments: object = call.get("args")
        if not isinstance(arguments, dict | None):
            raise TypeError
        name = self._names.own(plain_text(call["name"]))
        found = {"id": plain_text(call.get("id") or ""), "name": name}
        text = self._grow(json.dumps(arguments or {}, ensure_ascii=False))
        self._add_call(len(self._calls), {**found, "arguments": text})
        self._layout.call(name, kept)

    def _finish(self, reason: str, message: object) -> None:
        self.reason = _STOPPED.get(reason, reason)
        if reason not in _STOPPED:
            self._refuse("stopped the answer", reason, message)

    def _refuse(self, what: str, reason: object, message: object) -> None:
        self.failure = f"{what} ({reason}){f': {message}' if message else ''}"
        self.transient = reason in _TRY_AGAIN

    def end(self) -> list[StreamEvent]:
        """The layout and the tool calls, when everything has come in."""
        calls = [StreamEvent("tool_call", call) for call in self._calls.values()]
        return [*self._layout.events(), *calls]

    @property
    def usage(self) -> dict[str, Any]:
        """What was counted; thoughts are part of the output."""
        counts = self.counts or {}
        thoughts = count(counts.get("thoughtsTokenCount"))
        found: dict[str, Any] = {
            "input_tokens": count(counts.get("promptTokenCount"))
            + count(counts.get("toolUsePromptTokenCount")),
            "output_tokens": count(counts.get("candidatesTokenCount")) + thoughts,
            "cached_tokens": count(counts.get("cachedContentTokenCount")),
        }
        return {**found, "reasoning_tokens": thoughts} if thoughts else found
