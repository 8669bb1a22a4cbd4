"""Shell globs: which names a pattern that the shell expands could stand for.

These patterns come from the command that is judged, so nothing here backtracks: the time is at most the
length of the pattern times the length of the name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from hookline.text.errors import TooManyFiles

STAR: Final = "*"
ANY: Final = "?"
Token: TypeAlias = "str | Callable[[str], bool]"
"""`*`, `?`, a set of characters, or `=x` for the character x."""

CLASSES: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha,
    "alnum": str.isalnum,
    "digit": str.isdigit,
    "lower": str.isalpha,
    "upper": str.isalpha,
    "space": str.isspace,
    "blank": str.isspace,
    "punct": lambda char: not char.isalnum() and not char.isspace(),
    "xdigit": lambda char: char in "0123456789abcdef",
    "word": lambda char: char.isalnum() or char == "_",
}
ENTRIES = 5_000
"""Names in folders that are looked at for one command."""


@lru_cache(maxsize=256)
def tokens(glob: str) -> tuple[Token, ...]:
    """A pattern in small letters, token by token."""
    glob = glob.lower()
    found: list[Token] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            if not found or found[-1] != STAR:
                found.append(STAR)
        elif char == "?":
            found.append(ANY)
        elif char == "[" and (parsed := _set(glob, at + 1)) is not None:
            found.append(parsed[0])
            at = parsed[1]
            continue
        else:
            found.append(f"={char}")
        at += 1
    return tuple(found)


def _set(glob: str, at: int) -> tuple[Callable[[str], bool], int] | None:
    """The set that begins after `[`, and where it ends; None if it does not end."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    tests: list[Callable[[str], bool]] = []
    first = True
    while at < len(glob):
        char = glob[at]
        if char == "]" and not first:
            return (lambda one: any(test(one) for test in tests) != negated), at + 1
        first = False
        if glob.startswith(("[:", "[.", "[="), at):
            end = glob.find(glob[at + 1] + "]", at + 2)
            if end < 0:
                return None
            name = glob[at + 2 : end]
            tests.append(CLASSES.get(name, _anything) if glob[at + 1] == ":" else _anything)
            at = end + 2
        elif glob[at + 1 : at + 2] == "-" and glob[at + 2 : at + 3] not in ("", "]"):
            tests.append(_between(char, glob[at + 2]))
            at += 3
        else:
            tests.append(char.__eq__)
            at += 1
    return None


def _anything(_char: str) -> bool:
    return True


def _between(low: str, high: str) -> Callable[[str], bool]:
    return lambda char: low <= char <= high


def matches(glob: str, name: str) -> bool:
    """Whether a name, which is no path, is one that the shell puts in the place of the pattern."""
    return overlaps(tokens(glob), tuple(f"={char}" for char in name.lower()))


def overlaps(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Whether some name fits both patterns; a leading dot must be written in the first."""
    if first and second and second[0] == "=." and first[0] != "=.":
        return False
    width = len(second)
    row = {0}
    row = _past_stars(row, second, width)
    for token in first:
        if token == STAR:
            row = set(range(min(row), width + 1)) if row else row
            continue
        found: set[int] = set()
        for at in row:
            if at < width and second[at] == STAR:
                found.add(at)
            if at < width and second[at] != STAR and _meet(token, second[at]):
                found.add(at + 1)
        row = _past_stars(found, second, width)
        if not row:
            return False
    return width in row


def _past_stars(row: set[int], second: Sequence[Token], width: int) -> set[int]:
    for at in sorted(row):
        while at < width and second[at] == STAR:
            at += 1
            row.add(at)
    return row


def _meet(one: Token, other: Token) -> bool:
    """Whether some character fits both; two sets are taken to have one in common."""
    if one == ANY or other == ANY:
        return True
    if isinstance(one, str):
        return one == other if isinstance(other, str) else other(one[1])
    return one(other[1]) if isinstance(other, str) else True


def could_be(glob: str, names: Iterable[str]) -> list[str]:
    """Those of some names that the last part of a pattern could stand for."""
    last = tokens(glob)
    return [name for name in names if overlaps(last, tuple(f"={char}" for char in name.lower()))]


def may_touch(path: str, pattern: str) -> bool:
    """Whether a path with wildcards could stand for something that a protected pattern describes.

    A path such as `*`, which says nothing about a name, is judged by the files that exist.
    """
    last = path.rstrip("/").rpartition("/")[2]
    said = [token for token in tokens(last) if isinstance(token, str) and token[0] == "="]
    if not any(token[1:].isalnum() for token in said):
        return False
    if "/" not in pattern:
        return overlaps(tokens(last), tokens(pattern.replace("**", "*")))
    whole = pattern.replace("**", "*")
    if len(path) * len(whole) > 60_000:
        return True
    return overlaps(tokens(path), tokens(whole))


def existing(path: str) -> set[str]:
    """The files that an absolute path with wildcards stands for. Raises `TooManyFiles`."""
    found, seen = [""], 0
    for part in path.split("/")[1:]:
        if not any(char in part for char in "*?["):
            found = [f"{folder}/{part}" for folder in found]
            continue
        below: list[str] = []
        wanted = tokens(part)
        for folder in found:
            try:
                entries = os.scandir(folder or "/")
            except OSError:
                continue
            with entries:
                for entry in entries:
                    seen += 1
                    if seen > ENTRIES:
                        raise TooManyFiles
                    if overlaps(wanted, tuple(f"={char}" for char in entry.name.lower())):
                        below.append(f"{folder}/{entry.name}")
        found = below
    return {name for name in found if os.path.lexists(name)}
