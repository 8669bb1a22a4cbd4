"""Processes: started in a group of their own, and ended as a group."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

GRACE = 1.0
"""Seconds between asking a group to end and ending it."""

LINGER = 0.2
"""Seconds that output may still come after a command ended, from what it left in the background."""

_CHUNK = 1 << 16


class Running:
    """A process, its output as it comes, and how it ended."""

    def __init__(self, process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
        self.process = process
        self._output = output

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
    command: list[str],
    folder: Path,
    extra: dict[str, str],
    stdin: IO[bytes] | int = asyncio.subprocess.DEVNULL,
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
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env={**os.environ, **extra},
                stdin=stdin,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        try:
            yield Running(process, reader)
        finally:
            await _end(process)
    finally:
        transport.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask the whole group to end, then end it: also what ignores the question or went on alone."""
    try:
        if process.returncode is None and signal_group(process.pid, signal.SIGTERM):
            async with asyncio.timeout(GRACE):
                await process.wait()
    except TimeoutError:
        pass
    finally:
        signal_group(process.pid, signal.SIGKILL)
        await process.wait()  # also when cancelled again: it is dead, and somebody must see it


def signal_group(group: int, number: signal.Signals) -> bool:
    """Send a signal to a process group; False if there is none."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
