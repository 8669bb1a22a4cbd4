"""A TCP proxy in front of a server, which can be told to fail as networks do."""

import asyncio
from pathlib import Path


class Proxy:
    """Passes bytes on to a Unix socket, until it is told otherwise."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay = 0.0
        """Seconds that every piece is late."""
        self.forward = asyncio.Event()
        """While it is not set, what clients send stays here: a black hole."""
        self.backward = asyncio.Event()
        """While it is not set, what the server answers stays here."""
        self.refusing = False
        self.forward.set()
        self.backward.set()

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Drop every connection at once."""
        for pair in self._pairs:
            for writer in pair:
                writer.transport.abort()
        self._pairs.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        there, back = await asyncio.open_unix_connection(self._target)
        if self.refusing:  # since: this connection was on its way while the others were cut
            writer.transport.abort()
            back.transport.abort()
            return
        self._pairs.add((writer, back))
        for task in (
            asyncio.create_task(self._pass(reader, back, self.forward)),
            asyncio.create_task(self._pass(there, writer, self.backward)),
        ):
            self._tasks.add(task)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event
    ) -> None:
        try:
            while data := await reader.read(65536):
                await asyncio.sleep(self.delay)
                await gate.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


def through(proxy: Proxy) -> str:
    """The address of the database behind a proxy, with a password that nobody must be shown."""
    return f"postgresql://postgres:hunter2@127.0.0.1:{proxy.port}/postgres"
