r"""Printable text: what models, tools, files and strangers wrote cannot steer a terminal.

    printable("ls\x1b[2J")        # ls\u001b[2J: what was hidden can be seen

Control characters, direction overrides and invisible characters are spelled out as `\uXXXX`. That is
also how JSON spells them, so JSON text stays the same document.
"""

from __future__ import annotations

import re
from typing import Final

# The zero-width joiner and non-joiner belong to emoji and to some scripts: between two characters that
# are not ASCII they stay.
UNSAFE: Final = re.compile(
    "\r\n"
    "|[\0-\x08\x0b-\x1f\x7f-\x9f"  # C0, DEL and C1: escape sequences, carriage return, backspace
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible, or changing direction
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])"
)


def printable(text: str) -> str:
    """The text with everything spelled out that a terminal would act on or not show; lines stay."""
    return UNSAFE.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    if found[0] == "\r\n":
        return "\n"
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
