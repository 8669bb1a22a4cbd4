r"""Text from models, tools, files and strangers, made safe to show.

    printable("ls\x1b[2J")        # ls\u001b[2J
    visible("ls\u00a0-l")         # ls\u00a0-l

`printable` is for reading: nothing in its text steers a terminal, colours are dropped, and text that
people write stays as it is. `visible` is for decisions: it also spells out what only looks like a space
or like nothing, so that two different texts never look the same.

Both spell a character as `\uXXXX`. JSON spells it the same way, so JSON text stays the same document.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

_REMEMBERED: Final = 4096
"""Characters whose spelling is remembered."""

# C0 without tab and newline, DEL and C1; then what is invisible or changes the direction of writing.
_UNSAFE: Final = (
    "\0-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# The zero-width joiner and non-joiner and the variation selectors belong to emoji and to some scripts:
# next to characters that are not ASCII, `printable` keeps them.
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe00-\ufe0f"
_BRAILLE_BLANK: Final = "\u2800"


@cache
def _steering() -> re.Pattern[str]:
    return re.compile(
        "\r\n"
        r"|\x1b\[[0-9;:]*m"
        f"|[{_UNSAFE}]"
        f"|(?<![^\0-\x7f])[{_JOINERS}{_SELECTORS}]"
        f"|[{_JOINERS}](?![^\0-\x7f])"
    )


@cache
def _unsafe() -> re.Pattern[str]:
    return re.compile(f"[{_UNSAFE}]")


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"[{_UNSAFE}{_JOINERS}{_SELECTORS}{_BRAILLE_BLANK}]")


def printable(text: str) -> str:
    """The text without colours, with everything else that a terminal would act on spelled out."""
    if text.isascii() and text.replace("\n", "").isprintable():  # most text, and all of `--help`
        return text
    return _steering().sub(_replaced, text)


def is_unsafe(sign: str) -> bool:
    """Whether a single character steers a terminal or cannot be seen; joiners can be part of a text."""
    return _unsafe().match(sign) is not None


def visible(text: str, *, line: bool = False) -> str:
    r"""The text with each character spelled out that a person cannot see.

    Tabs and newlines stay; for one `line` they become `\t` and `\n`.
    """
    if text.isascii() and text.isprintable():
        return text
    seen = text.translate(_VISIBLE)
    return seen.replace("\n", r"\n").replace("\t", r"\t") if line else seen


class _Visible(dict[int, str]):
    """What `visible` makes of each character, worked out when it first occurs."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        # Spaces other than the plain one and code points without a character are not printable either.
        seen = sign in "\n\t" or (sign.isprintable() and not _unseen().match(sign))
        shown = sign if seen else _spelled(sign)
        if len(self) < _REMEMBERED:
            self[code] = shown
        return shown


_VISIBLE: Final = _Visible()


def _replaced(found: re.Match[str]) -> str:
    if len(found[0]) > 1:
        return "\n" if found[0] == "\r\n" else ""
    return _spelled(found[0])


@lru_cache(maxsize=_REMEMBERED)
def _spelled(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def names(text: str) -> frozenset[str]:
    """The words of a text, for tables of names."""
    return frozenset(text.split())
