"""`shell`: a command, its output as it comes, and how it ended."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.errors import ToolError
from hookline.tools.invoke import Result
from hookline.tools.output import LIMIT, is_binary, readable
from hookline.tools.spool import NOTE, Spool
from hookline.tools.threads import in_thread
from hookline.tools.tool import tool

from .ending import ending
from .process import running

_WATCHED = 1_000_000
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "GIT_PAGER": "cat"}
"""Nobody is there to answer or to turn pages."""


@tool(side_effects=SideEffects.external, registry=None)
async def shell(
    command: str,
    context: ToolContext,
    timeout: Annotated[float, Field(gt=0, le=3600)] = 120,  # a parameter of the model's
    background: bool = False,
) -> AsyncIterator[Any]:
    """Run a shell command in the workspace and show what it prints, with its exit code.

    The command gets no input, and whatever it leaves running is ended with it. In the background it
    goes on until it ends or is killed; `shell_output` shows what it prints.

    command: The command line.
    timeout: Seconds after which the command and everything it started is ended; not in the background.
    background: Give a job id at once and let the command go on.

    """
    if "\0" in command:
        raise ToolError("a command cannot contain a NUL character")
    folder = context.workspace.resolve()
    if not folder.is_dir():
        raise ToolError(f"the workspace {folder} is not a folder")
    if background:
        yield Result(await _start(command, folder, context))
        return
    kept = _Kept(LIMIT - 2 * NOTE)  # with the notes below it the result is within the limit
    spool = Spool(context)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    async with running(["/bin/sh", "-c", command], folder, _QUIET) as run:
        try:
            async with asyncio.timeout(timeout), aclosing(run.chunks()) as chunks:
                async for chunk in chunks:
                    text = decoder.decode(chunk)
                    kept.add(text, len(chunk))
                    spool.add(chunk)
                    if kept.size <= _WATCHED:
                        yield readable(text)
        except TimeoutError:
            raise ToolError(
                f"the command ran longer than {timeout:g} s and was ended; it printed:\n"
                + _lines(kept.text(), kept.note(spool))
            ) from None
        finally:
            spool.close()
        kept.add(decoder.decode(b"", final=True), 0)
        yield Result(_lines(kept.text(), kept.note(spool), f"[{ending(run.process.returncode)}]"))


async def _start(command: str, folder: Path, context: ToolContext) -> str:
    from .jobs import start_job

    try:
        job = await in_thread(lambda: start_job(context.session_id, command, folder, _QUIET))
    except OSError as error:
        raise ToolError(f"the command cannot be started: {error.strerror}") from error
    return f'[{job.id} is running; shell_output(job="{job.id}") shows what it prints]'


def _lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


class _Kept:
    """The beginning and the end of an output, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._half = limit // 2
        self._head = ""
        self._tail = ""
        self._characters = 0

    def add(self, text: str, size: int) -> None:
        self.size += size
        self._characters += len(text)
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail = (self._tail + text)[-self._half :]

    def text(self) -> str:
        shown = readable(self._head + self._tail)
        if is_binary(self._head + self._tail):
            return f"[binary output, {self.size:,} bytes, not shown]"
        left_out = self._characters - len(self._head) - len(self._tail)
        if left_out:
            head, tail = readable(self._head), readable(self._tail)
            return f"{head}\n… {left_out:,} characters left out …\n{tail}".rstrip("\n")
        return shown.rstrip("\n")

    def note(self, spool: Spool) -> str:
        """Where the whole is, unless it is nothing to read."""
        if is_binary(self._head + self._tail):
            spool.discard()
        return spool.close()
