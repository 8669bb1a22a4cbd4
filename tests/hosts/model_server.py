"""A scripted model on loopback that speaks the APIs of the hosts: Anthropic, OpenAI and Gemini."""

import json
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from hookline.bridges.testing.server import streamed as chat_completion

USAGE = {"input_tokens": 1, "output_tokens": 1}


class ModelServer:
    """Answers requests that offer tools from a script: text, or a list of `(tool, arguments)`.

    Other requests (titles, summaries, token counts) get a short text and do not move the script.
    """

    def __init__(self, script: Sequence[Any]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.number = 0
        self.scripted = 0
        """How many requests were answered from the script."""
        self._lock = Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(200, "application/json", json.dumps({"data": [], "models": []}).encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    request = json.loads(body)
                except ValueError:
                    self._send(200, "application/json", b"{}")
                    return
                self._send(*outer.reply(self.path.partition("?")[0], request))

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "ModelServer":
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def seen(self) -> str:
        """Everything that the model was sent, as text."""
        return json.dumps(self.requests)

    def reply(self, path: str, request: dict[str, Any]) -> tuple[int, str, bytes]:
        """The status, type and body of the answer to a request."""
        tools = request.get("tools") or []
        with self._lock:
            self.requests.append(request)
            self.number += 1
            number = self.number
            answer: Any = "A title"
            if tools and not path.endswith(("count_tokens", ":countTokens")):
                self.scripted += 1
                answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if path.endswith("/count_tokens"):
            return 200, "application/json", b'{"input_tokens": 1}'
        if path.endswith("/messages"):
            events = list(anthropic(answer, number))
            return answered(events, request.get("stream"), whole_anthropic(answer, number))
        if path.endswith("/responses"):
            return answered(list(responses(answer, number)), True, {})
        if path.endswith("/chat/completions"):
            return 200, "text/event-stream", chat_completion(answer, request, number)
        if path.endswith(":streamGenerateContent"):
            lines = f"data: {json.dumps(gemini(answer))}\n\n"
            return 200, "text/event-stream", lines.encode()
        if path.endswith(":countTokens"):
            return 200, "application/json", b'{"totalTokens": 1}'
        return 200, "application/json", json.dumps(gemini(answer)).encode()


def answered(events: list[dict[str, Any]], stream: Any, whole: Any) -> tuple[int, str, bytes]:
    if not stream:
        return 200, "application/json", json.dumps(whole).encode()
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return 200, "text/event-stream", "".join(lines).encode()


def blocks(answer: Any, number: int) -> tuple[list[dict[str, Any]], str]:
    if isinstance(answer, str):
        return [{"type": "text", "text": answer}], "end_turn"
    return [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(answer)
    ], "tool_use"


def whole_anthropic(answer: Any, number: int) -> dict[str, Any]:
    content, reason = blocks(answer, number)
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted",
        "content": content, "stop_reason": reason, "stop_sequence": None, "usage": USAGE,
    }  # fmt: skip


def anthropic(answer: Any, number: int) -> Iterator[dict[str, Any]]:
    content, reason = blocks(answer, number)
    empty = {**whole_anthropic(answer, number), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": empty}
    for place, block in enumerate(content):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": place, "content_block": start}
        yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": USAGE,
    }
    yield {"type": "message_stop"}


def responses(answer: Any, number: int) -> Iterator[dict[str, Any]]:
    """The events of OpenAI's Responses API."""
    response = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    items: list[dict[str, Any]] = []
    if isinstance(answer, str):
        part = {"type": "output_text", "text": answer, "annotations": []}
        items.append({"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [part]})
    else:
        for place, (name, arguments) in enumerate(answer):
            call = {"id": f"fc_{number}_{place}", "call_id": f"call_{number}_{place}", "name": name}
            if isinstance(arguments, str):
                items.append({**call, "type": "custom_tool_call", "input": arguments})
            else:
                items.append({**call, "type": "function_call", "arguments": json.dumps(arguments)})
    for place, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": place, "item": item}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    usage = {
        **USAGE, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": done}


def gemini(answer: Any) -> dict[str, Any]:
    if isinstance(answer, str):
        parts = [{"text": answer}]
    else:
        parts = [{"functionCall": {"name": name, "args": args}} for name, args in answer]
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "gemini-2.5-pro",
    }
