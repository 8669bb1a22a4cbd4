"""A command of a tool: its output as it comes, and nothing of its group left at the end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.errors import SandboxError, ToolError
from hookline.system.children.environment import environment
from hookline.system.children.process import (
    DEVNULL,
    NEUTRAL,
    Stream,
    ended,
    launch_of,
    signal_group,
    start,
)

if TYPE_CHECKING:
    from hookline.system.children.process import Process
    from hookline.tools.context import ToolContext

GRACE = 1.0
"""Seconds between asking a group to end and ending it."""

LINGER = 0.2
"""Seconds in which output may still come after a command ended, from its background processes."""

_CHUNK = 1 << 16
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "GIT_PAGER": "cat"}
"""No person is there to answer a prompt or to turn pages."""


class Running:
    """A process, its output as it comes, and how it ended."""

    def __init__(self, process: Process, output: asyncio.StreamReader, sandbox: Any = None) -> None:
        self.process = process
        self._output = output
        self._sandbox = sandbox
        self._launch = launch_of(process.pid)

    def explain(self, printed: str) -> str:
        """One line if the command seems to have failed because of the sandbox; else empty."""
        return "" if self._launch is None else self._sandbox.explain(printed, self._launch)

    async def chunks(self) -> AsyncGenerator[bytes]:
        """What the process prints, until it has ended and nothing more comes."""
        ended = asyncio.ensure_future(self.process.wait())
        reading = asyncio.ensure_future(self._output.read(_CHUNK))
        try:
            while True:
                limit = LINGER if ended.done() else None
                waiting = {reading} if ended.done() else {reading, ended}
                done, _ = await asyncio.wait(
                    waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED
                )
                if reading in done:
                    if not (chunk := reading.result()):
                        break
                    yield chunk
                    reading = asyncio.ensure_future(self._output.read(_CHUNK))
                elif not done:  # something in the background holds the pipe
                    break
            await ended
        finally:
            for task in (reading, ended):
                task.cancel()
            await asyncio.gather(reading, ended, return_exceptions=True)


@asynccontextmanager
async def running(
    command: Sequence[str],
    *,
    cwd: str | Path = NEUTRAL,
    env: Mapping[str, str] | None = None,
    stdin: Stream = DEVNULL,
    **options: Any,
) -> AsyncGenerator[Running]:
    """Start a command, with its input closed unless a file is given; at the end nothing of its
    group is left.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    ours, theirs = os.pipe()
    try:
        # a pipe of our own: one that asyncio makes keeps a process from ending while it is open
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", buffering=0)
        )
    except BaseException:
        os.close(theirs)
        raise
    try:
        try:
            process = await start(
                command, cwd=cwd, env=env, stdin=stdin, stdout=theirs, stderr=theirs, **options
            )
        except SandboxError as error:
            raise ToolError(f"the command cannot be started: {error}") from error
        finally:
            os.close(theirs)
        try:
            yield Running(process, reader, options.get("sandbox"))
        finally:
            await _end(process)
    finally:
        transport.close()


async def _end(process: Process) -> None:
    """Terminate the whole group, then kill it, including processes that ignore the signal or left."""
    try:
        if process.returncode is None and signal_group(process.pid, signal.SIGTERM):
            async with asyncio.timeout(GRACE):
                await process.wait()
    except TimeoutError:
        pass
    finally:
        signal_group(process.pid, signal.SIGKILL)
        try:
            await process.wait()  # also when cancelled again: its exit must be collected
        finally:
            ended(process.pid)


def sandbox_of(context: ToolContext) -> Any:
    """The sandbox that a tool's commands run in: the app's, if the tool is called by one."""
    return getattr(context.app, "sandbox", None)


def inside(sandbox: Any, kind: str, folder: Path) -> dict[str, Any]:
    """How a child that only reads a folder is started: in the sandbox, if there is one."""
    if sandbox is None:
        return {}
    outside = () if folder.is_relative_to(sandbox.places.workspace) else (folder,)
    return {"sandbox": sandbox, "kind": kind, "profile": "read-only", "read": outside}


def confined(context: ToolContext, kind: str, *, outside: bool = False) -> dict[str, Any]:
    """How a command of the model is started: its environment and its sandbox."""
    sandbox = sandbox_of(context)
    if sandbox is None:
        return {"env": environment(_QUIET)}
    return {
        "env": environment(_QUIET, keep=sandbox.settings.environment),
        "sandbox": sandbox,
        "kind": kind,
        "profile": "off" if outside else None,
        "session": context.session_id,
        "call_id": context.call_id,
        "identity": context.identity,
    }


def ending(code: int | None) -> str:
    """An exit code, or the signal that it stands for."""
    if code is not None and code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"exit code {code}"
