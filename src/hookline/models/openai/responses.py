"""A model behind OpenAI's Responses API.

Nothing is stored at OpenAI: every request has the whole conversation, with the model's reasoning in the
encrypted form in which it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONEncoder
from typing import Any, Final

from hookline.types import StreamEvent

from ..capabilities import CAPABILITIES
from ..http.client import HttpModel
from ..http.reply import StreamedReply, ToolNames, count, plain_text, table
from ..http.settings import RESERVED, Settings
from ..layout import AnswerLayout, answer_blocks
from ..model import ModelRequest
from ..parts import ReadPart, read_parts
from ..thinking_level import THINKING, thinking_of
from .wire import written_arguments

PROVIDER: Final = "openai-responses"
ENCRYPTED: Final = "reasoning.encrypted_content"
_OURS: Final = (*RESERVED, THINKING, "input", "instructions")
_NAMES: Final = {"max_tokens": "max_output_tokens", "reasoning_effort": "effort"}
_NO_REASONING = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt|gpt-5[\d.]*-chat)")
"""Models that do not reason, and refuse requests that mention it."""

_encode = JSONEncoder(separators=(",", ":")).encode


class ResponsesModel(HttpModel):
    """Asks one model of the Responses API."""

    offer = "responses"
    capabilities = CAPABILITIES["openai-responses"]

    def _write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        names = ToolNames(tool["name"] for tool in request.tools)
        return _encode(body(request, self._model, names, self._endpoint.settings)).encode(), names

    def _reply(self, names: ToolNames) -> ResponseReply:
        return ResponseReply(names)


def body(request: ModelRequest, model: str, names: ToolNames, settings: Settings) -> dict[str, Any]:
    """The request as the API reads it."""
    found: dict[str, Any] = {
        "model": model,
        "input": _input(request, names),
        "stream": True,
        "store": False,
    }
    if request.system:
        found["instructions"] = request.system
    if not _NO_REASONING.match(model):
        found["include"] = [ENCRYPTED]
        thinking = thinking_of(request, settings.options)
        if thinking and thinking != "off":
            found["reasoning"] = {"effort": thinking, "summary": "auto"}
    if request.session_id:
        found["prompt_cache_key"] = request.session_id[:64]
    if request.output is not None:
        form = {"type": "json_schema", "name": request.output.name, "schema": request.output.schema}
        found["text"] = {"format": form | {"strict": request.output.strict}}
    if request.tools:
        found["tools"] = [_tool(schema, names) for schema in request.tools]
        choice = request.tool_choice
        if isinstance(choice, dict):
            found["tool_choice"] = {"type": "function", "name": names.wire(choice.get("name", ""))}
        elif choice != "auto":
            found["tool_choice"] = choice
    for options in (settings.options, request.options):
        for name, value in options.items():
            if _NAMES.get(name) == "effort":
                found["reasoning"] = {"summary": "auto", **found.get("reasoning", {}), "effort": value}
            elif name not in _OURS:
                found[_NAMES.get(name, name)] = value
    return {name: value for name, value in found.items() if value is not None}


def _tool(schema: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    return {
        "type": "function",
        "name": names.wire(schema["name"]),
        "description": schema.get("description") or "",
        "parameters": schema.get("parameters") or {"type": "object", "properties": {}},
        "strict": False,
    }


def _input(request: ModelRequest, names: ToolNames) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in request.messages:
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            place = str(message.get("tool_call_id", ""))
            output = content if isinstance(content, str) else _parts(content)
            found.append({"type": "function_call_output", "call_id": place, "output": output or ""})
        elif role != "assistant":
            said = content if isinstance(content, str) else _parts(content)
            found.append({"role": role, "content": said or ""})
        else:
            found += [_item(*block, names) for block in answer_blocks(message, PROVIDER)]
    return found


def _item(kind: str, value: Any, kept: dict[str, Any], names: ToolNames) -> dict[str, Any]:
    if kind == "own":
        return kept
    if kind == "text":
        return {"role": "assistant", "content": value, **kept}
    return {
        "type": "function_call",
        "call_id": str(value.get("id", "")),
        "name": names.wire(value.get("name", "")),
        "arguments": written_arguments(value.get("arguments")),
    }


def _parts(content: object) -> list[dict[str, Any]]:
    return [_part(part) for part in read_parts(content)]


def _part(part: ReadPart) -> dict[str, Any]:
    if isinstance(part, dict):
        return part
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.url or part.data_url, "detail": "auto"}
    if part.kind == "file" and part.url:
        return {"type": "input_file", "file_url": part.url}
    if part.kind == "file":
        named = part.name or "file.pdf"
        return {"type": "input_file", "filename": named, "file_data": part.data_url}
    return {"type": "input_text", "text": part.note()}


class ResponseReply(StreamedReply):
    """An answer as its events come in. Items that go back are taken when they are done."""

    __slots__ = ("_layout", "_summary", "_text")

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._layout = AnswerLayout(PROVIDER)
        self._text = 0
        self._summary = False

    def _take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        kind = plain_text(chunk["type"])
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            text = plain_text(chunk["delta"])
            self._text += len(text)
            self.spoken = True
            return [StreamEvent("text", {"delta": text})]
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self.spoken = self._summary = True
            return [StreamEvent("reasoning", {"delta": plain_text(chunk["delta"])})]
        if kind == "response.reasoning_summary_part.added" and self._summary:
            return [StreamEvent("reasoning", {"delta": "\n\n"})]
        if kind == "response.function_call_arguments.delta":
            self._grow(plain_text(chunk["delta"]))
        elif kind == "response.output_item.done":
            self._item(chunk["item"])
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._finish(kind, chunk["response"])
        elif kind == "error":
            self.error, self.done = chunk, True
        return []

    def _item(self, item: dict[str, Any]) -> None:
        kind = item["type"]
        if kind == "reasoning":
            kept = {"type": kind, "id": plain_text(item["id"]), "summary": list(item["summary"])}
            if item.get("encrypted_content"):
                # Without it the item means nothing to a service that stores nothing.
                self._layout.own({**kept, "encrypted_content": plain_text(item["encrypted_content"])})
        elif kind == "message":
            phase = item.get("phase")
            if self._text:
                self._layout.text(self._text, {"phase": plain_text(phase)} if phase else None)
            self._text = 0
        elif kind == "function_call":
            name = self._names.own(plain_text(item["name"]))
            found = {"id": plain_text(item["call_id"]), "name": name}
            arguments = plain_text(item["arguments"])
            self._add_call(len(self._calls), {**found, "arguments": self._grow(arguments) or "{}"})
            self._layout.call(name)

    def _finish(self, kind: str, response: dict[str, Any]) -> None:
        if counts := response.get("usage"):
            self.counts = dict(counts)
        self.done = True
        self.reason = "stop"
        if kind == "response.failed":
            self.error = response.get("error") or "the response failed"
        if kind == "response.incomplete":
            why = table(response.get("incomplete_details")).get("reason") or "incomplete"
            self.reason = "length" if why == "max_output_tokens" else str(why)

    def end(self) -> list[StreamEvent]:
        """The layout and the tool calls, when everything has come in."""
        calls = [StreamEvent("tool_call", call) for call in self._calls.values()]
        return [*self._layout.events(), *calls]

    @property
    def usage(self) -> dict[str, Any]:
        """What was counted, under the names that all models use."""
        counts = self.counts or {}
        found = {
            "input_tokens": count(counts.get("input_tokens")),
            "output_tokens": count(counts.get("output_tokens")),
        }
        details = table(counts.get("input_tokens_details"))
        found["cached_tokens"] = count(details.get("cached_tokens"))
        if written := count(details.get("cache_write_tokens")):
            found["cache_write_tokens"] = written
        made = table(counts.get("output_tokens_details"))
        found["reasoning_tokens"] = count(made.get("reasoning_tokens"))
        return found
