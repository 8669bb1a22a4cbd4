"""Splits an answer into blocks while it arrives: complete blocks are shown once, only the rest is
redrawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

LIMIT = 2000
"""Characters that a block may have; a longer one is cut, so that showing its end stays cheap."""

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
ITEM = re.compile(r"\s*([-*+]|\d+[.)])\s")
TABLE = re.compile(r"\s*+(?:\|\s*+)?:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+$")


class Blocks:
    """Takes the pieces of a Markdown text and gives its blocks; `tail` is the one still open.

    Taking a piece costs what the piece costs, whatever came before it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._size = 0
        self._fence = ""
        self._opened = ""
        self._blank = False
        self.cut = False
        """Whether the last block continues in the next one."""

    @property
    def tail(self) -> str:
        """The block that is not complete yet."""
        return "\n".join([*self._lines, "".join(self._line)])

    def take(self, text: str) -> Iterable[str]:
        """Take a piece; give the blocks that are complete with it."""
        size = self._size + len(text)
        if "\n" in text or size > LIMIT * 2:
            return self._taken(text)
        self._line.append(text)  # most pieces are a word
        self._size = size
        return ()

    def _taken(self, text: str) -> Iterator[str]:
        *ended, rest = text.split("\n")
        for part in ended:
            yield from self._grow(part)
            line, self._line = "".join(self._line), []
            self._size -= len(line)
            yield from self._end_line(line)
        yield from self._grow(rest)

    def close(self) -> Iterator[str]:
        """End the text and return the rest of it."""
        yield from self._commit()
        self.__init__()

    def _grow(self, part: str) -> Iterator[str]:
        """Add to the line that is open; a line without end is cut at a space."""
        while self._size + len(part) > LIMIT * 2:
            room = max(LIMIT * 2 - self._size, 1)
            self._line.append(part[:room])
            part = part[room:]
            line = "".join(self._line)
            head, space, rest = line.rpartition(" ")
            if not space or len(rest) > LIMIT // 2:
                head, rest = line, ""
            self._line = [head]
            yield from self._commit()
            self._line = [rest] if rest else []
            self._size += len(rest)
        if part:
            self._line.append(part)
            self._size += len(part)

    def _end_line(self, line: str) -> Iterator[str]:
        if self._fence:
            self._add(line)
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
                yield from self._commit()
            elif self._size > LIMIT:
                yield from self._commit()
            return
        if not line.strip():
            self._blank = bool(self._lines)
            return
        fence = FENCE.match(line)
        apart = self._blank and not self._belongs(line)
        code = fence and self._lines and not line.startswith(" ")
        if apart or code or self._size > LIMIT:
            yield from self._commit()
        if self._blank:
            self._add("")
            self._blank = False
        if fence:
            self._fence, self._opened = fence[1], line
        self._add(line)

    def _belongs(self, line: str) -> bool:
        """Whether a line after a blank one continues a list."""
        return bool(ITEM.match(self._lines[0])) and (line.startswith("  ") or bool(ITEM.match(line)))

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _commit(self) -> Iterator[str]:
        """Give the open block away; what must be said again for the rest to be read is kept."""
        block = self.tail
        again: list[str] = []
        if self._fence:
            again = [self._opened if len(self._opened) < LIMIT // 10 else self._fence]
            block += f"\n{self._fence}"
        elif len(self._lines) > 2 and "|" in self._lines[0] and TABLE.match(self._lines[1]):
            header = self._lines[:2]
            if not self._blank and self._size > LIMIT and sum(map(len, header)) < LIMIT // 4:
                again = header
        bare = len(again) == len(self._lines) and not self._line
        self.cut = bool(again) or (self._size > LIMIT and not self._blank)
        self._lines, self._line, self._blank = again, [], False
        self._size = sum(len(line) + 1 for line in again)
        if block.strip() and not bare:
            yield block
