"""Requests as an OpenAI-compatible endpoint reads them, and its chunks as stream events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from hookline.text.foreign_json import parse_json
from hookline.types import Message, StreamEvent

from ..http.reply import StreamedReply, ToolNames, count, table
from ..http.settings import RESERVED, HttpService, Settings
from ..model import ModelRequest, content_text
from ..parts import ReadPart, read_parts
from ..thinking_level import THINKING, thinking_of

_OURS = (*RESERVED, THINKING)
_NOTHING: dict[str, Any] = {}


def body(
    request: ModelRequest, model: str, names: ToolNames, service: HttpService, settings: Settings
) -> dict[str, Any]:
    """The request as the API reads it."""
    found = frame(request, model, names, service, settings)
    found["messages"] = messages(request, names, thoughts=service.thoughts)
    if request.tools:
        found["tools"] = tools(request, names)
    return found


def frame(
    request: ModelRequest, model: str, names: ToolNames, service: HttpService, settings: Settings
) -> dict[str, Any]:
    """The request without its messages and its tools, of which most were sent before."""
    found: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        choice = request.tool_choice
        if isinstance(choice, dict):
            named = {"name": names.wire(choice.get("name", ""))}
            found["tool_choice"] = {"type": "function", "function": named}
        elif choice != "auto":
            found["tool_choice"] = choice
    if service.cache_key and request.session_id:
        found["prompt_cache_key"] = request.session_id[:64]
    if effort := _effort(thinking_of(request, settings.options), service):
        found["reasoning_effort"] = effort
    if request.output is not None:
        form = {"name": request.output.name, "schema": request.output.schema}
        form |= {"strict": True} if request.output.strict else {}
        found["response_format"] = {"type": "json_schema", "json_schema": form}
    for options in (settings.options, request.options):
        found.update((name, value) for name, value in options.items() if name not in _OURS)
    if service.longest != "max_tokens" and "max_tokens" in found:
        found.setdefault(service.longest, found.pop("max_tokens"))
    return {name: value for name, value in found.items() if value is not None}


def tools(request: ModelRequest, names: ToolNames) -> list[dict[str, Any]]:
    """The tools as the API reads them."""
    return [_tool(schema, names) for schema in request.tools]


def messages(request: ModelRequest, names: ToolNames, *, thoughts: bool = False) -> list[Message]:
    """The conversation in the API's format; with the model's reasoning, if the API wants it back."""
    found: list[Message] = []
    if request.system:
        found.append({"role": "system", "content": request.system})
    media: list[dict[str, Any]] = []
    for message in request.messages:
        if media and message.get("role") != "tool":
            found.append(shown(media))
            media = []
        # A tool's answer is text in this API: its media follow, after all answers.
        media += media_of(message)
        found.append(wire_message(message, names, thoughts))
    if media:
        found.append(shown(media))
    return found


def wire_message(message: Message, names: ToolNames, thoughts: bool) -> Message:
    """One message in the API's format, without the media in a tool's answer."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        if not isinstance(content, str):
            content = content_text(map(_part, read_parts(content)))
        tool_call_id = message.get("tool_call_id", "")
        return {"role": "tool", "tool_call_id": tool_call_id, "content": content}
    if role == "assistant":
        return _assistant(message, names, thoughts)
    return {"role": role, "content": _content(content)}


def usage(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The usage, under the names that all models use."""
    found: dict[str, Any] = {
        "input_tokens": count(counts.get("prompt_tokens")),
        "output_tokens": count(counts.get("completion_tokens")),
    }
    cached = table(counts.get("prompt_tokens_details")).get("cached_tokens")
    cached = counts.get("prompt_cache_hit_tokens") if cached is None else cached
    if cached is not None:
        found["cached_tokens"] = count(cached)
    reasoning = table(counts.get("completion_tokens_details")).get("reasoning_tokens")
    if reasoning is not None:
        found["reasoning_tokens"] = count(reasoning)
    cost = counts.get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        found["cost"] = cost
    return found


class ChatReply(StreamedReply):
    """The answer of a chat completion. Tool calls are given when they are whole."""

    __slots__ = ()

    def _take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        counts = chunk.get("usage")
        if counts:
            self.counts = table(counts)
        choices: Any = chunk.get("choices")
        if not choices:
            return []
        choice: Any = choices[0]
        delta: Any = choice.get("delta") or _NOTHING
        events: list[StreamEvent] = []
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            events.append(StreamEvent("reasoning", {"delta": _text(thought)}))
        if said := delta.get("content") or delta.get("refusal"):
            events.append(StreamEvent("text", {"delta": _text(said)}))
        if pieces := delta.get("tool_calls"):
            for piece in pieces:
                self._add(piece)
        if reason := choice.get("finish_reason"):
            self.reason = str(reason)
        if events:
            self.spoken = True
        return events

    def end(self) -> list[StreamEvent]:
        """The tool calls, when everything has come in."""
        calls = sorted(self._calls.values(), key=lambda call: call.place)
        return [StreamEvent("tool_call", call.data(self._names)) for call in calls]

    @property
    def usage(self) -> dict[str, Any]:
        """What was counted, under the names that all models use."""
        return usage(self.counts or {})

    def _add(self, piece: dict[str, Any]) -> None:
        place = piece.get("index")
        if place is None:
            # Without an index, a new id begins a new call and none goes on with the last.
            place = piece.get("id") or next(reversed(self._calls), 0)
        call = self._calls.get(place)
        if call is None:
            order = place if isinstance(place, int) else len(self._calls)
            call = self._add_call(place, _Call(order))
        function: Any = piece.get("function") or _NOTHING
        if name := function.get("name"):
            call.add_name(_text(name))
        call.id = call.id or _text(piece.get("id") or "")
        arguments = function.get("arguments")
        if arguments:
            # A few endpoints give an object where the API says text.
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call.pieces.append(self._grow(text))


class _Call:
    """A tool call as its pieces come in."""

    __slots__ = ("id", "name", "pieces", "place")

    def __init__(self, place: int) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []

    def add_name(self, piece: str) -> None:
        """Add to the name. Some endpoints repeat the whole name with every piece."""
        if piece != self.name:
            self.name += piece

    def data(self, names: ToolNames) -> dict[str, Any]:
        return {"id": self.id, "name": names.own(self.name), "arguments": "".join(self.pieces)}


def _tool(schema: dict[str, Any], names: ToolNames) -> dict[str, Any]:
    function = {**schema, "name": names.wire(schema["name"])}
    return {"type": "function", "function": function}


def _effort(thinking: str, service: HttpService) -> str:
    if not service.effort:
        return ""
    return service.no_effort if thinking == "off" else thinking


def _assistant(message: Message, names: ToolNames, thoughts: bool) -> Message:
    found: Message = {"role": "assistant", "content": content_text(message.get("content"))}
    if thoughts and (reasoning := message.get("reasoning")):
        found["reasoning_content"] = reasoning
    if calls := message.get("tool_calls"):
        # No text besides the calls: endpoints write null for that, and expect it.
        found["content"] = found["content"] or None
        found["tool_calls"] = [_called(call, names) for call in calls]
    return found


def _called(call: Mapping[str, Any], names: ToolNames) -> dict[str, Any]:
    function = {
        "name": names.wire(call.get("name", "")),
        "arguments": written_arguments(call.get("arguments")),
    }
    return {"id": call.get("id", ""), "type": "function", "function": function}


def written_arguments(arguments: object) -> str:
    """Valid JSON, always: many endpoints parse it, and fail on what a model once wrote wrong."""
    if not isinstance(arguments, str):
        return json.dumps(arguments or {})
    if not arguments:
        return "{}"
    try:
        parse_json(arguments)
    except (ValueError, RecursionError):
        return json.dumps({"invalid": arguments})
    return arguments


def _content(content: object) -> str | list[dict[str, Any]]:
    """Plain text if there is nothing else, which every endpoint accepts; otherwise parts."""
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in read_parts(content)]
    if all(part.get("type") == "text" for part in parts):
        return content_text(parts)
    return parts


def _part(part: ReadPart) -> dict[str, Any]:
    if isinstance(part, dict):
        return part
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.url or part.data_url}}
    if part.kind == "audio" and part.data:
        sound = {"data": part.data, "format": _format(part.mime_type)}
        return {"type": "input_audio", "input_audio": sound}
    if part.kind == "file" and part.data:
        file = {"filename": part.name or "file.pdf", "file_data": part.data_url}
        return {"type": "file", "file": file}
    return {"type": "text", "text": part.note("this API takes no address")}


def _format(mime_type: str) -> str:
    kind = mime_type.rpartition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav"}.get(kind, kind)


def media_of(message: Message) -> list[dict[str, Any]]:
    """The images, recordings and files in a tool's answer."""
    content: object = message.get("content")
    if message.get("role") != "tool" or isinstance(content, str):
        return []
    return [part for each in read_parts(content) if (part := _part(each)).get("type") != "text"]


def shown(media: list[dict[str, Any]]) -> Message:
    """The message that shows the media in the answers of tools."""
    said = {"type": "text", "text": "The images, recordings and files that the tools returned:"}
    return {"role": "user", "content": [said, *media]}


def _text(value: object) -> str:
    """Text, or the text of parts; anything else is no chunk of this API."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return content_text(cast("list[object]", value))
    raise TypeError
