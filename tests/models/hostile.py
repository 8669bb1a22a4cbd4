"""A server on loopback that answers as a test says: raw bytes, no HTTP library of any kind."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from hookline.models import Models
from hookline.models.openai.client import OpenAIModel

Answer = Callable[["Exchange"], Awaitable[None]]

HEAD = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
STREAM = "Content-Type: text/event-stream\r\n"


class Exchange:
    """One request, and the means to answer it."""

    def __init__(
        self, number: int, connection: int, headers: dict[str, str], body: Any, writer
    ) -> None:
        self.number = number
        self.connection = connection
        self.headers = headers
        self.body = body
        self.writer = writer
        self.keep = False

    async def send(self, data: bytes | str) -> None:
        self.writer.write(data.encode() if isinstance(data, str) else data)
        await self.writer.drain()

    async def head(self, status: str = "200 OK", headers: str = STREAM, version: str = "1.1") -> None:
        await self.send(f"HTTP/{version} {status}\r\n{headers}Connection: close\r\n\r\n")

    async def reply(self, status: str, body: str | bytes, headers: str = "") -> None:
        data = body.encode() if isinstance(body, str) else body
        await self.send(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(data)}\r\n\r\n")
        await self.send(data)

    async def chunk(self, data: bytes | str) -> None:
        data = data.encode() if isinstance(data, str) else data
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def chunked(self, *pieces: bytes | str, headers: str = STREAM) -> None:
        await self.send(f"HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            await self.chunk(piece)
        await self.send(b"0\r\n\r\n")
        self.keep = True


class Hostile:
    """Gives each request to the test's function, and keeps what was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.gone = asyncio.Event()
        self.url = ""
        self.tasks: set[asyncio.Task[Any]] = set()

    async def stop(self) -> None:
        """End what is still being answered, or waiting for another request."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                pairs = (line.split(": ", 1) for line in lines[1:] if line)
                headers = {name.lower(): value for name, value in pairs}
                headers[""] = lines[0]
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                exchange = Exchange(len(self.exchanges), connection, headers, body, writer)
                self.exchanges.append(exchange)
                await self.answer(exchange)
                if not exchange.keep:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            self.gone.set()
            writer.close()


@asynccontextmanager
async def hostile(answer: Answer) -> AsyncIterator[Hostile]:
    """A running server."""
    kept = Hostile(answer)
    server = await asyncio.start_server(kept.serve, "127.0.0.1", 0)
    kept.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield kept
    finally:
        server.close()
        await kept.stop()


@asynccontextmanager
async def asking(answer: Answer, **settings: Any) -> AsyncIterator[tuple[OpenAIModel, Hostile]]:
    """A model of a hostile server."""
    async with hostile(answer) as server:
        settings = {"base_url": server.url, **settings}
        models = Models(settings={"openai-compatible": settings})
        model = models.get("openai-compatible:m")
        assert isinstance(model, OpenAIModel)
        try:
            yield model, server
        finally:
            await models.close()


def event(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> str:
    """One chunk of an answer as a server sends it."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return f"data: {json.dumps({**HEAD, 'choices': [choice], **more})}\n\n"


def says(text: str) -> str:
    return event({"content": text})


COUNTS = {"prompt_tokens": 7, "completion_tokens": 3}
USAGE = f"data: {json.dumps({**HEAD, 'choices': [], 'usage': {**COUNTS, 'total_tokens': 10}})}\n\n"
DONE = "data: [DONE]\n\n"
ENDING = event(reason="stop") + USAGE + DONE
