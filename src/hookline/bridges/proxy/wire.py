"""What the proxy needs from a wire format, and what all formats share."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, cast

from hookline.bridges.reports import HostAnswer
from hookline.errors import BadProxyRequest, BadResponse

Json = dict[str, Any]


@dataclass(slots=True)
class WireMessage:
    """A message of the conversation: as the format has it, and as handlers see it."""

    wire: Json
    message: Json

    @property
    def role(self) -> str:
        """Who speaks: user, assistant, tool or system."""
        return self.message["role"]

    @property
    def text(self) -> str:
        """The text of it."""
        return text_of(self.message["content"])

    def digest(self, before: bytes) -> bytes:
        """The hash of the conversation up to this message, given the hash before it.

        It covers the meaning, since clients write the same message in different ways.
        """
        message = self.message
        calls = [
            (call["id"], call["name"], parsed(call["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
        content = message["content"]
        meaning = [message["role"], content, calls, message.get("tool_call_id")]
        written = json.dumps(meaning, sort_keys=True, separators=(",", ":")).encode()
        return blake2b(before + written, digest_size=16).digest()


@dataclass(slots=True)
class ProxyRequest:
    """A client's request."""

    raw: bytes
    body: Json
    model: str
    stream: bool
    system: str
    pieces: list[WireMessage]
    tools: list[Json]


class AnswerReader(ABC):
    """Puts the answer of a provider together."""

    def __init__(self) -> None:
        self.usage: Json = {}
        self.data: Json | None = None
        """The event that was taken last, if it is an object."""
        self.is_complete = False
        """Whether the provider said that the answer is at its end."""

    @abstractmethod
    def take(self, data: bytes) -> bool:
        """Take an event of a stream; return whether it only carries text and may be passed on."""

    @abstractmethod
    def whole(self, body: bytes) -> None:
        """Take an answer that comes at once."""

    @abstractmethod
    def answer(self) -> HostAnswer:
        """The answer as handlers see it."""

    @abstractmethod
    def piece(self, calls: Sequence[Json]) -> WireMessage:
        """The answer as a message of the conversation, with these calls."""


class AnswerWriter(ABC):
    """Writes one answer to a client: from the events of several model calls, or from parts."""

    @abstractmethod
    def passed(self, raw: bytes, data: Json | None) -> bytes:
        """An event of the provider, as it fits into this answer; nothing if it does not."""

    @abstractmethod
    def written(self, answer: HostAnswer, text: str) -> bytes:
        """The rest of the stream: this text, the calls of the answer, and the end."""

    @abstractmethod
    def whole(self, answer: HostAnswer, reader: AnswerReader | None) -> bytes:
        """The answer at once; based on what the provider sent, if it answered."""


class WireFormat(ABC):
    """A wire format that the proxy serves."""

    name: ClassVar[str]
    api: ClassVar[str]
    """The protocol that a provider must speak, as `HttpService.api` names it."""
    paths: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(self, raw: bytes) -> ProxyRequest:
        """Read a request. Raises `BadProxyRequest` if it cannot be understood."""

    @abstractmethod
    def body(self, request: ProxyRequest, system: str, pieces: Sequence[WireMessage]) -> bytes:
        """The request with another system prompt or other messages."""

    @abstractmethod
    def built(self, message: Json) -> WireMessage:
        """A piece made from a message of a handler, or of the proxy."""

    @abstractmethod
    def with_text(self, piece: WireMessage, text: str) -> WireMessage:
        """A message of the user or a tool with another text."""

    @abstractmethod
    def reader(self) -> AnswerReader:
        """A reader for one answer."""

    @abstractmethod
    def writer(self, request: ProxyRequest) -> AnswerWriter:
        """A writer for one answer."""

    @abstractmethod
    def error(self, status: int, message: str, code: str | None = None) -> Json:
        """The body of an error."""

    @abstractmethod
    def error_event(self, message: str) -> bytes:
        """An error in the middle of a stream."""

    @abstractmethod
    def token(self, headers: Mapping[str, str]) -> str:
        """The key that a client sends."""

    @abstractmethod
    def key_headers(self, key: str, headers: Mapping[str, str]) -> dict[str, str]:
        """What goes to the provider: the key, and headers of the client that belong to the format."""


def text_of(content: Any) -> str:
    """The text in a content: text, or parts of which some are text."""
    if isinstance(content, str):
        return content
    parts = cast("list[Json]", content) if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts if part.get("type") == "text")


def plain_content(parts: Sequence[Json]) -> Any:
    """Parts as text, if they are nothing else."""
    if all(part.get("type") == "text" for part in parts):
        return text_of(parts)
    return [*parts]


def parsed(arguments: Any) -> Any:
    """Arguments as a value, to compare them; text that is no JSON is itself."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def need(value: Any, kind: type | tuple[type, ...], field: str, what: str) -> Any:
    """A value of the request, or an error that names the field."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadProxyRequest(f"{field} must be {what}", field)
    return value


def objects(value: Any, field: str) -> list[Json]:
    """A list of objects of the request."""
    return [
        need(each, dict, f"{field}[{n}]", "an object")
        for n, each in enumerate(need(value, list, field, "a list"))
    ]


def event(data: Json, name: str = "") -> bytes:
    """An event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


class RawEvents:
    """Splits a stream of events into events, each with its own bytes and its data."""

    LIMIT: ClassVar[int] = 16 * 1024 * 1024

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, chunk: bytes) -> Iterable[tuple[bytes, bytes]]:
        """The events that end in this piece."""
        self._buffer += chunk
        while found := self._end():
            raw, self._buffer = self._buffer[:found], self._buffer[found:]
            yield raw, data_of(raw)
        if len(self._buffer) > self.LIMIT:
            raise BadResponse(f"an event of more than {self.LIMIT} bytes")

    def end(self) -> Iterable[tuple[bytes, bytes]]:
        """What is left at the end of the stream."""
        if self._buffer.strip():
            yield from self.feed(b"\n\n")

    def _end(self) -> int:
        ends = [
            place + len(mark)
            for mark in (b"\n\n", b"\r\n\r\n", b"\r\r")
            if (place := self._buffer.find(mark)) >= 0
        ]
        return min(ends, default=0)


def data_of(raw: bytes) -> bytes:
    """The data of an event."""
    lines = [line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines)
