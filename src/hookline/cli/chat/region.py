"""The lines at the end of the terminal that are drawn again and again, until they are final."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment


class Region:
    """Draws changing text below final text, in one write each time."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._widths: list[int] = []
        """How wide each drawn line is: a narrower terminal has broken it into several since."""

    def draw(self, *changing: RenderableType) -> None:
        """Replace what was drawn before."""
        self._write("", changing)

    def add(self, final: RenderableType, *changing: RenderableType, gap: bool = False) -> None:
        """Write something that stays, after an empty line if wanted; below it what still changes."""
        lines = "".join(f"{text}\n" for _, text in self._lines(final))
        self._write("\n" + lines if gap else lines, changing)

    def add_text(self, final: str, *, gap: bool = False) -> None:
        """Write a text that stays as it is; the terminal breaks its lines."""
        self._write(f"\n{final}\n" if gap else f"{final}\n", ())

    def _write(self, final: str, changing: Iterable[RenderableType]) -> None:
        lines = [line for part in changing for line in self._lines(part)]
        lines = lines[-max(self.console.height - 2, 1) :]
        erase = self._erased()
        self._widths = [width for width, _ in lines]
        self.console.file.write(erase + final + "\n".join(text for _, text in lines))
        self.console.file.flush()

    def _erased(self) -> str:
        """What wipes the region and leaves the cursor at its beginning.

        Line by line: wiping from the first row to the end at once makes some terminals keep a copy.
        """
        if not self._widths:
            return ""
        across = max(self.console.width, 1)
        rows = sum(max(-(-width // across), 1) for width in self._widths)
        return "\r\033[2K" + "\033[A\033[2K" * (rows - 1)

    def _lines(self, part: RenderableType) -> list[tuple[int, str]]:
        """A part's lines with their widths; none is so wide that the terminal would break it."""
        from rich.segment import Segment, Segments

        options = self.console.options.update_width(max(self.console.width - 1, 1))
        lines = [*Segment.split_lines(self.console.render(part, options))]
        while len(lines) > 1 and blank(lines[0]):
            del lines[0]
        while len(lines) > 1 and blank(lines[-1]):
            del lines[-1]
        widths = [*map(Segment.get_line_length, lines)]
        for at, width in enumerate(widths):
            if width > options.max_width:
                lines[at] = Segment.adjust_line_length(lines[at], options.max_width, pad=False)
                widths[at] = Segment.get_line_length(lines[at])
        with self.console.capture() as captured:
            together = [segment for line in lines for segment in (*line, Segment.line())]
            self.console.print(Segments(together), end="", soft_wrap=True)
        texts = captured.get().split("\n")
        return [*zip(widths, texts, strict=False)]


def blank(line: list[Segment]) -> bool:
    """Whether there is nothing to see in a line."""
    return not any(segment.text.strip() for segment in line)
