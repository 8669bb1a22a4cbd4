"""The conversation as plain lines: for pipes and for terminals that can do nothing."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TextIO

from hookline.channel import Question, exact
from hookline.errors import BadInput
from hookline.text.printable import printable, visible
from hookline.types import StreamEvent

from ..terminal import direct
from .view import one_line, text_of


class Plain:
    """Writes text to standard output and everything else to standard error, without escape codes."""

    def __init__(self) -> None:
        self._out, self._err = direct(sys.stdout), direct(sys.stderr)
        self._open_line = False
        self._last: str | None = None

    def begin(self) -> None:
        """Nothing to prepare."""

    def event(self, event: StreamEvent) -> None:
        """Show one piece of an answer."""
        if event.kind == "text":
            text = printable(event.data["delta"])
            print(text, end="", file=self._out, flush=True)
            self._open_line = not text.endswith("\n") if text else self._open_line
        elif event.kind == "tool_call":
            self._beside(f"→ {exact(event.data['name'], event.data['arguments'])}")
        elif event.kind == "tool_result":
            data = event.data
            self.result(data["name"], text_of(data["content"]), is_error=data["is_error"])

    def progress(self, text: str) -> None:
        """Nothing: the result comes."""

    def result(self, name: str, text: str, *, is_error: bool) -> None:
        """Show a result that is an error; others are kept."""
        self._last = text
        if is_error:
            self._beside(f"✗ {name}: {one_line(text, 500)}")

    def called(self, name: str, text: str, *, is_error: bool) -> None:
        """Show the whole result of the user's own call."""
        self.result(name, text, is_error=is_error)
        if not is_error:
            self.say(text)

    def end(self) -> None:
        """Finish the line."""
        if self._open_line:
            print(file=self._out, flush=True)
        self._open_line = False

    def say(self, text: str) -> None:
        """Show a text."""
        self.end()
        print(printable(text).rstrip("\n"), file=self._out, flush=True)

    def printed(self, line: str, is_error: bool = False) -> None:
        """Show a line that something else printed."""
        self.end()
        print(line, file=self._err if is_error else self._out, flush=True)

    def note(self, text: str) -> None:
        """Mention something."""
        self._beside(printable(text))

    def error(self, text: str) -> None:
        """Tell what went wrong."""
        self._beside(f"hookline: {printable(text)}")

    def last_result(self) -> str | None:
        """The last result of a tool, whole."""
        return self._last

    def clear(self) -> None:
        """Do nothing: printed text stays."""

    def _beside(self, text: str) -> None:
        self.end()
        print(text, file=self._err, flush=True)


def forget_typed(fd: int) -> None:
    """Discard typed text that was not read yet."""
    if sys.platform != "win32":
        import termios

        try:
            termios.tcflush(fd, termios.TCIFLUSH)
        except termios.error:
            pass  # not a terminal: there is nothing to forget


class LineReader:
    """Reads messages from standard input, one per line, with a prompt on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.person = self.is_terminal()
        self._out = out or direct(sys.stdout)
        """Where questions are shown."""
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._reading = False

    async def read(self) -> str:
        """The next line."""
        line = await self._line("> ")
        if line is None:
            raise EOFError
        try:
            return line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BadInput(
                f"this line is not UTF-8 text (byte {error.start}): it was left out"
            ) from None

    @staticmethod
    def is_terminal() -> bool:
        """Whether a person types on standard input."""
        return sys.stdin is not None and sys.stdin.isatty()

    async def answer(self, question: Question) -> str:
        """Ask until the answer is one that the question takes."""
        while (answer := question.read(await self.ask(question))) is None:
            pass
        return answer

    async def ask(self, question: Question) -> str:
        """Show a question and read a line. Anything typed before the question does not count as an
        answer.
        """
        shown = [visible(question.text)]
        if question.is_approval:
            shown += [f"  {question.call}", *([visible(question.diff)] if question.diff else [])]
        print("\n".join(shown), file=self._out, flush=True)
        while not self._queue.empty():
            self._queue.get_nowait()
        forget_typed(0)
        typed = await self._line(f"{question.prompt} ")
        if typed is None:
            raise EOFError
        return typed.decode("utf-8", "replace")

    async def _line(self, prompt: str) -> bytes | None:
        if self.person:
            print(prompt, end="", file=self._out, flush=True)
        if not self._reading:
            self._reading = True
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._feed, args=[loop], daemon=True).start()
        return await self._queue.get()

    def _feed(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read in a thread of its own, below Python's buffers: one that waits must not hold them."""

        def put(line: bytes | None) -> None:
            try:
                loop.call_soon_threadsafe(self._queue.put_nowait, line)
            except RuntimeError:
                pass  # the chat is over

        rest: list[bytes] = []
        try:
            while data := os.read(0, 65536):
                *ended, last = data.split(b"\n")
                for line in ended:
                    put(b"".join([*rest, line]))
                    rest = []
                rest.append(last)
        except OSError:
            pass  # the terminal is gone
        if line := b"".join(rest):
            put(line)
        put(None)
