"""`shell`: a command, its output as it comes, and how it ended."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from hookline.errors import SandboxError, ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.invoke import Result
from hookline.tools.output import LIMIT, is_binary, readable
from hookline.tools.process import confined, ending, running
from hookline.tools.spool import NOTE, Spool
from hookline.tools.tool import tool

_WATCHED = 1_000_000


@tool(side_effects=SideEffects.external, registry=None)
async def shell(
    command: str,
    context: ToolContext,
    timeout: Annotated[float, Field(gt=0, le=3600)] = 120,  # a parameter of the model's
    background: bool = False,
    outside_sandbox: bool = False,
) -> AsyncIterator[Any]:
    """Run a shell command in the workspace and show its output and exit code.

    The command gets no input, and its children are killed when it ends. A background command runs
    until it ends or is killed; `shell_output` shows its output. A sandbox may block the network, and
    writing outside the workspace and /tmp.

    command: The command line.
    timeout: Seconds after which the command and its children are killed; not used in the background.
    background: Return a job id at once and keep the command running.
    outside_sandbox: Run it without the sandbox, if it failed inside; a person may have to approve it.

    """
    if "\0" in command:
        raise ToolError("a command cannot contain a NUL character")
    folder = context.workspace.resolve()
    if not folder.is_dir():
        raise ToolError(f"the workspace {folder} is not a folder")
    if background:
        yield Result(_start(command, folder, context, outside_sandbox))
        return
    kept = _Kept(LIMIT - 2 * NOTE)  # with the notes below it the result is within the limit
    spool = Spool(context)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    options = confined(context, "shell", outside=outside_sandbox)
    async with running(["/bin/sh", "-c", command], cwd=folder, **options) as run:
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
        code = run.process.returncode
        why = run.explain(kept.text()) if code else ""
        yield Result(_lines(kept.text(), kept.note(spool), why, f"[{ending(code)}]"))


def _start(command: str, folder: Path, context: ToolContext, outside: bool) -> str:
    from .jobs import start_job

    options = confined(context, "jobs", outside=outside)
    try:
        # not in a thread of the pool: a sandbox ends a command with the thread that started it
        job = start_job(context.session_id, command, folder, options)
    except (OSError, SandboxError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolError(f"the command cannot be started: {reason}") from error
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
