"""Written answers as they would be read aloud: no markup, no code, whole sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from markdown_it import MarkdownIt
from markdown_it.token import Token

_ENDS = re.compile(r"(?<=[.!?…])\s+(?=[^a-z])|\n+")
_ADDRESS = re.compile(r"https?://([^\s/?#]+)\S*")
_READ = 10
"""How many characters of Markdown to read per spoken character; the rest would be cut off anyway."""
_MARKS = frozenset("_#*|~^`\\")


def speakable(text: str, most: int) -> str:
    """What to say of a Markdown text, up to the last whole sentence within `most` characters.

    Code blocks are left out, links are said by their text, bare addresses by their
    host. There is a line for each paragraph, heading, item and row.
    """
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    lines: list[str] = []
    row: list[str] | None = None
    for token in parser.parse(text[: most * _READ]):
        if token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            lines.append(", ".join(filter(None, row)))
            row = None
        elif token.type == "inline":
            said = _said(token.children or ())
            if row is not None:
                row.append(said)
            else:
                lines += said.split("\n")
    return _within([line for each in lines if (line := _ended(each))], most)


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [found for each in _ENDS.split(text) if (found := each.strip())]


def _said(tokens: Iterable[Token]) -> str:
    found: list[str] = []
    for token in tokens:
        if token.type in ("text", "code_inline", "image"):
            found.append(token.content)
        elif token.type == "softbreak":
            found.append(" ")
        elif token.type == "hardbreak":
            found.append("\n")
    return _ADDRESS.sub(r"\1", "".join(found))


def _ended(line: str) -> str:
    """A line without signs that are no words, and with an end that is heard."""
    kept = "".join(
        " " if each in _MARKS or unicodedata.category(each) in ("So", "Sk", "Cc", "Cf", "Cs") else each
        for each in line
    )
    kept = " ".join(kept.split())
    if not any(each.isalnum() for each in kept):
        return ""
    return kept if kept[-1] in ".!?…:;," else f"{kept}."


def _within(lines: list[str], most: int) -> str:
    text = "\n".join(lines)
    if len(text) <= most:
        return text
    cut = text[:most]
    ends = [found.start() for found in _ENDS.finditer(text) if found.start() <= most]
    return cut[: ends[-1]] if ends else cut.rpartition(" ")[0] or cut
