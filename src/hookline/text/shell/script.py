"""Shell scripts: the simple commands of a text, and how the grammar's parser is called."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hookline.text.errors import UnreadableScript

from .words import Word

LONGEST = 100_000
"""Bytes of a command line that are read at all."""
LONGEST_SYNTAX = 8_000
"""Bytes of it that are given to the parser: here-documents that nothing is replaced in do not count."""
MOST_OPERATORS = 150
"""How often each of some characters may occur: the parser takes long for many of them."""
OPERATORS = b"|(<>`"
HERE = re.compile(r"<<-?[ \t]*(?:'(\w+)'|\"(\w+)\"|\\(\w+)|(\w+))", re.ASCII)
HERE_DOCUMENTS = 20
"""Here-documents in one text; the grammar keeps what it waits for in a small buffer."""


@dataclass(slots=True)
class SimpleCommand:
    """One command: its variables, its words, and its input text, if that is known."""

    words: list[Word] = field(default_factory=list[Word])
    assignments: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    text: str | None = None
    """The here-document on its standard input."""
    unexpanded: list[Word] = field(default_factory=list[Word])
    """Its words for a shell that does not expand braces, if it has any."""
    cut: int | None = None
    """Where `&>` stands among the words: for some shells an `&`, after which another command begins."""


@dataclass(slots=True)
class ShellScript:
    """What a command line consists of."""

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    targets: list[Word] = field(default_factory=list[Word])
    """Files that redirections open."""
    operators: set[str] = field(default_factory=set[str])
    functions: set[str] = field(default_factory=set[str])
    constants: set[str] = field(default_factory=set[str])
    """Variables whose one value was read wherever they are used."""
    unclear: list[str] = field(default_factory=list[str])
    """Why it cannot be understood with certainty; empty if it can."""
    dynamic: bool = False


@lru_cache(maxsize=1)
def _parser() -> Any:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(source: bytes) -> Any:
    """The syntax tree of a text.

    The parser's time and memory grow with the square of some mistakes, and it cannot be stopped. So it
    is given only what it can read in some milliseconds.
    """
    size = len(re.sub(rb"\n+", b"\n", source))
    if size > LONGEST_SYNTAX:
        raise UnreadableScript(
            f"it is longer than {LONGEST_SYNTAX // 1000} kB without its here-documents"
        )
    if any(source.count(operator) > MOST_OPERATORS for operator in OPERATORS):
        raise UnreadableScript("it has too many operators")
    if source.count(b"<<") > HERE_DOCUMENTS:
        raise UnreadableScript("it has too many here-documents")
    return _parser().parse(source).root_node


def without_documents(text: str) -> tuple[str, set[tuple[int, int]]]:
    """The text with empty lines for here-documents in which nothing is replaced, and where they are.

    This is a guess. It holds only if the parser finds a here-document in exactly these places.
    """
    parts: list[str] = []
    places: set[tuple[int, int]] = set()
    at = 0
    for _ in range(HERE_DOCUMENTS):
        found = HERE.search(text, at)
        if found is None:
            break
        delimiter = next(group for group in found.groups() if group)
        begin = text.find("\n", found.end()) + 1
        end = end_of_document(text, begin, delimiter, found[0].startswith("<<-")) if begin else None
        if end is None:
            break
        body = text[begin:end]
        if found[4] is None or not any(char in body for char in "$`\\"):
            parts += [text[at:begin], "\n" * len(body)]
            places.add((begin, end))
            at = end
        else:
            parts.append(text[at : found.end()])
            at = found.end()
    return "".join([*parts, text[at:]]), places


def end_of_document(text: str, at: int, delimiter: str, stripped: bool) -> int | None:
    """Where the line with the delimiter begins."""
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        if (line.lstrip("\t") if stripped else line) == delimiter:
            return at
        at = end + 1
    return None
