"""`hookline hook serve`: a server on a Unix socket in the home, which answers the clients of hosts.

A request is a line with two lengths, a header and the payload:

    <bytes of header> <bytes of payload> LF, host NUL limit NUL project NUL NAME=value NUL …, payload

The answer is a line with the exit code and two lengths, standard output and standard error. A client
that does not get all of it denies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGTERM
from time import perf_counter

from hookline.hooks import HooklineError
from hookline.system.file_lock import Lock
from hookline.system.home import home as default_home
from hookline.system.hook_client import ELSEWHERE
from hookline.system.private_files import private_folder

from .desk import HookDesk, encoded
from .formats import LARGEST
from .moment import HookOutput
from .settings import HookSettings

_LARGEST_HEADER = 1_000_000
log = logging.getLogger("hookline.bridges.hosts")


class HookServer:
    """Answers clients until nothing has happened for a while."""

    def __init__(self, home: Path | None = None, idle: float = 1800.0) -> None:
        self.home = home or default_home()
        self.idle = idle
        self.path = self.home / "hook" / "socket"
        self.seconds = 0.0
        """How long the last answer took."""
        self._settings = settings_of(os.environ)
        self._busy = 0
        self._moved = asyncio.Event()

    async def run(self) -> bool:
        """Serve; return False at once if another server does already."""
        private_folder(self.path.parent)
        lock = Lock(self.path.parent / "server.lock")
        if not lock.acquire():
            return False
        desk = HookDesk(self.home)
        try:
            with suppress(FileNotFoundError):
                self.path.unlink()  # one that a dead server left: the lock is ours
            before = os.umask(0o177)
            try:
                server = await asyncio.start_unix_server(
                    lambda reader, writer: self._serve(desk, reader, writer), self.path
                )
            finally:
                os.umask(before)
            async with server:
                await self._until_idle()
                with suppress(FileNotFoundError):
                    self.path.unlink()  # from here on clients start another one
                server.close()
        finally:
            await desk.close()
            lock.release()
        return True

    async def _until_idle(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        for signal in (SIGTERM, SIGINT):
            loop.add_signal_handler(signal, over.set)
        ending = asyncio.create_task(over.wait())
        while not over.is_set():
            self._moved.clear()
            moved = asyncio.create_task(self._moved.wait())
            await asyncio.wait([moved, ending], timeout=self.idle, return_when=asyncio.FIRST_COMPLETED)
            if not moved.done() and not self._busy:
                moved.cancel()
                break
        ending.cancel()

    async def _serve(
        self, desk: HookDesk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one client."""
        self._busy += 1
        self._moved.set()
        started = perf_counter()
        try:
            client, user = peer(writer.get_extra_info("socket"))
            if user != os.geteuid():
                return
            output = await self._answer(desk, reader, client)
            out, err = encoded(output.stdout), encoded(output.stderr)
            writer.write(b"%d %d %d\n" % (output.code, len(out), len(err)) + out + err)
            await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            log.warning("hook.client: %r", error)  # the client denies
        finally:
            self.seconds = perf_counter() - started
            self._busy -= 1
            self._moved.set()
            writer.close()

    async def _answer(
        self, desk: HookDesk, reader: asyncio.StreamReader, client: int | None
    ) -> HookOutput:
        header_size, size = map(int, (await reader.readline()).split(b" "))
        if not 0 < header_size < _LARGEST_HEADER or not 0 <= size <= LARGEST:
            return HookOutput(stderr="hookline: the payload is too large\n", code=2)
        header = (await reader.readexactly(header_size)).split(b"\0")
        payload = await reader.readexactly(size)
        host, limit, project = (os.fsdecode(field) for field in header[:3])
        if header[3:] != self._settings:
            return HookOutput(code=ELSEWHERE)
        folder = Path(project) if project else None
        return await desk.answer(host, payload, float(limit), folder, client)


def settings_of(environ: Mapping[str, str]) -> list[bytes]:
    """The variables that settings may be in, as a client sends them."""
    from hookline.system.hook_client import is_setting

    found = ((os.fsencode(name), os.fsencode(value)) for name, value in environ.items())
    return sorted(name + b"=" + value for name, value in found if is_setting(name))


def peer(connection: socket.socket) -> tuple[int | None, int]:
    """The process and the user at the other end of a connection."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None, os.geteuid()  # the mode of the socket decides
    about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", about)
    return pid, user


def serve(idle: float | None = None, home: Path | None = None) -> bool:
    """Serve until idle, or until a signal; return False if another server does."""
    return asyncio.run(HookServer(home, idle or idle_of(home or default_home())).run())


def idle_of(home: Path) -> float:
    """How long a server waits; settings that cannot be read are reported with the next event."""
    from hookline.config import Config

    with suppress(HooklineError):
        return Config.load(home, project=False).settings("hook", HookSettings).idle
    return HookSettings().idle
