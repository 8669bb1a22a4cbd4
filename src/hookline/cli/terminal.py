"""The terminal: the one way in which the command line writes.

`guarded` puts a guard before standard output and standard error: everything that is written, by our
commands, by those of plugins, by loggers and in tracebacks, passes through `printable`. So a command
that prints a stranger's text is safe without doing anything for it. Styles come from `style` and from
`GuardedConsole`; escape sequences from anywhere else are spelled out.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from hookline.text.printable import printable

if TYPE_CHECKING:
    from hookline.text.document import ReportDocument

STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36",
}  # fmt: skip


class GuardedStream:
    """A text stream that writes nothing a terminal would act on, except our own styles."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream
        """For what moves the cursor itself: a progress line, the chat's screen."""
        mark = f"\ue000{os.urandom(8).hex()}"  # text from elsewhere cannot contain it
        self._mark = mark
        self.styled = stream.isatty() and not os.environ.get("NO_COLOR")
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
        self._ascii = encoding in ("ascii", "us-ascii", "ansi-x3.4-1968", "646")
        # What only writes to an encoding other than ASCII would write past the guard, to `buffer`.
        self.encoding = "utf-8" if self._ascii else encoding
        self._show: Callable[[str], None] | None = None
        self._unfinished = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)

    def style(self, text: str, codes: str) -> str:
        """The text between marks that become a style when it is written; plain if there are none."""
        return f"{self._mark}{codes}m{text}{self._mark}m" if self.styled else text

    def write(self, text: str) -> int:
        """Write text, with everything spelled out that is not ours."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._show is not None:
            *lines, self._unfinished = (self._unfinished + text).split("\n")
            for line in lines:
                self._show(self._plain(line))
            return len(text)
        if self._mark in text:
            pieces = re.split(f"{self._mark}([0-9;]*)m", text)
            pieces[::2] = map(printable, pieces[::2])
            pieces[1::2] = [f"\x1b[{codes}m" for codes in pieces[1::2]]
            safe = "".join(pieces)
        else:
            safe = printable(text)
        if self._ascii and not safe.isascii():
            safe = safe.encode("ascii", "backslashreplace").decode()
        try:
            self.unguarded.write(safe)
        except UnicodeEncodeError:
            known = safe.encode(self.encoding, "backslashreplace").decode(self.encoding)
            self.unguarded.write(known)
        return len(text)

    def _plain(self, line: str) -> str:
        return re.sub(f"{self._mark}[0-9;]*m", "", line) if self._mark in line else line

    def divert(self, show: Callable[[str], None] | None) -> None:
        """Hand every line to `show` from now on; with None, write again."""
        unfinished, former = self._unfinished, self._show
        self._show, self._unfinished = show, ""
        if former is not None and unfinished:
            former(self._plain(unfinished))

    def direct(self) -> GuardedStream:
        """Return a stream with the same styles that is not diverted."""
        same = GuardedStream(self.unguarded)
        same._mark = self._mark
        return same

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)


@contextmanager
def guarded() -> Generator[None]:
    """Put a guard before standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_guard(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def diverted(show: Callable[[str, bool], None]) -> Generator[None]:
    """Hand every line that is printed or logged to `show`, with whether it is for standard error.

    `show` writes to `direct` streams what a `print` in a hook would put into the middle of something
    else. It is called in the thread of the running event loop.
    """
    import asyncio
    import threading

    loop, thread = asyncio.get_running_loop(), threading.get_ident()

    def pass_on(is_error: bool, line: str) -> None:
        if threading.get_ident() == thread:
            show(line, is_error)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(show, line, is_error)

    streams = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, GuardedStream)]
    for stream in streams:
        stream.divert(partial(pass_on, stream is sys.stderr))
    try:
        yield
    finally:
        for stream in streams:
            stream.divert(None)


def direct(stream: Any) -> Any:
    """Return a stream with the same destination, which stays in use while this one is diverted."""
    return stream.direct() if isinstance(stream, GuardedStream) else stream


def _guard(stream: TextIO | None) -> Any:
    return stream if stream is None or isinstance(stream, GuardedStream) else GuardedStream(stream)


def unguarded(stream: Any) -> Any:
    """The stream behind the guard, for text that was asked for as it is, and to move the cursor."""
    return stream.unguarded if isinstance(stream, GuardedStream) else stream


def style(text: str, *names: str, err: bool = False) -> str:
    """Text in colour, bold or dim; plain if it goes to a pipe or a file."""
    stream: Any = sys.stderr if err else sys.stdout
    if not isinstance(stream, GuardedStream):
        return text
    return stream.style(text, ";".join(STYLES[name] for name in names))


def show_document(document: ReportDocument) -> None:
    """Print a report, as wide as the terminal and at most 100 columns."""
    from shutil import get_terminal_size

    for note in document.notes:
        print(f"note: {note}", file=sys.stderr)
    print(document.text(min(get_terminal_size().columns, 100)))
