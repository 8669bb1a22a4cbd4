"""The elements of a page: paragraphs, headings, items and code, put into lines at once.

rich would give the same lines. It makes a text of its own of everything, and copies, divides, pads and
measures it several times; an answer that came all at once took longer to show than to receive.
What is not plain, such as a word wider than the terminal, is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.markdown import CodeBlock, Heading, ListItem, MarkdownContext, MarkdownElement, Paragraph
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

WORD = re.compile(r"\s*+\S++\s*+|\s++")
NEW_LINE = Segment.line()
BULLET = " • "
TAB = 4
MARGIN = "  "
"""Before each line of code."""


class Runs(list[tuple[str, Style | None]]):
    """Text in pieces, each of one style."""

    def add(self, text: str, style: Style | None) -> None:
        """Add to the end."""
        if self and self[-1][1] is style:
            self[-1] = self[-1][0] + text, style
        elif text:
            self.append((text, style))

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join([text for text, _ in self])

    def lines(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """Its lines, none wider than there is room."""
        breaks = breaks_of(self.plain, options.max_width)
        if breaks is None:
            text = Text.assemble(*((text, style or "") for text, style in self))
            return console.render_lines(text, options.update(justify="default"), pad=False)
        return divided(self, breaks)


class Prose(Paragraph):
    """A paragraph."""

    def on_enter(self, context: MarkdownContext) -> None:
        """Begin it."""
        self.style = context.enter_style(self.style_name)
        self.runs = Runs()

    def on_text(self, context: MarkdownContext, text: str | Text) -> None:
        """Append text in the current style."""
        self.runs.append((str(text), context.current_style or None))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines."""
        yield from ended(self.runs.lines(console, options))


class LeftHeading(Heading):
    """A heading that begins where the text does."""

    def on_enter(self, context: MarkdownContext) -> None:
        """Begin it."""
        context.enter_style(self.style_name)
        self.runs = Runs()

    def on_text(self, context: MarkdownContext, text: str | Text) -> None:
        """Append text in the current style."""
        self.runs.append((str(text), context.current_style or None))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines."""
        yield from ended(self.runs.lines(console, options))


class MarkdownItem(ListItem):
    """An item of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[MarkdownElement] = []

    def on_child_close(self, context: MarkdownContext, child: MarkdownElement) -> bool:
        """Take a part of it."""
        self.parts.append(child)
        return super().on_child_close(context, child)

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines, the first with a bullet."""
        return self._marked(console, options, BULLET, "markdown.item.bullet")

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        """Its lines, the first with a number."""
        mark = f"{number}".rjust(len(str(last_number)) + 1) + " "
        return self._marked(console, options, mark, "markdown.item.number")

    def _marked(
        self, console: Console, options: ConsoleOptions, mark: str, style_name: str
    ) -> RenderResult:
        inner = options.update_width(max(options.max_width - len(mark), 1))
        style = console.get_style(style_name, default="none")
        first = self.parts[0] if len(self.parts) == 1 else None
        if isinstance(first, Prose):
            lines = first.runs.lines(console, inner)
        else:
            lines = console.render_lines(self.elements, inner, style=self.style, pad=False)
        for number, line in enumerate(lines):
            yield Segment(" " * len(mark) if number else mark, style)
            yield from line
            yield NEW_LINE


class IndentedCode(CodeBlock):
    """Code without a frame, so that a long block can be shown piece by piece."""

    def on_enter(self, context: MarkdownContext) -> None:
        """Begin it."""
        context.enter_style(self.style_name)
        self.code: list[str] = []

    def on_text(self, context: MarkdownContext, text: str | Text) -> None:
        """Add to it."""
        self.code.append(str(text))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The code in colours, moved in."""
        inner = options.update_width(max(options.max_width - 2 * len(MARGIN), 1))
        margin = Segment(MARGIN)
        code = "".join(self.code).rstrip("\n").expandtabs(TAB)
        for line in coloured(code, self.lexer_name, self.theme):
            for part in line.lines(console, inner):
                yield margin
                yield from part
                yield NEW_LINE


ELEMENTS: dict[str, type[MarkdownElement]] = {
    "paragraph_open": Prose,
    "heading_open": LeftHeading,
    "list_item_open": MarkdownItem,
    "fence": IndentedCode,
    "code_block": IndentedCode,
}


def breaks_of(plain: str, width: int) -> list[int] | None:
    """The positions of line breaks; None if a word must be broken or the text contains lines."""
    if "\n" in plain or "\t" in plain:
        return None
    measure: Any = len if plain.isascii() else cell_len
    if measure(plain.rstrip()) <= width:
        return []
    breaks: list[int] = []
    used = 0
    for word in WORD.finditer(plain):
        text = word[0]
        needed = measure(text.rstrip())
        if used + needed <= width:
            used += measure(text)
            continue
        if needed > width:
            return None
        if used and word.start():
            breaks.append(word.start())
            used = measure(text)
    return breaks


def divided(runs: Runs, breaks: list[int]) -> list[list[Segment]]:
    """The runs as lines, divided at these places, without the spaces at their ends."""
    lines: list[list[Segment]] = [[]]
    waiting = iter([*breaks, 0])
    end, at = next(waiting), 0
    for text, style in runs:
        while end and at + len(text) >= end:
            lines[-1].append(Segment(text[: end - at], style))
            lines.append([])
            text, at, end = text[end - at :], end, next(waiting)
        if text:
            lines[-1].append(Segment(text, style))
            at += len(text)
    for line in lines:
        while line and not line[-1].text.rstrip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
    return lines


def ended(lines: list[list[Segment]]) -> Iterator[Segment]:
    """The lines with their ends."""
    for line in lines:
        yield from line
        yield NEW_LINE


def coloured(code: str, language: str, theme: str) -> Iterator[Runs]:
    """The lines of some code, in colours where its language is known."""
    lexer = lexer_of(language)
    if lexer is None:
        yield from (Runs([(line, None)]) for line in code.split("\n"))
        return
    style_of = theme_of(theme).get_style_for_token
    line = Runs()
    for kind, text in lexer.get_tokens(code):
        style = style_of(kind) or None
        *whole, rest = text.split("\n")
        for part in whole:
            line.add(part, style)
            yield line
            line = Runs()
        line.add(rest, style)


@lru_cache(maxsize=64)
def lexer_of(language: str) -> Any:
    """The lexer of a language, or None: finding one takes as long as lexing a few lines."""
    return Syntax("", language, tab_size=TAB).lexer


@lru_cache(maxsize=4)
def theme_of(name: str) -> Any:
    """The colours of a theme."""
    return Syntax.get_theme(name)
