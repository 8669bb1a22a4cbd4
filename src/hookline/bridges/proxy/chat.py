"""OpenAI chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import time
from typing import Any, ClassVar, cast
from uuid import uuid4

from hookline.bridges.reports import HostAnswer
from hookline.errors import BadProxyRequest, BadResponse
from hookline.models.http.reply import ToolNames, table
from hookline.models.openai.wire import ChatReply, usage
from hookline.text.foreign_json import parse_json

from .wire import (
    AnswerReader,
    AnswerWriter,
    Json,
    ProxyRequest,
    WireFormat,
    WireMessage,
    event,
    need,
    objects,
    plain_content,
    text_of,
)

ROLES = ("system", "developer", "user", "assistant", "tool")
DONE = b"data: [DONE]\n\n"


class ChatCompletions(WireFormat):
    """`POST /v1/chat/completions`."""

    name: ClassVar[str] = "chat"
    api: ClassVar[str] = "chat"
    paths: ClassVar[tuple[str, ...]] = ("/v1/chat/completions", "/chat/completions")

    def read(self, raw: bytes) -> ProxyRequest:
        """Read a request."""
        try:
            body: Json = need(parse_json(raw), dict, "the body", "an object")
        except ValueError as error:
            if isinstance(error, BadProxyRequest):
                raise
            raise BadProxyRequest(f"the body is not JSON: {error}") from None
        model = need(body.get("model"), str, "model", "the name of a model")
        messages = objects(body.get("messages"), "messages")
        if not messages:
            raise BadProxyRequest("messages is empty", "messages")
        for unsupported in ("functions", "function_call"):
            if body.get(unsupported) is not None:
                raise BadProxyRequest(
                    f"{unsupported} is not supported by the proxy; use tools", unsupported
                )
        if body.get("n") not in (None, 1):
            raise BadProxyRequest("the proxy gives one answer: n must be 1", "n")
        stream = need(body.get("stream") or False, bool, "stream", "true or false")
        tools = [tool_of(tool, n) for n, tool in enumerate(objects(body.get("tools") or [], "tools"))]
        pieces = [piece_of(message, n) for n, message in enumerate(messages)]
        check_results(pieces)
        first = leading(pieces)
        system = "\n\n".join(piece.text for piece in pieces[:first])
        return ProxyRequest(raw, body, model, stream, system, pieces[first:], tools)

    def body(self, request: ProxyRequest, system: str, pieces: Sequence[WireMessage]) -> bytes:
        """The request with another system prompt or other messages."""
        messages = [piece.wire for piece in pieces]
        given: list[Json] = request.body["messages"]
        kept = given[: len(given) - len(request.pieces)]
        if system != request.system:
            kept = (
                [{"role": kept[0]["role"] if kept else "system", "content": system}] if system else []
            )
        return json.dumps({**request.body, "messages": [*kept, *messages]}).encode()

    def built(self, message: Json) -> WireMessage:
        """A piece made from a message of a handler, or of the proxy."""
        wire: Json = {"role": message["role"], "content": message.get("content")}
        if calls := message.get("tool_calls"):
            wire["tool_calls"] = [wire_call(call) for call in calls]
            wire["content"] = wire["content"] or None
        if message["role"] == "tool":
            wire |= {"tool_call_id": message["tool_call_id"], "content": text_of(message["content"])}
        return WireMessage(wire, message)

    def with_text(self, piece: WireMessage, text: str) -> WireMessage:
        """A message with another text; what is not text stays in a message of the user."""
        content: Any = piece.wire.get("content")
        changed: Any = text
        if piece.role == "user" and isinstance(content, list):
            parts = cast("list[Json]", content)
            others = [part for part in parts if part.get("type") != "text"]
            changed = [{"type": "text", "text": text}, *others] if others else text
        wire = {**piece.wire, "content": changed}
        return WireMessage(wire, {**piece.message, "content": changed})

    def reader(self) -> AnswerReader:
        """A reader for one answer."""
        return ChatReader()

    def writer(self, request: ProxyRequest) -> AnswerWriter:
        """A writer for one answer."""
        return ChatWriter(request)

    def error(self, status: int, message: str, code: str | None = None) -> Json:
        """The body of an error."""
        kind = {401: "authentication_error", 404: "not_found_error"}.get(status)
        kind = kind or ("invalid_request_error" if status < 500 else "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def error_event(self, message: str) -> bytes:
        """An error in the middle of a stream."""
        return event(self.error(502, message))

    def token(self, headers: Mapping[str, str]) -> str:
        """The key that a client sends."""
        kind, _, token = headers.get("Authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    def key_headers(self, key: str, headers: Mapping[str, str]) -> dict[str, str]:
        """The key for the provider."""
        return {"Authorization": f"Bearer {key}"} if key else {}


class ChatReader(AnswerReader):
    """Puts a completion together."""

    def __init__(self) -> None:
        super().__init__()
        self._reply = ChatReply(ToolNames(()))
        self._text: list[str] = []
        self._calls: list[Json] = []
        self.body: Json | None = None
        self._reason = ""

    def take(self, data: bytes) -> bool:
        """Take a chunk."""
        self.data = None
        if data == b"[DONE]":
            self.is_complete = bool(self._reason)
            return False
        if not data:
            return not self._reason
        self.data = chunk = object_of(data)
        if chunk.get("error"):
            raise BadResponse(f"an error: {error_text(chunk['error'])}")
        choices: list[Any] = chunk.get("choices") or []
        if len(choices) > 1 or any(table(choice).get("index", 0) != 0 for choice in choices):
            raise BadResponse("more than one answer")
        delta = table(table(choices[0]).get("delta")) if choices else {}
        check_calls(delta)
        before = self._reply.reason
        for each in self._reply.take(chunk):
            if each.kind == "text":
                self._text.append(each.data["delta"])
        self._reason = self._reply.reason
        # An endpoint may end after the last chunk, without [DONE].
        self.is_complete = bool(self._reason)
        return not (delta.get("tool_calls") or before or self._reason or chunk.get("usage"))

    def whole(self, body: bytes) -> None:
        """Take a completion."""
        self.body = found = object_of(body)
        choices: Any = found.get("choices")
        if not isinstance(choices, list) or len(cast("list[Any]", choices)) != 1:
            raise BadResponse("an answer without exactly one choice")
        choice = table(cast("list[Any]", choices)[0])
        message = table(choice.get("message"))
        check_calls(message)
        self._text = [str(message.get("content") or message.get("refusal") or "")]
        self._calls = [own_call(call) for call in message.get("tool_calls") or ()]
        self._reason = str(choice.get("finish_reason") or "stop")
        self.usage = usage(found.get("usage") or {})
        self.is_complete = True

    def answer(self) -> HostAnswer:
        """The answer as handlers see it."""
        if self.body is None:
            self._calls = [each.data for each in self._reply.end()]
            self.usage = self._reply.usage if self._reply.counts else {}
        return HostAnswer("".join(self._text), [*self._calls], self.usage, self._reason)

    def piece(self, calls: Sequence[Json]) -> WireMessage:
        """The answer as a message of the conversation."""
        message: Json = {"role": "assistant", "content": "".join(self._text)}
        if calls:
            message["tool_calls"] = [*calls]
        return ChatCompletions().built(message)


class ChatWriter(AnswerWriter):
    """Writes completions and their chunks."""

    def __init__(self, request: ProxyRequest) -> None:
        self._model = request.model
        self._common: Json = {}
        self._counts = bool(table(request.body.get("stream_options")).get("include_usage"))

    def passed(self, raw: bytes, data: Json | None) -> bytes:
        """A chunk; those of later model calls get the id of the first."""
        chunk = data
        if chunk is None:
            return raw
        if not self._common:
            self._common = {
                name: chunk[name]
                for name in ("id", "object", "created", "model", "system_fingerprint")
                if name in chunk
            }
            return raw
        if chunk.get("id") == self._common.get("id"):
            return raw
        return event({**chunk, **self._common})

    def written(self, answer: HostAnswer, text: str) -> bytes:
        """The rest of the stream."""
        sent = b""
        if text:
            sent += self._chunk({"role": "assistant", "content": text})
        calls = [{"index": n, **wire_call(call)} for n, call in enumerate(answer.tool_calls)]
        if calls:
            sent += self._chunk({"tool_calls": calls})
        sent += self._chunk({}, reason_of(answer))
        if self._counts:
            sent += event({**self._head(), "choices": [], "usage": wire_usage(answer.usage)})
        return sent + DONE

    def whole(self, answer: HostAnswer, reader: AnswerReader | None) -> bytes:
        """A completion."""
        body: Json = {**self._head(), "object": "chat.completion", "usage": wire_usage(answer.usage)}
        given: Json = {"index": 0, "logprobs": None}
        if isinstance(reader, ChatReader) and reader.body is not None:
            body, given = reader.body, reader.body["choices"][0]
        message: Json = {
            **given.get("message", {"role": "assistant", "refusal": None}),
            "content": answer.text or None,
        }
        message.pop("tool_calls", None)
        if answer.tool_calls:
            message["tool_calls"] = [wire_call(call) for call in answer.tool_calls]
        choice = {**given, "message": message, "finish_reason": reason_of(answer)}
        return json.dumps({**body, "choices": [choice]}).encode()

    def _head(self) -> Json:
        if not self._common:
            self._common = {
                "id": f"chatcmpl-{uuid4().hex}",
                "object": "chat.completion.chunk",
                "created": int(time()),
                "model": self._model,
            }
        return self._common

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event({**self._head(), "choices": [choice]})


def tool_of(tool: Json, n: int) -> Json:
    """A tool as handlers see it."""
    if tool.get("type") != "function":
        raise BadProxyRequest(
            f"tools[{n}]: the proxy can only judge tools of type function", f"tools[{n}].type"
        )
    function = need(tool.get("function"), dict, f"tools[{n}].function", "an object")
    need(function.get("name"), str, f"tools[{n}].function.name", "text")
    return function


def piece_of(wire: Json, n: int) -> WireMessage:
    """A message of the request."""
    field = f"messages[{n}]"
    role = wire.get("role")
    if role not in ROLES:
        raise BadProxyRequest(f"{field}.role must be one of {', '.join(ROLES)}", f"{field}.role")
    content = wire.get("content")
    if isinstance(content, list):
        content = plain_content(objects(content, f"{field}.content"))
    elif content is None and role == "assistant":
        content = ""
    else:
        need(content, str, f"{field}.content", "text or a list of parts")
    message: Json = {"role": "system" if role == "developer" else role, "content": content}
    if role == "tool":
        need(wire.get("tool_call_id"), str, f"{field}.tool_call_id", "the id of a call")
        message["tool_call_id"] = wire["tool_call_id"]
    if wire.get("function_call"):
        raise BadProxyRequest(f"{field}.function_call is not supported; use tool_calls", field)
    if role == "assistant" and wire.get("tool_calls"):
        calls = objects(wire["tool_calls"], f"{field}.tool_calls")
        message["tool_calls"] = [
            read_call(call, f"{field}.tool_calls[{i}]") for i, call in enumerate(calls)
        ]
    return WireMessage(wire, message)


def read_call(call: Json, field: str) -> Json:
    """A call in a message of the request."""
    need(call.get("id"), str, f"{field}.id", "text")
    function = need(call.get("function"), dict, f"{field}.function", "an object")
    need(function.get("name"), str, f"{field}.function.name", "text")
    need(function.get("arguments"), str, f"{field}.function.arguments", "text")
    return own_call(call)


def check_results(pieces: Sequence[WireMessage]) -> None:
    """Refuse the result of a call that the message before it does not have."""
    calls: set[str] = set()
    for n, piece in enumerate(pieces):
        if piece.role == "tool":
            call_id = piece.message["tool_call_id"]
            if call_id not in calls:
                raise BadProxyRequest(
                    f"messages[{n}] is the result of {call_id!r}, which no message before it calls, "
                    "or which has a result already",
                    f"messages[{n}].tool_call_id",
                )
            calls.discard(call_id)
        else:
            calls = {call["id"] for call in piece.message.get("tool_calls") or ()}


def leading(pieces: Sequence[WireMessage]) -> int:
    """How many system messages the conversation begins with."""
    return next((n for n, piece in enumerate(pieces) if piece.role != "system"), len(pieces))


def own_call(call: Json) -> Json:
    """A call as handlers see it."""
    function = table(call.get("function"))
    arguments = function.get("arguments")
    return {
        "id": call.get("id") or "",
        "name": function.get("name") or "",
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    }


def wire_call(call: Json) -> Json:
    """A call as the format has it."""
    arguments = call["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": call["name"], "arguments": text},
    }


def check_calls(message: Json) -> None:
    """Refuse a call that is not a function's: it could not be judged."""
    if message.get("function_call"):
        raise BadResponse("a call in a form that cannot be judged (function_call)")
    for call in message.get("tool_calls") or ():
        kind = table(call).get("type")
        if kind not in (None, "", "function"):
            raise BadResponse(f"a call of type {kind!r}, which cannot be judged")


def reason_of(answer: HostAnswer) -> str:
    """Why the answer ends."""
    if answer.tool_calls:
        return "tool_calls"
    return (
        "stop" if answer.finish_reason in ("tool_calls", "", "function_call") else answer.finish_reason
    )


def wire_usage(counts: Json) -> Json:
    """The usage as the format has it."""
    asked, said = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def object_of(data: bytes) -> Json:
    """An object that the provider sent."""
    try:
        found = parse_json(data)
    except ValueError:
        raise BadResponse("something that is not JSON") from None
    if not isinstance(found, dict):
        raise BadResponse("something that is not an object")
    return cast("Json", found)


def error_text(error: Any) -> str:
    """The message of an error that the provider sent."""
    return str(table(error).get("message") or error)
