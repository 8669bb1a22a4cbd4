"""One run of a command: JSON in, two outputs and an exit code out; at the end nothing of it is left.

asyncio's own processes cost a thread or several tasks each; here the loop watches the process and, when
it takes its time, its pipes. The input is put together while the process starts.

A process that `waits` starts the command once it has read a line. Its sandbox is ready by then.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hookline.system.children.process import launch_of, popen, signal_group
from hookline.tools.process import GRACE, LINGER

LARGEST = 1_000_000
"""Bytes that are kept of each output; the rest is read and dropped."""

SOON = 0.02
"""Seconds after which outputs are read while the command runs; most end before, and the pipes hold more
than what they print. One that fills them waits for this long."""

_CHUNK = 1 << 16

_WAIT = ("/bin/sh", "-c", 'read -r go || exit 125; exec "$@"', "sh")
"""Reads one byte at a time, as POSIX demands: the rest of the input is the command's."""


@dataclass(frozen=True, slots=True)
class CommandExit:
    """How a command ended; no exit code where it ran out of time."""

    code: int | None
    stdout: bytes
    stderr: bytes
    cut: bool = False
    """Whether the output was longer than what is kept."""


class HookProcess:
    """A command in a process group of its own; `OSError` if it cannot be started."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        *,
        waits: bool = False,
        **inside: Any,
    ) -> None:
        loop = asyncio.get_running_loop()
        with ExitStack() as pipes:
            self._out = pipes.enter_context(Output(loop))
            self._err = pipes.enter_context(Output(loop))
            self._into = pipes.enter_context(Input(loop))
            try:
                self._process = popen(
                    (*_WAIT, *command) if waits else command,
                    cwd=folder,
                    env=environ,
                    stdin=self._into.theirs,
                    stdout=self._out.theirs,
                    stderr=self._err.theirs,
                    **inside,
                )
            finally:
                for pipe in (self._into, self._out, self._err):
                    pipe.give()
            self._launch = launch_of(self._process.pid)
            self._exited = Exit(loop, self._process.pid)
            self._waits = waits
            self._pipes = pipes.pop_all()

    def is_like_new(self, profile: str) -> bool:
        """Whether a process that starts now would be confined in the same way."""
        launch = self._launch
        if launch is None or self._exited.done:
            return False
        return launch.profile == profile and launch.is_current()

    async def finish(self, given: Callable[[], Awaitable[bytes]], timeout: float) -> CommandExit:
        """Give the command its input, and wait for its end."""
        out, err, exited = self._out, self._err, self._exited
        in_time = False
        try:
            if self._waits:
                self._into.let_go()
            self._into.write(await given())
            in_time = await exited.within(min(timeout, SOON))
            if not in_time and timeout > SOON:
                out.watch()
                err.watch()
                in_time = await exited.within(timeout - SOON)
            if in_time:
                alone = self._launch is not None and self._launch.ends_everything
                await _drain(out, err, linger=0.0 if alone else LINGER)
        finally:
            if in_time:  # the answer does not wait for what is left to clean up
                asyncio.get_running_loop().call_soon(self.end)
            else:
                await self._terminate()
        return CommandExit(
            exited.code() if in_time else None, bytes(out.data), bytes(err.data), out.cut
        )

    async def _terminate(self) -> None:
        """Ask the whole group to end, then end it."""
        try:
            if not self._exited.done and signal_group(self._process.pid, signal.SIGTERM):
                await self._exited.within(GRACE)
        finally:
            self.end()

    def end(self) -> None:
        """End the whole group at once: also what ignores a signal, or went on alone."""
        with self._pipes:
            signal_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._exited.close()


class Pipe:
    """A pipe to or from a process: one end is ours, the other one goes to the process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ours: int, theirs: int) -> None:
        self.theirs = theirs
        self._ours = ours
        self._loop = loop
        self._watched = False
        os.set_blocking(ours, False)

    def give(self) -> None:
        """The process has its end now, or there is no process."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def unwatch(self) -> None:
        """Wait for the process no more."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of both ends."""
        self.give()
        if self._ours >= 0:
            if self._watched:
                self.unwatch()
            os.close(self._ours)
            self._ours = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Input(Pipe):
    """What a process reads: written as it takes it, then ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        theirs, ours = os.pipe()
        super().__init__(loop, ours, theirs)
        self._rest = memoryview(b"")

    def let_go(self) -> None:
        """Start the command of a process that waits; what it reads follows."""
        with suppress(BrokenPipeError):
            os.write(self._ours, b"\n")

    def write(self, data: bytes) -> None:
        """Give the process all of its input; one that does not read it misses it."""
        self._rest = memoryview(data)
        self._write()
        if self._rest:
            self._watched = True
            self._loop.add_writer(self._ours, self._write)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._ours, self._rest) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest = memoryview(b"")
        if not self._rest:
            self.close()

    def unwatch(self) -> None:
        """Write no more."""
        self._watched = False
        self._loop.remove_writer(self._ours)


class Output(Pipe):
    """What a process prints, read as it comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, *os.pipe())
        self.data = bytearray()
        self.cut = False
        self.ended = False
        self._waiter: asyncio.Future[None] | None = None

    def watch(self) -> None:
        """Read whenever there is something."""
        if not (self._watched or self.ended):
            self._watched = True
            self._loop.add_reader(self._ours, self.read)

    async def end_by(self, deadline: float) -> None:
        """Read until the end, but not for longer than until a time of the loop."""
        if self.ended:
            return
        self.watch()
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def read(self) -> None:
        """Take what is there."""
        while not self.ended:
            try:
                chunk = os.read(self._ours, _CHUNK)
            except BlockingIOError:
                return
            room = LARGEST - len(self.data)
            self.cut = self.cut or len(chunk) > room
            self.data += chunk[:room]
            if not chunk:
                self.ended = True
                if self._watched:
                    self.unwatch()
                self._wake()
            elif len(chunk) < _CHUNK:
                return  # there is no more of it now; the loop tells of the rest

    def unwatch(self) -> None:
        """Read no more."""
        self._watched = False
        self._loop.remove_reader(self._ours)


class Exit:
    """The end of a process, seen before it is reaped: until then its number is nobody else's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int) -> None:
        self._loop = loop
        self._pid = pid
        self.done = False
        self._waiter: asyncio.Future[None] | None = None
        self._handle = -1
        try:
            self._handle = os.pidfd_open(pid)
            loop.add_reader(self._handle, self._seen)
        except (AttributeError, OSError, NotImplementedError):  # not Linux, or not allowed
            waiting = loop.run_in_executor(None, os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            waiting.add_done_callback(lambda _: self._seen())

    def _seen(self) -> None:
        self.done = True
        self.close()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def within(self, seconds: float) -> bool:
        """Wait for it; whether it came in time."""
        if not self.done:
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
        return self.done

    def code(self) -> int:
        """The exit code of a process that has ended and is not reaped; a signal counts as negative."""
        found = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def close(self) -> None:
        """Watch no more."""
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1


async def _drain(*outputs: Output, linger: float) -> None:
    """Take the rest; what still runs in the background may hold the pipes, and is not waited for."""
    for output in outputs:
        output.read()
        output.read()  # its end, where that was not all
    if linger:
        until = asyncio.get_running_loop().time() + linger
        for output in outputs:
            await output.end_by(until)
