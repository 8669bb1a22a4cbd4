"""The rich console, for tables and the chat; the text that it shows cannot control the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from hookline.text.printable import printable

from .terminal import unguarded


class GuardedConsole(Console):
    """Writes its own styles past the guard of the stream, and guards the texts between them."""

    @property
    def file(self) -> IO[str]:
        """Its output stream."""
        return unguarded(super().file)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as usual, with everything spelled out that a terminal would act on."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)


def console(**options: Any) -> GuardedConsole:
    """A console that guesses no highlights."""
    return GuardedConsole(highlight=False, **options)
