"""A chat-completions endpoint on loopback that plays a script and checks what it is asked.

    with OpenAIServer(["hello"]) as server:
        ...  # OPENAI_BASE_URL=server.url

An answer is text, a `(tool, arguments)` pair, a list of such pairs, a `Thought`, an error as `Refused`,
the bytes of a stream, an iterator of its pieces, or a function of the request's body that returns one
of these. The last answer is repeated. Requests and answers are checked against the types of OpenAI's
own package.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from .wire_types import mismatch


@dataclass
class Thought:
    """An answer after some thinking: a part of it in words, then perhaps more thinking."""

    thinking: str
    answer: Any
    text: str = ""
    redacted: str = ""


@dataclass
class Refused:
    """An answer that is an error, with its body."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class OpenAIServer:
    """The endpoint; `requests` has the bodies that it was sent."""

    def __init__(self, answers: Sequence[Any], key: str = "test-key") -> None:
        self.answers, self.key = list(answers), key
        self.requests: list[dict[str, Any]] = []
        self.models = ["gpt-5", "gpt-5-mini"]
        """The models that it lists."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, payload, *more = outer.answer(
                    self.path, {k.title(): v for k, v in self.headers.items()}, json.loads(body or "{}")
                )
                self.send_response(status)
                pieces = [payload] if isinstance(payload, bytes) else payload
                is_json = isinstance(payload, bytes) and payload.startswith(b"{")
                kind = (
                    "text/event-stream"
                    if status == 200 and body and not is_json
                    else "application/json"
                )
                self.send_header("Content-Type", kind)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                if isinstance(payload, bytes):
                    self.send_header("Content-Length", str(len(payload)))
                else:
                    self.close_connection = True
                    self.send_header("Connection", "close")
                self.end_headers()
                with suppress(ConnectionError):
                    for piece in pieces:
                        self.wfile.write(piece)
                        self.wfile.flush()

            def log_message(self, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which `openai:` models are asked here."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": self.key}

    def __enter__(self) -> "OpenAIServer":
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
        """The status and body of the reply; a request of another form is a 400."""
        if path == "/v1/models":
            return 200, json.dumps({"data": [{"id": name} for name in self.models]}).encode()
        if path != "/v1/chat/completions":
            return refused(404, f"no such path: {path}")
        if headers.get("Authorization") != f"Bearer {self.key}":
            return refused(401, "Incorrect API key provided.", code="invalid_api_key")
        if wrong := problem(body):
            return refused(400, wrong)
        self.requests.append(body)
        write = events if body.get("stream") else whole
        return self.chosen(body, lambda answer, body: write(answer, body["model"]))

    def chosen(self, body: dict[str, Any], write: Callable[[Any, dict[str, Any]], bytes]) -> Any:
        """The answer whose turn it is, written as a stream."""
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        found = found(body) if isinstance(found, Callable) else found
        if isinstance(found, Refused):
            return found.status, found.body, found.headers
        is_written = isinstance(found, bytes | Iterator)
        return 200, found if is_written else write(found, body)


def obliging(body: dict[str, Any]) -> Any:
    """An answer for whoever asks: the form that is wanted, a call of the first tool, or words."""
    form = body.get("response_format")
    if form is not None:
        return json.dumps(example_of(form["json_schema"]["schema"]))
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        function = body["tools"][0]["function"]
        return function["name"], example_of(function["parameters"])
    return "It is a fine day."


def example_of(schema: dict[str, Any]) -> Any:
    """A value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "object":
        wanted = schema.get("required", ())
        return {name: example_of(schema["properties"][name]) for name in wanted}
    return {"array": [], "integer": 1, "number": 1.5, "boolean": True}.get(kind, "one")


def refused(status: int, message: str, **more: Any) -> tuple[int, bytes]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    return status, json.dumps({"error": error}).encode()


def problem(body: dict[str, Any]) -> str:
    """What the API would not accept of a request."""
    # The package takes a second to import.
    from openai.types.chat import completion_create_params as params

    kind = "Streaming" if body.get("stream") else "NonStreaming"
    if wrong := mismatch(body, getattr(params, f"CompletionCreateParams{kind}")):
        return wrong
    if wrong := wrong_results(body["messages"]):
        return wrong
    for tool in body.get("tools", ()):
        if tool["type"] != "function" or tool["function"]["parameters"]["type"] != "object":
            return "a tool's parameters must be an object"
    if "tool_choice" in body and not body.get("tools"):
        return "tool_choice is only allowed when tools are specified"
    form = body.get("response_format")
    if form is not None:
        schema = form["json_schema"]
        if form["type"] != "json_schema" or not schema["name"].replace("_", "a").isalnum():
            return "a response_format needs a json_schema with a name"
        if schema.get("strict") and (wrong := loose(schema["schema"])):
            return f"Invalid schema for response_format {schema['name']!r}: {wrong}"
    return ""


def wrong_results(messages: list[dict[str, Any]]) -> str:
    """What the API would not accept about the results of calls."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return "messages with role 'tool' must be a response to a message with 'tool_calls'"
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return f"tool_call_ids did not have response messages: {min(waiting)}"
        else:
            waiting = {call["id"] for call in message.get("tool_calls", ())}
    return f"tool_call_ids did not have response messages: {min(waiting)}" if waiting else ""


def whole(answer: Any, model: str) -> bytes:
    """An answer as one completion."""
    from openai.types.chat import ChatCompletion

    calls = [answer] if isinstance(answer, tuple) else answer if isinstance(answer, list) else []
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if calls else answer,
        "refusal": None,
    }
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for n, (name, given) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None}
    choice["finish_reason"] = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    sent = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    sent |= {"choices": [choice], "usage": usage}
    ChatCompletion.model_validate(sent)
    return json.dumps(sent).encode()


def loose(schema: Any) -> str:
    """What strict mode does not accept of a schema."""
    if isinstance(schema, list):
        return next((wrong for each in schema if (wrong := loose(each))), "")
    if not isinstance(schema, dict):
        return ""
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return "'additionalProperties' is required to be supplied and to be false"
        if set(schema.get("required", ())) != set(schema.get("properties", {})):
            return "'required' is required to be supplied and to include every key in properties"
    for name in ("default", "oneOf", "allOf"):
        if name in schema and not isinstance(schema[name], dict | str):
            return f"{name!r} is not permitted"
    return next((wrong for each in schema.values() if (wrong := loose(each))), "")


def events(answer: Any, model: str) -> bytes:
    """An answer as the events of a stream."""
    deltas: list[dict[str, Any]] = []
    while isinstance(answer, Thought):
        deltas.append({"reasoning_content": answer.thinking})
        answer = answer.answer
    calls = [answer] if isinstance(answer, tuple) else answer if isinstance(answer, list) else []
    if isinstance(answer, str):
        deltas += [{"content": answer[i : i + 8]} for i in range(0, len(answer), 8)]
    for number, (name, arguments) in enumerate(calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": name, "arguments": text}
        call = {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    sent = [{**common, "choices": [chunk]} for chunk in chunks]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    sent.append({**common, "choices": [], "usage": usage})
    from openai.types.chat import ChatCompletionChunk

    for each in sent:
        ChatCompletionChunk.model_validate(each)
    return "".join(f"data: {json.dumps(each)}\n\n" for each in sent).encode() + b"data: [DONE]\n\n"
