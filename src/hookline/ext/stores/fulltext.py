"""Full text: the words of a value for SQLite's index, and a search as the index takes it.

Words are those of the tape, so that the same search finds the same everywhere: case and accents do
not count, and scripts written without spaces are taken character by character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from hookline.tape.text import LONGEST_TEXT, phrases_of, words_of


def indexed(value: Any) -> str:
    """The words that a value can be found by."""
    found: list[str] = []
    room = LONGEST_TEXT
    for piece in _strings(value):
        found += words_of(piece[:room])
        room -= len(piece)
        if room <= 0:
            break
    return " ".join(found)


def asked(search: str, *, any_word: bool = False) -> str | None:
    """What to look for; None where the search has no word."""
    phrases = [f'"{" ".join(p.words)}"{"*" if p.prefix else ""}' for p in phrases_of(search)]
    return (" OR " if any_word else " ").join(phrases) or None


def _strings(value: Any) -> Iterator[str]:
    waiting: list[Any] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(cast("dict[str, Any]", value).values()))
        elif isinstance(value, list | tuple):
            waiting.extend(reversed(cast("list[Any]", value)))
