"""Text in which everything can be seen, for whoever must judge it before it runs."""

from __future__ import annotations

import re
from typing import Final

# What Unicode says should not be shown, and what is shown as nothing: fillers, joiners, selectors.
_BLANK: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_BLANKS: Final = re.compile(f"[{_BLANK}]")


def visible(text: str) -> str:
    """The text, with each character that cannot be seen written out as its number.

    These are control characters other than tab and newline, those that have no width or turn the
    direction of writing around, spaces other than the plain one, and halves of surrogate pairs.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" or is_visible(sign) else _spelled(sign) for sign in text)


def is_visible(sign: str) -> bool:
    """Whether a character is shown as something."""
    return sign.isprintable() and not _BLANKS.match(sign)


def _spelled(sign: str) -> str:
    return f"\\u{{{ord(sign):x}}}"
