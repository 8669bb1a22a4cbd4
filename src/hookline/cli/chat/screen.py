"""The conversation on a terminal: Markdown as it streams, tools folded, thinking dimmed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from rich.console import Console, RenderableType
from rich.text import Text

from hookline.channel import Question, exact
from hookline.text.printable import printable, visible
from hookline.types import StreamEvent

from .blocks import Blocks
from .page import Allowance, page
from .region import Region
from .view import one_line, text_of

FRAME = 1 / 15
"""Seconds between redraws of a growing block."""
BATCH = 8000
"""Characters of complete blocks that wait for the next drawing at most."""
FOLDED, FOLDED_DIFF = 4, 24
"""Lines of a result that are shown."""
COMMANDS = ("shell", "shell_output")
"""Tools whose results end with a summary."""
WORKING = "working, Ctrl-C stops it"


class Screen:
    """Shows a conversation. A piece of text costs an append; drawing happens once in a frame.

    What is final is written once and forgotten; only the block that is still open is drawn again. Text
    that comes faster than anybody reads is written as it is. `rendered` counts the characters that
    were drawn, for those who watch the cost.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.rendered = 0
        self._region = Region(console)
        self._blocks = Blocks()
        self._ready: list[tuple[str, bool]] = []
        """Blocks that are complete and not written, each with whether the next one goes on with it."""
        self._waiting = 0
        self._allowance = Allowance(clock)
        self._kind = ""
        self._status = ""
        self._clock = clock
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._fragment = False
        self._last: str | None = None
        self._paused = False
        self._held: list[StreamEvent] = []
        self._pending = 0
        """Calls whose results have not been shown."""
        self._several = False

    # --- a turn -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Show that work is in progress."""
        self._status = WORKING
        self._pending, self._several = 0, False
        self.console.line()
        self._fragment = True
        self._draw()

    def event(self, event: StreamEvent) -> None:
        """Show one piece of an answer. While something else uses the terminal, it waits."""
        if self._paused:
            self._held.append(event)
        elif event.kind == "text" or event.kind == "reasoning":
            self._stream(event.kind, event.data["delta"])
        elif event.kind == "tool_call":
            self._flush()
            self._call(event.data["name"], event.data["arguments"])
        elif event.kind == "tool_result":
            self._flush()
            data = event.data
            self.result(data["name"], text_of(data["content"]), is_error=data["is_error"])

    def progress(self, text: str) -> None:
        """Show the last line of a running tool's progress."""
        lines = text[-2000:].rstrip().splitlines()
        if lines:
            self._status = one_line(lines[-1], max(self.console.width - 6, 10))
            self._soon()

    def result(self, name: str, text: str, *, is_error: bool) -> None:
        """Show the first lines of a result, of a command's the last; the rest is kept."""
        self._last = text
        self._status = WORKING
        self._pending -= 1
        lines = printable(text).rstrip().splitlines() or ["(nothing)"]
        folded = FOLDED_DIFF if is_diff(lines) else FOLDED
        shown = Text(style="red" if is_error else "")
        shown.append("  ✗ " if is_error else "  └ ", "red" if is_error else "dim")
        if self._several:
            shown.append(f"{name}: ", "dim")
        more = len(lines) - folded
        rest = f"… {more} more line{'s' if more > 1 else ''}, /show unfolds" if more > 0 else ""
        ends = name in COMMANDS
        if rest and ends:
            shown.append(f"{rest}\n    ", "dim")
        for line in lines[-folded:] if ends else lines[:folded]:
            shown.append(
                one_row(line, self.console.width - 6 - (len(name) + 2) * self._several) + "\n    "
            )
        if rest and not ends:
            shown.append(rest, "dim")
        shown.rstrip()
        if folded == FOLDED_DIFF:
            colour_diff(shown)
        self._add(shown)
        self._fragment = self._pending > 0  # the next result follows

    def called(self, name: str, text: str, *, is_error: bool) -> None:
        """Show the result of the user's own call."""
        self.result(name, text, is_error=is_error)

    def end(self) -> None:
        """Everything that came is shown, and nothing is drawn any more."""
        self._flush()
        self._status = ""
        self._cancel_timer()
        self._region.draw()

    # --- beside the stream --------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Show a text."""
        self._flush()
        shown = Text(printable(text).rstrip())
        if is_diff(shown.plain.splitlines()):
            colour_diff(shown)
        self._add(shown)

    def note(self, text: str) -> None:
        """Mention something."""
        self._flush()
        self._add(Text(printable(text), "dim"))

    def error(self, text: str) -> None:
        """Tell what went wrong."""
        self._flush()
        self._add(Text(f"✗ {printable(text)}", "red"))

    def last_result(self) -> str | None:
        """The last result of a tool, whole."""
        return self._last

    def printed(self, line: str, is_error: bool = False) -> None:
        """Show a line that other code printed, above the growing block."""
        self._settle()
        gap, self._fragment = not self._fragment, True
        self._region.add(Text(printable(line)), *self._changing(), gap=gap)

    @contextmanager
    def writing_to(self, file: Any) -> Generator[None]:
        """Write to another file for a while."""
        self.console.file = file
        try:
            yield
        finally:
            self.console.file = cast("Any", None)  # standard output again

    def prompting(self) -> None:
        """Leave an empty line before the prompt."""
        self.console.line()
        self._fragment = False

    def clear(self) -> None:
        """Wipe the terminal."""
        self.console.clear()

    def question(self, question: Question) -> None:
        """Show a question; for an approval, the whole call and the change it would make."""
        shown = Text("? ")
        shown.stylize("yellow")
        shown.append(visible(question.text), "bold")
        if question.is_approval:
            shown.append(f"\n  {question.call}")
        if question.diff:
            changes = Text("".join(f"\n    {line}" for line in visible(question.diff).split("\n")))
            colour_diff(changes)
            shown.append_text(changes)
        self._add(shown)
        self._fragment = True  # the result belongs to it

    def pause(self) -> None:
        """Leave the terminal to other code for a while."""
        self._flush()
        self._paused = True
        self._region.draw()

    def resume(self) -> None:
        """Take it back."""
        self._paused = False
        held, self._held = self._held, []
        for event in held:
            self.event(event)
        self._draw()

    # --- streaming ----------------------------------------------------------------------------

    def _stream(self, kind: str, delta: str) -> None:
        if kind != self._kind:
            self._flush()
            self._kind = kind
        for block in self._blocks.take(delta):
            self._ready.append((block, self._blocks.cut))
            self._waiting += len(block)
        if self._waiting > BATCH:
            self._settle()
        self._soon()

    def _flush(self) -> None:
        for block in self._blocks.close():
            self._ready.append((block, self._blocks.cut))
        self._settle()
        self._kind = ""

    def _settle(self) -> None:
        """Write the blocks that are complete."""
        ready, self._ready, self._waiting = self._ready, [], 0
        for text, cut in joined(ready):
            gap = not self._fragment
            if self._allowance.takes(len(text)):
                self._region.add(self._shown(text), gap=gap)
            else:
                self._region.add_text(printable(text), gap=gap)
            self._fragment = cut

    def _shown(self, text: str) -> RenderableType:
        self.rendered += len(text)
        if self._kind == "reasoning":
            return Text(printable(text).strip(), "dim italic")
        return page(printable(text))

    def _add(self, final: RenderableType) -> None:
        """Write something that stays, with an empty line before it."""
        gap, self._fragment = not self._fragment, False
        self._region.add(final, *self._status_line(), gap=gap)

    def _call(self, name: str, arguments: Any) -> None:
        self._several = self._pending > 0
        self._pending += 1
        line = Text("● ")
        line.append(one_row(exact(name, arguments), self.console.width - 3))
        line.stylize("cyan", 0, 1)
        line.stylize("bold", 2, 2 + len(name))
        self._add(line)
        self._fragment = True  # its result belongs to it

    # --- drawing ------------------------------------------------------------------------------

    def _soon(self) -> None:
        """Draw now if the last time is long enough ago, or else when it is."""
        left = self._next - self._clock()
        if left <= 0:
            self._draw()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(left, self._draw)
            except RuntimeError:
                pass  # nothing runs that could draw later; the next piece does

    def _draw(self) -> None:
        self._cancel_timer()
        begun = self._clock()
        if self._ready:
            self._settle()
        if self._paused:
            return
        self._region.draw(*self._changing())
        ended = self._clock()
        self._next = ended + max(FRAME, 5 * (ended - begun))

    def _changing(self) -> Iterator[RenderableType]:
        tail = self._blocks.tail
        if tail.strip():
            if not self._fragment:
                yield Text("")
            yield self._shown(tail)
        else:
            yield from self._status_line()

    def _status_line(self) -> Iterator[RenderableType]:
        if self._status and not self._paused:
            yield Text(f"  … {self._status}", "dim", no_wrap=True, overflow="ellipsis")

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def joined(blocks: list[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Blocks that follow each other as one text, up to one that goes on in the next.

    A table stands alone: among others it is drawn with too much room around it.
    """
    run: list[str] = []
    for block, cut in blocks:
        table = block.lstrip().startswith("|")
        if table and run:
            yield "\n\n".join(run), False
            run = []
        run.append(block)
        if cut or table:
            yield "\n\n".join(run), cut
            run = []
    if run:
        yield "\n\n".join(run), False


def one_row(line: str, width: int) -> str:
    """A line cut to what fits into a row, in cells."""
    from rich.cells import cell_len, set_cell_size

    line = line.expandtabs(4)
    return line if cell_len(line) <= width else set_cell_size(line, max(width - 1, 1)) + "…"


def is_diff(lines: list[str]) -> bool:
    """Whether this is a unified diff, perhaps after a few words about it."""
    return any(line.startswith("@@ -") for line in lines[:20])


def colour_diff(text: Text) -> None:
    """Colour additions and deletions."""
    for sign, style in ((r"\+", "green"), ("-", "red"), ("@@ ", "cyan")):
        text.highlight_regex(rf"(?m)^( {{4}}|  └ )?{sign}.*$", style)
