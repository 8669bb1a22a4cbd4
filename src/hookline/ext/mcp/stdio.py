"""An MCP server that is a local program, started in its own process group.

The `mcp` package has a transport for this too. This one limits the length of a line, keeps the
program's last output for error messages, and leaves no process of the group behind.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.errors import SandboxError
from hookline.system.children.environment import environment
from hookline.system.children.process import NEUTRAL, PIPE, ended, signal_group, start
from hookline.tools.process import ending

from .errors import ServerFailed

if TYPE_CHECKING:
    from hookline.system.children.process import Process

    from .settings import ServerSettings

LARGEST = 16 << 20
"""Bytes of one message; a server that sends more is not listened to any longer."""

GRACE = 2.0
"""Seconds for a program to end after its input was closed, and again after it was asked to."""

_SAID = 2_000
_POLL = 0.01

log = logging.getLogger("hookline")


class Program:
    """A server's process and its state."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self._said = b""
        self._garbage = ""
        self._fault = ""

    @property
    def pid(self) -> int:
        """Its process id, and the id of its group."""
        return self.process.pid

    def condition(self) -> str:
        """How the process ended, with its last output, for an error message."""
        code = self.process.returncode
        told = [self._fault] if self._fault else [f"it {_ended(code)}"] if code is not None else []
        if self._garbage:
            told.append(f"its output is not MCP: {self._garbage!r}")
        if said := self._said.decode(errors="replace").strip():
            told.append(f"it wrote: {' | '.join(said.splitlines()[-5:])}")
        return "; ".join(told)

    async def read(self, deliver: Any) -> None:
        """Hand on each message; ends with the program's output."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        output = self.process.stdout
        assert output is not None
        async with deliver:
            while True:
                try:
                    line = await output.readline()
                except ValueError:
                    self._fault = f"it sent a message of more than {LARGEST:,} bytes"
                    return
                if not line:
                    return
                if not line.strip():
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._note_garbage(line)
                    continue
                try:
                    await deliver.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return

    def _note_garbage(self, line: bytes) -> None:
        if not self._garbage:
            self._garbage = line[:80].decode(errors="replace").strip()
        log.debug("mcp.garbage server=%s: %r", self.name, line[:200])

    async def write(self, messages: Any) -> None:
        """Send messages until there are no more, or the program stops reading."""
        into = self.process.stdin
        assert into is not None
        try:
            async with messages:
                async for message in messages:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    into.write(text.encode() + b"\n")
                    await into.drain()
        except OSError:
            pass  # it is gone, which the end of its output tells

    async def listen(self) -> None:
        """Keep the end of the program's standard error."""
        errors = self.process.stderr
        assert errors is not None
        while chunk := await errors.read(1 << 16):
            self._said = (self._said + chunk)[-_SAID:]

    async def end(self) -> None:
        """Close its input, ask its group to end, end it."""
        process = self.process
        try:
            if process.stdin is not None:
                process.stdin.close()
            if not await self._has_ended(GRACE) and signal_group(self.pid, signal.SIGTERM):
                await self._has_ended(GRACE)
        finally:
            signal_group(self.pid, signal.SIGKILL)
            try:
                await self._has_ended(GRACE)  # also when cancelled again: its exit must be collected
            finally:
                ended(self.pid)

    async def _has_ended(self, seconds: float) -> bool:
        """Whether it ended in that time. `wait` would also wait for other holders of its pipes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.process.returncode is None and loop.time() < until:
            await asyncio.sleep(_POLL)
        return self.process.returncode is not None


@asynccontextmanager
async def started(
    name: str,
    settings: ServerSettings,
    workspace: Path,
    gone: Callable[[], object],
    sandbox: Any = None,
    *,
    project: bool = False,
) -> AsyncGenerator[Any]:
    """Start a server's program; gives it, with the streams from it and to it.

    `gone` is called when nothing more comes from it.
    """
    import anyio

    process = await _spawn(name, settings, workspace, sandbox, project)
    program = Program(name, process)
    to_us, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, from_us = anyio.create_memory_object_stream[Any](0)
    listening = asyncio.create_task(program.listen())
    reading = asyncio.create_task(program.read(to_us))
    reading.add_done_callback(lambda _: gone())
    tasks = [reading, asyncio.create_task(program.write(from_us)), listening]
    try:
        yield program, incoming, outgoing
    finally:
        try:
            await outgoing.aclose()
            await program.end()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (incoming, to_us, from_us):
                stream.close()
            _close(process)


async def _spawn(
    name: str, settings: ServerSettings, workspace: Path, sandbox: Any, project: bool
) -> Process:
    """Start the program. A user's own program runs in the workspace only if the settings say so.

    `python -m`, `npx` and others run code that they find in the current folder, which may be a
    stranger's. A server from the project is trusted together with its folder.
    """
    assert settings.command is not None
    default = str(workspace) if project else NEUTRAL
    folder = (workspace / Path(settings.cwd or default).expanduser()).resolve()
    if not folder.is_dir():
        raise ServerFailed(name, f"cannot start: its cwd {folder} is not a folder")
    program = str(Path(settings.command).expanduser()) if "~" in settings.command else settings.command
    try:
        return await start(
            [program, *settings.args],
            cwd=folder,
            env=environment(settings.env),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=LARGEST,
            sandbox=sandbox,
            kind="mcp",
            profile=settings.sandbox,
            network=settings.network,
            project=project,
        )
    except FileNotFoundError:
        fix = "is it installed?"
        if folder == Path(NEUTRAL) and "/" in program and not program.startswith("/"):
            fix = 'to start it in the workspace, set cwd = "."'
        raise ServerFailed(
            name, f"cannot start: there is no program {settings.command!r}; {fix}"
        ) from None
    except (OSError, ValueError, SandboxError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServerFailed(name, f"cannot start {settings.command!r}: {reason}") from None


def _close(process: Process) -> None:
    """Close the pipes that something outside the group may still hold."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def _ended(code: int) -> str:
    told = ending(code)
    return told if told.startswith("ended") else f"ended with {told}"
