"""Requests as an OpenAI-compatible endpoint reads them, and its chunks as stream events."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, cast
from zlib import crc32

from hookline.errors import BadResponse
from hookline.text.foreign_json import parse_json
from hookline.types import AudioPart, ImagePart, Message, StreamEvent, TextPart

from ..model import ModelRequest, content_text
from ..thinking_level import THINKING, thinking_of
from .settings import RESERVED, OpenAIService, Settings

_OURS = (*RESERVED, THINKING)
_GOOD_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BAD_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64

MOST_CALLS = 256
MOST_ARGUMENTS = 64 * 1024 * 1024
"""More tool calls, or more characters of arguments, are no answer but a fault."""


_NOTHING: dict[str, Any] = {}


class ToolNames:
    """Names that the API takes for the tools of one request, and back."""

    __slots__ = ("_back", "_there")

    def __init__(self, names: Iterable[str]) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        changed: list[str] = []
        for name in names:
            if _GOOD_NAME.fullmatch(name):
                self._there[name] = self._back[name] = name
            else:
                changed.append(name)
        for name in changed:
            self._add(name)

    def copy(self) -> ToolNames:
        """The same names, for another request with the same tools."""
        twin = ToolNames(())
        twin._there, twin._back = self._there.copy(), self._back.copy()
        return twin

    def wire(self, name: str) -> str:
        """The name for the API. One of an earlier request, not offered now, gets one as well."""
        return self._there.get(name) or (name if _GOOD_NAME.fullmatch(name) else self._add(name))

    def own(self, wire: str) -> str:
        """The tool's own name; what the model made up stays as it is."""
        return self._back.get(wire, wire)

    def _add(self, name: str) -> str:
        wire = _BAD_CHARACTER.sub("_", name) or "_"
        if len(wire) > _LONGEST_NAME or wire in self._back:
            # Made from the name alone, so that a prompt stays the same from turn to turn.
            wire = f"{wire[: _LONGEST_NAME - 9]}_{crc32(name.encode(errors='replace')):08x}"
        self._there[name] = wire
        self._back[wire] = name
        return wire


def body(
    request: ModelRequest, model: str, names: ToolNames, service: OpenAIService, settings: Settings
) -> dict[str, Any]:
    """The request as the API reads it."""
    found = frame(request, model, names, service, settings)
    if request.tools:
        found["tools"] = tools(request, names)
    return found


def frame(
    request: ModelRequest, model: str, names: ToolNames, service: OpenAIService, settings: Settings
) -> dict[str, Any]:
    """The request without its tools, which are the same from request to request."""
    found: dict[str, Any] = {
        "model": model,
        "messages": messages(request, names, thoughts=service.thoughts),
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
    pictures: list[dict[str, Any]] = []
    for message in request.messages:
        role = message.get("role")
        content = message.get("content")
        if role == "tool":
            # A tool's answer is text in this API: its pictures follow, after all answers.
            pictures += _pictures(content)
            answer = {"role": "tool", "tool_call_id": message.get("tool_call_id", "")}
            found.append({**answer, "content": content_text(content)})
            continue
        if pictures:
            found.append(_shown(pictures))
            pictures = []
        if role == "assistant":
            found.append(_assistant(message, names, thoughts))
        else:
            found.append({"role": role, "content": _content(content)})
    if pictures:
        found.append(_shown(pictures))
    return found


def usage(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The usage, under the names that all models use."""
    found: dict[str, Any] = {
        "input_tokens": _count(counts.get("prompt_tokens")),
        "output_tokens": _count(counts.get("completion_tokens")),
    }
    cached = _table(counts.get("prompt_tokens_details")).get("cached_tokens")
    cached = counts.get("prompt_cache_hit_tokens") if cached is None else cached
    if cached is not None:
        found["cached_tokens"] = _count(cached)
    reasoning = _table(counts.get("completion_tokens_details")).get("reasoning_tokens")
    if reasoning is not None:
        found["reasoning_tokens"] = _count(reasoning)
    cost = counts.get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        found["cost"] = cost
    return found


class StreamedReply:
    """An answer as its chunks come in. Tool calls are given when they are whole."""

    __slots__ = ("_calls", "_names", "_size", "counts", "reason", "spoken")

    done = False
    """Whether the answer itself said that it is over; `[DONE]` says it for chat completions."""

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._calls: dict[object, _Call] = {}
        self._size = 0
        self.counts: dict[str, Any] | None = None
        self.reason = ""
        self.spoken = False

    def take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        """The events of one chunk."""
        counts = chunk.get("usage")
        if counts:
            self.counts = _table(counts)
        choices: Any = chunk.get("choices")
        if not choices:
            return []
        try:
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
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise BadResponse("a chunk of another form") from error
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

    @property
    def finish_reason(self) -> str:
        """The finish reason; some endpoints report `stop` for tool calls."""
        if self._calls and self.reason in ("", "stop", "function_call"):
            return "tool_calls"
        return self.reason or "stop"

    def _add(self, piece: dict[str, Any]) -> None:
        place = piece.get("index")
        if place is None:
            # Without an index, a new id begins a new call and none goes on with the last.
            place = piece.get("id") or next(reversed(self._calls), 0)
        call = self._calls.get(place)
        if call is None:
            if len(self._calls) >= MOST_CALLS:
                raise BadResponse(f"more than {MOST_CALLS} tool calls")
            order = place if isinstance(place, int) else len(self._calls)
            call = self._calls[place] = _Call(order)
            self.spoken = True
        function: Any = piece.get("function") or _NOTHING
        if name := function.get("name"):
            call.add_name(_text(name))
        call.id = call.id or _text(piece.get("id") or "")
        arguments = function.get("arguments")
        if arguments:
            # A few endpoints give an object where the API says text.
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            self._size += len(text)
            if self._size > MOST_ARGUMENTS:
                raise BadResponse(f"more than {MOST_ARGUMENTS} characters of arguments")
            call.pieces.append(text)


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


def _effort(thinking: str, service: OpenAIService) -> str:
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
        "arguments": _arguments(call.get("arguments")),
    }
    return {"id": call.get("id", ""), "type": "function", "function": function}


def _arguments(arguments: object) -> str:
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
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, Iterable):
        return str(content)
    parts = [_part(part) for part in cast("Iterable[object]", content)]
    if all(part.get("type") == "text" for part in parts):
        return content_text(parts)
    return parts


def _part(part: object) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return _image(part.url, part.data, part.mime_type)
    if isinstance(part, AudioPart):
        return _audio(part.data, part.mime_type)
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, dict):
        table = cast("dict[str, Any]", part)
        if table.get("type") == "image":
            return _image(table.get("url"), table.get("data"), table.get("mime_type") or "image/png")
        if table.get("type") == "audio":
            return _audio(table.get("data"), table.get("mime_type") or "audio/wav")
        return table
    return {"type": "text", "text": str(part)}


def _image(url: str | None, data: bytes | str | None, mime_type: str) -> dict[str, Any]:
    if not url:
        url = f"data:{mime_type};base64,{_encoded(data)}"
    return {"type": "image_url", "image_url": {"url": url}}


def _audio(data: bytes | str | None, mime_type: str) -> dict[str, Any]:
    audio = {"data": _encoded(data), "format": _format(mime_type)}
    return {"type": "input_audio", "input_audio": audio}


def _encoded(data: bytes | str | None) -> str:
    return data if isinstance(data, str) else b64encode(data or b"").decode()


def _format(mime_type: str) -> str:
    kind = mime_type.rpartition("/")[2].removeprefix("x-")
    return {"mpeg": "mp3", "wave": "wav"}.get(kind, kind)


def _pictures(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str) or not isinstance(content, Iterable):
        return []
    parts = [_part(part) for part in cast("Iterable[object]", content)]
    return [part for part in parts if part.get("type") == "image_url"]


def _shown(pictures: list[dict[str, Any]]) -> Message:
    said = {"type": "text", "text": "What the tools returned as images:"}
    return {"role": "user", "content": [said, *pictures]}


def _text(value: object) -> str:
    """Text, or the text of parts; anything else is no chunk of this API."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return content_text(cast("list[object]", value))
    raise TypeError


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
