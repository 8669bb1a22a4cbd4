"""A model on loopback that plays a script, as chat completions or as Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class ScriptedServer:
    """Answers requests in order.

    An answer is text, a list of `(tool, arguments)`, a status code, or None, which never comes.
    Arguments that are text are sent as they are.

    The last answer is repeated. `requests` has the bodies that were sent.
    """

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.waiting = Event()
        """Set when a request waits for an answer that never comes."""
        self._closed = Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                asked = json.loads(self.rfile.read(size))
                status, kind, body = outer.reply(asked, "/messages" in self.path)
                with suppress(OSError):  # the client may be gone
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ScriptedServer:
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def said(self) -> str:
        """Everything that the model was sent, as text."""
        return json.dumps([[request.get("system"), request["messages"]] for request in self.requests])

    def reply(self, request: dict[str, Any], anthropic: bool = False) -> tuple[int, str, bytes]:
        """The status, type and body of the answer to a request."""
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            self.waiting.set()
            self._closed.wait(60)
            answer = 503
        if isinstance(answer, int):
            error = {"error": {"message": "scripted", "type": "server_error"}}
            return answer, "application/json", json.dumps(error).encode()
        if anthropic:
            return 200, "text/event-stream", anthropic_events(answer, request, len(self.requests))
        if request.get("stream"):
            return 200, "text/event-stream", streamed(answer, request, len(self.requests))
        return 200, "application/json", whole(answer, request, len(self.requests))


def message_of(answer: Any, number: int) -> tuple[dict[str, Any], str]:
    """An answer as a message, and its finish reason."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}, "stop"
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": encoded(arguments)},
        }
        for place, (name, arguments) in enumerate(answer)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


def encoded(arguments: Any) -> str:
    """Arguments as a model sends them."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def whole(answer: Any, request: dict[str, Any], number: int) -> bytes:
    """An answer in one piece."""
    message, reason = message_of(answer, number)
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
        "choices": [choice], "usage": USAGE,
    }  # fmt: skip
    return json.dumps(body).encode()


def streamed(answer: Any, request: dict[str, Any], number: int) -> bytes:
    """An answer as Server-Sent Events."""
    message, reason = message_of(answer, number)
    delta: dict[str, Any] = {**message, "content": message["content"] or ""}
    if "tool_calls" in delta:
        calls: list[dict[str, Any]] = delta["tool_calls"]
        delta["tool_calls"] = [{**call, "index": place} for place, call in enumerate(calls)]
    base = {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]
    }  # fmt: skip
    first = {"index": 0, "delta": delta, "finish_reason": None}
    last = {"index": 0, "delta": dict[str, Any](), "finish_reason": reason}
    events: list[dict[str, Any]] = [
        {**base, "choices": [first]},
        {**base, "choices": [last]},
        {**base, "choices": [], "usage": USAGE},
    ]
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def anthropic_events(answer: Any, request: dict[str, Any], number: int) -> bytes:
    """An answer as Server-Sent Events of the Messages API."""
    message: dict[str, Any] = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": request["model"],
        "content": [], "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for place, (block, delta) in enumerate(anthropic_blocks(answer, request, number)):
        events += [
            {"type": "content_block_start", "index": place, "content_block": block},
            {"type": "content_block_delta", "index": place, "delta": delta},
            {"type": "content_block_stop", "index": place},
        ]
    reason = "end_turn" if isinstance(answer, str) else "tool_use"
    usage = {"output_tokens": 1}
    events += [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def anthropic_blocks(answer: Any, request: dict[str, Any], number: int) -> list[tuple[Any, Any]]:
    """The content blocks of an answer, each with its delta. `shell` may be `mcp__tools__shell`."""
    if isinstance(answer, str):
        return [({"type": "text", "text": ""}, {"type": "text_delta", "text": answer})]
    known = [tool["name"] for tool in request.get("tools") or ()]
    blocks: list[tuple[Any, Any]] = []
    for place, (name, arguments) in enumerate(answer):
        full = next((each for each in known if each.endswith(f"__{name}")), name)
        block: dict[str, Any] = {
            "type": "tool_use",
            "id": f"toolu_{number}_{place}",
            "name": full,
            "input": {},
        }
        blocks.append((block, {"type": "input_json_delta", "partial_json": encoded(arguments)}))
    return blocks
