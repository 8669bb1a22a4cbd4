"""Requests as the bytes that an OpenAI-compatible endpoint is sent."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from hookline.text.compact_json import compact_encoder
from hookline.types import Message

from ..http.reply import GOOD_NAME, ToolNames
from ..http.settings import Endpoint
from ..model import ModelRequest, ToolSchema
from .wire import frame, media_of, shown, tools, wire_message

_encode = compact_encoder(ascii_only=True, allow_nan=True)


class _Told(NamedTuple):
    """The tools as last sent to the endpoint."""

    schemas: list[ToolSchema]  # kept, so that no other object gets the id of one
    ids: list[int]
    names: ToolNames
    text: str


class SentMessages:
    """The messages of a session as they were last sent to a model, with their text.

    A message that equals the one at its place is not encoded again. What was sent is kept as a copy, so
    that a message that a handler changed in place does not equal it.
    """

    __slots__ = ("messages", "texts")

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.texts: list[str] = []

    @property
    def size(self) -> int:
        """How many characters of text it holds."""
        return sum(map(len, self.texts))

    def write(self, messages: list[Message], names: ToolNames, thoughts: bool) -> list[str]:
        """The messages as JSON, each for itself."""
        sent, texts = self.messages, self.texts
        start = len(sent) if messages[: len(sent)] == sent else 0
        pieces = texts[:start]
        media: list[dict[str, Any]] = []
        for place, message in enumerate(messages[start:], start):
            if media and message.get("role") != "tool":
                pieces.append(_encode(shown(media)))
                media = []
            if place < len(sent) and sent[place] == message:
                pieces.append(texts[place])
                continue
            media += media_of(message)
            text = _encode(wire_message(message, names, thoughts))
            pieces.append(text)
            sent[place : place + 1] = [copy_of(message)]
            texts[place : place + 1] = [text]
        if media:
            pieces.append(_encode(shown(media)))
        del sent[len(messages) :], texts[len(messages) :]
        return pieces


_CHANGING: Final = object()  # equals no message


def copy_of(message: Message) -> Any:
    """A copy to compare with, if equal messages have the same text.

    Numbers are out, since 1 equals true, and so are names of tools that depend on the other tools.
    """
    calls: object = message.get("tool_calls")
    copies: list[dict[str, Any]] = []
    for call in cast("list[dict[str, Any]]", calls if type(calls) is list else ()):
        good = type(call) is dict and all(type(value) is str for value in call.values())
        if not good or not GOOD_NAME.fullmatch(call.get("name", "")):
            return _CHANGING
        copies.append(dict(call))
    for name, value in message.items():
        if type(value) is not str and value is not None and (name != "tool_calls" or calls != copies):
            return _CHANGING
    return {**message, "tool_calls": copies} if "tool_calls" in message else dict(message)


class RequestWriter:
    """Writes the requests to one model.

    The tools are most of a short request and seldom change: they are written once, and kept until a
    request has others. A schema is known again as the object that it is: change none in place, make
    another.
    """

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self._model = model
        self._endpoint = endpoint
        self._told = _Told([], [], ToolNames(()), "")

    def write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        """The body of a request, and the names that its tools have on the wire."""
        told = self._told
        ids = [*map(id, request.tools)]
        if told.ids != ids:
            names = ToolNames(tool["name"] for tool in request.tools)
            told = _Told(list(request.tools), ids, names, _encode(tools(request, names)))
            self._told = told
        # A copy: names that only this conversation knows must not reach the next request.
        names = told.names.copy()
        endpoint = self._endpoint
        service = endpoint.service
        text = _encode(frame(request, self._model, names, service, endpoint.settings))
        kept = request.encoded
        sent = SentMessages() if kept is None else kept.setdefault(self, SentMessages())
        messages = sent.write(request.messages, names, service.thoughts)
        if request.system:
            messages.insert(0, _encode({"role": "system", "content": request.system}))
        text = f'{text[:-1]},"messages":[{",".join(messages)}]'
        text += f',"tools":{told.text}}}' if request.tools else "}"
        return text.encode(), names
