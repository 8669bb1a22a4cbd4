"""Markdown as the chat shows it, and how much of it may be drawn when text floods in."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache

from markdown_it import MarkdownIt
from rich.markdown import Markdown

from .elements import ELEMENTS

BURST = 32_000
"""Characters that are drawn as Markdown however fast they come."""
STEADY = 40_000
"""Characters a second that are drawn so in the long run: ten thousand tokens, a fifth of a core."""


class Page(Markdown):
    """Markdown as it is shown here."""

    elements = {**Markdown.elements, **ELEMENTS}  # noqa: RUF012


@cache
def _blank() -> tuple[Page, MarkdownIt]:
    """An empty page and a parser: making a parser costs as much as parsing a paragraph."""
    return (
        Page("", code_theme="ansi_dark", hyperlinks=False),
        MarkdownIt().enable("strikethrough").enable("table"),
    )


def page(text: str) -> Page:
    """A page of Markdown."""
    blank, parser = _blank()
    made = copy(blank)
    made.markup, made.parsed = text, parser.parse(text)
    return made


class Allowance:
    """How many characters may be formatted: a burst, and then a number a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = float(BURST)
        self._at = clock()

    def takes(self, size: int) -> bool:
        """Reserve room for characters. Returns whether there was enough."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * STEADY, BURST)
        self._at = now
        if size > self._left:
            return False
        self._left -= size
        return True
