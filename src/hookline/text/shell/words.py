"""Shell words: what a shell makes of one word before it runs the command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

Part: TypeAlias = tuple[str, Literal["plain", "quoted", "dynamic"]]
"""A piece of a word: text that the shell expands further, text in quotes, or what is not known yet."""

MOST = 256
"""Words that one word with braces may stand for."""
GLOB = re.compile(r"[*?\[]")
SPECIAL = re.compile(r"[*?\[{}~]")
SEQUENCE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])(?:\.\.-?\d{1,3})?")


@dataclass(slots=True)
class Word:
    """One word as the shell would pass it on; `dynamic` if it is known only when it runs."""

    text: str
    dynamic: bool = False
    quoted: bool = False
    glob: str | None = None
    """The word as a pattern over files, with `[*]` for what is quoted; None if it has no wildcard."""
    parts: tuple[Part, ...] = ()
    """Its pieces, if it has braces that are still to be expanded."""

    @property
    def pattern(self) -> bool:
        """Whether it has wildcards, which the shell replaces by the files that match."""
        return self.glob is not None

    @classmethod
    def of(cls, parts: list[Part]) -> Word:
        """The word that some pieces make."""
        if len(parts) == 1 and parts[0][1] == "plain" and not SPECIAL.search(parts[0][0]):
            return cls(parts[0][0])
        text = "".join([text for text, _ in parts])
        dynamic = any(kind == "dynamic" for _, kind in parts)
        quoted = any(kind == "quoted" for _, kind in parts)
        plain = [text for text, kind in parts if kind == "plain"]
        glob = None
        if any(GLOB.search(text) for text in plain):
            glob = "".join(
                [
                    text if kind == "plain" else re.sub(r"([*?\[])", r"[\1]", text)
                    for text, kind in parts
                ]
            )
        if parts and parts[0][1] == "plain" and text.startswith(("~+", "~-")):
            dynamic = True
        braces = any("{" in text or "}" in text for text in plain) and text not in ("{", "}", "{}")
        return cls(text, dynamic, quoted, glob, tuple(parts) if braces else ())


def literal_parts(text: str) -> list[Part]:
    """The pieces of text without quotes: what follows a backslash is quoted."""
    if "\\" not in text:
        return [(text, "plain")]
    pieces = re.findall(r"\\.|[^\\]+", text, re.DOTALL)
    return [(piece[1:], "quoted") if piece[0] == "\\" else (piece, "plain") for piece in pieces]


def expand(word: Word) -> list[Word] | None:
    """The words that a word with braces stands for; None if they are too many."""
    if not word.parts:
        return [word]
    marked: list[tuple[str, str]] = []
    for text, kind in word.parts:
        marked += [(char, kind) for char in text] if text else [("", kind)]
    found = _alternatives(marked, 0)
    if found is None:
        return None
    return [Word.of(_merged(one)) for one in found if one or word.quoted]


Marked: TypeAlias = list[tuple[str, str]]


def _alternatives(marked: Marked, depth: int) -> list[Marked] | None:
    """Each text that braces in a text stand for."""
    start = _opening(marked)
    if start is None:
        return [marked]
    end, commas = start[1], start[2]
    begin = start[0]
    if depth > 8:
        return None
    inside = marked[begin + 1 : end]
    choices: list[Marked] = []
    if commas:
        edges = [begin, *commas, end]
        for left, right in pairwise(edges):
            inner = _alternatives(marked[left + 1 : right], depth + 1)
            if inner is None:
                return None
            choices += inner
    else:
        choices = _sequence("".join(char for char, _ in inside))
    rest = _alternatives(marked[end + 1 :], depth + 1)
    if rest is None or len(choices) * len(rest) > MOST:
        return None
    return [[*marked[:begin], *choice, *tail] for choice in choices for tail in rest]


def _opening(marked: Marked) -> tuple[int, int, list[int]] | None:
    """The first brace that is expanded: where it opens and closes, and its commas."""
    stack: list[tuple[int, list[int]]] = []
    found: dict[int, tuple[int, list[int]]] = {}
    for position, (char, kind) in enumerate(marked):
        if kind != "plain":
            continue
        if char == "{":
            stack.append((position, []))
        elif char == "," and stack:
            stack[-1][1].append(position)
        elif char == "}" and stack:
            begin, commas = stack.pop()
            inside = marked[begin + 1 : position]
            text = "".join(char for char, _ in inside)
            if commas or (SEQUENCE.fullmatch(text) and all(kind == "plain" for _, kind in inside)):
                found[begin] = (position, commas)
    if not found:
        return None
    begin = min(found)
    return begin, *found[begin]


def _sequence(text: str) -> list[Marked]:
    """`1..3`: its ends, and dynamic in between unless it is short."""
    first, last, *step = text.split("..")
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit() and not step:
        low, high = int(first), int(last)
        numbers = list(range(low, high + 1) if low <= high else range(low, high - 1, -1))
        padded = first.lstrip("-").startswith("0") or last.lstrip("-").startswith("0")
        if len(numbers) <= 64 and not padded:
            return [[(char, "plain") for char in str(number)] for number in numbers]
    elif first.isalpha() and last.isalpha() and len(first) == len(last) == 1 and not step:
        low, high = ord(first), ord(last)
        letters = range(low, high + 1) if low <= high else range(low, high - 1, -1)
        return [[(chr(letter), "quoted")] for letter in letters]
    return [[("", "dynamic")]]


def _merged(marked: Marked) -> list[Part]:
    parts: list[Part] = []
    for char, kind in marked:
        if parts and parts[-1][1] == kind:
            parts[-1] = (parts[-1][0] + char, parts[-1][1])
        else:
            parts.append((char, kind))  # type: ignore[arg-type]
    return parts
