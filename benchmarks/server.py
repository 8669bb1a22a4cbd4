"""A model behind loopback HTTP that answers at once: what `turn.py` asks when it measures over HTTP.

It speaks as much of three APIs as a streamed answer needs: OpenAI's chat completions, Anthropic's
Messages and Google's `streamGenerateContent`. Asked by a user, it calls the tool; shown the tool's
result, it answers in ten pieces. Each event is an HTTP chunk of its own and is sent by itself, as a
provider does; the client gets several at once where it is slower than the server.

It is a process of its own, so that its CPU is not counted with the client's. It binds 127.0.0.1, tells
its port on standard output, and ends with its parent: when standard input does.
"""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frameworks import ARGUMENTS, CALL_ID, CHUNKS, RESULT, TOOL

MODEL = "gpt-x"


# --- The client's side ---


@dataclass(frozen=True)
class Server:
    """A running server, as its parent sees it."""

    process: "subprocess.Popen[str]"
    url: str

    def noted(self) -> tuple[int, int]:
        """How many model calls there were since this was last asked, and how many with a result."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("noted\n")
        self.process.stdin.flush()
        calls, shown = json.loads(self.process.stdout.readline())
        return calls, shown


@contextmanager
def serving() -> Generator[Server]:
    command = [sys.executable, str(Path(__file__).resolve())]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout  # leaving closes its standard input, and waits for its end
        port = json.loads(process.stdout.readline())
        yield Server(process, f"http://127.0.0.1:{port}/v1")


# --- The server's side ---


def event(data: str) -> bytes:
    """One server-sent event in one HTTP chunk."""
    payload = f"data: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    choices = [] if delta is None else [choice]
    return event(json.dumps({**about, "model": MODEL, "choices": choices, **more}))


def piece(**call: Any) -> bytes:
    return chunk({"tool_calls": [{"index": 0, **call}]})


COUNTS = {"prompt_tokens": 40, "completion_tokens": 20, "total_tokens": 60}
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
END = [event("[DONE]") + b"0\r\n\r\n"]
USAGE = [chunk(None, usage=COUNTS)]
HALF = len(ARGUMENTS) // 2
CALLING = [
    chunk({"role": "assistant", "content": None}),
    piece(id=CALL_ID, type="function", function={"name": TOOL, "arguments": ""}),
    piece(function={"arguments": ARGUMENTS[:HALF]}),
    piece(function={"arguments": ARGUMENTS[HALF:]}),
    chunk({}, "tool_calls"),
]
ANSWERING = [
    chunk({"role": "assistant", "content": ""}),
    *(chunk({"content": text}) for text in CHUNKS),
    chunk({}, "stop"),
]


def message(kind: str, **fields: Any) -> bytes:
    """An event of the Messages API."""
    payload = f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def block(first: dict[str, Any], deltas: list[dict[str, Any]], stop: str) -> list[bytes]:
    start = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 40, "output_tokens": 1},
    }  # fmt: skip
    reason = {"stop_reason": stop, "stop_sequence": None}
    return [
        message("message_start", message=start),
        message("content_block_start", index=0, content_block=first),
        *(message("content_block_delta", index=0, delta=delta) for delta in deltas),
        message("content_block_stop", index=0),
        message("message_delta", delta=reason, usage={"output_tokens": 20}),
        message("message_stop"),
    ]


def content(part: dict[str, Any], **more: Any) -> bytes:
    """A chunk of the Gemini API."""
    candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
    counts = {"promptTokenCount": 40, "candidatesTokenCount": 20, "totalTokenCount": 60}
    return event(json.dumps({"candidates": [candidate], "usageMetadata": counts}))


CALLED = {"functionCall": {"id": CALL_ID, "name": TOOL, "args": json.loads(ARGUMENTS)}}
JSON = [{"type": "input_json_delta", "partial_json": p} for p in (ARGUMENTS[:HALF], ARGUMENTS[HALF:])]
SAID = [{"type": "text_delta", "text": text} for text in CHUNKS]
MESSAGES = (
    block({"type": "tool_use", "id": CALL_ID, "name": TOOL, "input": {}}, JSON, "tool_use"),
    block({"type": "text", "text": ""}, SAID, "end_turn"),
)
GEMINI = (
    [content({**CALLED, "thoughtSignature": "c2lnbmVk"}, finishReason="STOP")],
    [*(content({"text": text}) for text in CHUNKS), content({"text": ""}, finishReason="STOP")],
)
REFUSAL = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Noted:
    """What was asked since the parent last wanted to know."""

    calls = 0
    shown = 0


class Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self) -> None:
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].lower()
            _, named, rest = head.partition(b"\r\ncontent-length:")
            length = int(rest.partition(b"\r\n")[0]) if named else 0
            start = end + 4
            if len(self.data) < start + length:
                return
            body, self.data = self.data[start : start + length], self.data[start + length :]
            if head.startswith(b"post /v1/chat/completions ") and named:
                self.answer(json.loads(body))
            elif head.startswith(b"post /v1/messages") and named:
                self.play(MESSAGES, json.loads(body)["messages"])
            elif head.startswith(b"post /v1beta/models/") and named:
                self.play(GEMINI, json.loads(body)["contents"])
            else:
                self.transport.write(REFUSAL)

    def answer(self, request: dict[str, Any]) -> None:
        last = request["messages"][-1]
        shown = last["role"] == "tool" and RESULT in json.dumps(last["content"])
        Noted.calls += 1
        Noted.shown += shown
        usage = (request.get("stream_options") or {}).get("include_usage")
        parts = [*(ANSWERING if shown else CALLING), *(USAGE if usage else []), *END]
        self.transport.write(HEAD + parts[0])
        for part in parts[1:]:
            self.transport.write(part)

    def play(self, streams: tuple[list[bytes], list[bytes]], messages: list[Any]) -> None:
        shown = RESULT in json.dumps(messages[-1])
        Noted.calls += 1
        Noted.shown += shown
        parts = streams[shown]
        self.transport.write(HEAD + parts[0])
        for part in parts[1:]:
            self.transport.write(part)
        self.transport.write(b"0\r\n\r\n")


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    ended = loop.create_future()

    def told() -> None:
        # A line at a time and rarely: what waits is one request, or the end.
        if sys.stdin.readline():
            print(json.dumps((Noted.calls, Noted.shown)), flush=True)
            Noted.calls = Noted.shown = 0
        elif not ended.done():
            ended.set_result(None)

    loop.add_reader(sys.stdin, told)
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent, not beside it
    asyncio.run(serve())
