"""`shell`: a command, its output as it comes, and how it ended."""

from __future__ import annotations

import asyncio
import codecs
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from pydantic import Field

from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.errors import ToolError
from hookline.tools.invoke import Result
from hookline.tools.output import LIMIT, readable
from hookline.tools.tool import tool

from .process import running

_WATCHED = 1_000_000
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "GIT_PAGER": "cat"}
"""Nobody is there to answer or to turn pages."""


@tool(side_effects=SideEffects.external, registry=None)
async def shell(
    command: str,
    context: ToolContext,
    timeout: Annotated[float, Field(gt=0, le=3600)] = 120,  # a parameter of the model's
) -> AsyncIterator[Any]:
    """Run a shell command in the workspace and show what it prints, with its exit code.

    The command gets no input, and whatever it leaves running is ended with it.

    command: The command line.
    timeout: Seconds after which the command and everything it started is ended.

    """
    if "\0" in command:
        raise ToolError("a command cannot contain a NUL character")
    folder = context.workspace.resolve()
    if not folder.is_dir():
        raise ToolError(f"the workspace {folder} is not a folder")
    kept = _Kept(LIMIT)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    async with running(["/bin/sh", "-c", command], folder, _QUIET) as run:
        try:
            async with asyncio.timeout(timeout), aclosing(run.chunks()) as chunks:
                async for chunk in chunks:
                    text = decoder.decode(chunk)
                    kept.add(text, len(chunk))
                    if kept.size <= _WATCHED:
                        yield readable(text)
        except TimeoutError:
            raise ToolError(
                f"the command ran longer than {timeout:g} s and was ended; it printed:\n{kept.text()}"
            ) from None
        kept.add(decoder.decode(b"", final=True), 0)
        yield Result(f"{kept.text()}\n{_ending(run.process.returncode)}".lstrip("\n"))


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
        if shown.startswith("[binary"):
            return f"[binary output, {self.size:,} bytes, not shown]"
        left_out = self._characters - len(self._head) - len(self._tail)
        if left_out:
            head, tail = readable(self._head), readable(self._tail)
            return f"{head}\n… {left_out:,} characters left out …\n{tail}".rstrip("\n")
        return shown.rstrip("\n")


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"[ended by {signal.Signals(-code).name}]"
        except ValueError:
            return f"[ended by signal {-code}]"
    return f"[exit code {code}]"
