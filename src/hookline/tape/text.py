"""Full text: which words an entry has, which words a query asks for, what to show of a place found.

Words are made here and not by the database, so that every store finds the same: case and accents do
not count, and scripts written without spaces are taken character by character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_TEXT = 200_000
"""How many characters of an entry can be found; the rest is kept but not indexed."""

LONGEST_WORD = 64  # longer is not a word but data

_NOT_PROSE = frozenset({"role", "type", "id", "tool_call_id"})
_UNSPACED = "\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_SPACE = re.compile(r"\s+")
_AROUND = 60


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must follow each other; with `prefix`, the last may be the start of one."""

    words: tuple[str, ...]
    prefix: bool = False


def text_of(payload: Any) -> str:
    """The text in a payload: its string values, without structural ones."""
    pieces: list[str] = []
    room = LONGEST_TEXT
    for piece in _strings(payload):
        pieces.append(piece[:room])
        room -= len(piece) + 1
        if room <= 0:
            break
    return "\n".join(pieces)


def _strings(payload: Any) -> Iterator[str]:
    waiting: list[Any] = [payload]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(_prose(value)[::-1])  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            waiting.extend(value[::-1])  # pyright: ignore[reportUnknownArgumentType]


def _prose(items: dict[str, Any]) -> list[Any]:
    """A value that may contain words; image and audio data do not."""
    hidden = _NOT_PROSE | {"data"} if items.get("type") in ("image", "audio") else _NOT_PROSE
    return [value for key, value in items.items() if key not in hidden]


def words_of(text: str) -> list[str]:
    """The words of a text, in order, in the form in which they are compared."""
    return [word for word in _WORD.findall(_folded(text)) if len(word) <= LONGEST_WORD]


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in spread if not unicodedata.combining(c)))


def phrases_of(query: str) -> list[Phrase]:
    """The terms of a query: each of its words; `foo-bar` is one phrase."""
    return [
        Phrase(words, part.endswith("*"))
        for part in query[:1000].split()
        if (words := tuple(words_of(part)))
    ]


def matches(phrases: Sequence[Phrase], words: Sequence[str]) -> bool:
    """Whether every phrase occurs among the words."""
    return all(any(True for _ in _places(phrase, words)) for phrase in phrases)


def _places(phrase: Phrase, words: Sequence[str]) -> Iterator[int]:
    *first, last = phrase.words
    for start in range(len(words) - len(first)):
        end = words[start + len(first)]
        if list(words[start : start + len(first)]) == first and (
            end == last or (phrase.prefix and end.startswith(last))
        ):
            yield start


def snippet(text: str, phrases: Sequence[Phrase]) -> str:
    """The first place in the text where the query is met, in one line."""
    start, end = _first_place(text, phrases)
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    middle = _SPACE.sub(" ", text[left:right]).strip()
    return f"{'…' if left else ''}{middle}{'…' if right < len(text) else ''}"


def _first_place(text: str, phrases: Sequence[Phrase]) -> tuple[int, int]:
    wanted = {phrase.words[0] for phrase in phrases}
    starts = tuple(phrase.words[0] for phrase in phrases if phrase.prefix)
    for found in _WORD.finditer(text):
        word = _folded(found[0])
        if word in wanted or (starts and word.startswith(starts)):
            return found.span()
    return 0, 0
