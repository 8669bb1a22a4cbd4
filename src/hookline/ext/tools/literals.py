"""Literals: the text that every match of a regular expression contains.

Files without it need not be searched, and git finds those with it much faster than Python can.
"""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from typing import Any

from hookline.text.patterns import LONGEST

_SHORTEST = 3
_SEVERAL_CASES = re.compile(r"[iskISK]|[^ -~]")
"""What equals a letter outside ASCII when case is ignored, where git and Python may disagree."""


def required_literal(pattern: str, *, ignore_case: bool) -> tuple[str, bool]:
    """The longest such text, empty if there is none, and whether its case is ignored."""
    if len(pattern) > LONGEST:
        return "", ignore_case
    parser: Any = import_module("re._parser")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = parser.parse(pattern, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
        ignore_case = bool(parsed.state.flags & re.IGNORECASE)
        runs = _runs(parsed, ignore_case)
    except (re.error, OverflowError, RecursionError):
        return "", ignore_case  # the search itself reports the error
    pieces = [piece for run in runs for piece in _safe(run, ignore_case)]
    longest = max(pieces, key=len, default="")
    return (longest if len(longest) >= _SHORTEST else ""), ignore_case


def _runs(sequence: Any, ignore_case: bool) -> list[str]:
    """Literal characters that follow each other, at places that no match can leave out."""
    runs = [""]
    for kind, value in sequence:
        match str(kind):
            case "LITERAL":
                runs[-1] += chr(value)
            case "AT":
                pass  # an anchor takes no room
            case "SUBPATTERN":
                _, more, less, inner = value
                changes = (more | less) & re.IGNORECASE
                runs += ["", *([] if changes else _runs(inner, ignore_case)), ""]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, _, inner = value
                runs += ["", *(_runs(inner, ignore_case) if least else []), ""]
            case _:
                runs.append("")
    return runs


def _safe(run: str, ignore_case: bool) -> list[str]:
    """The pieces of a run that are in the bytes of every file in whose text the run is."""
    if ignore_case:
        return _SEVERAL_CASES.split(run)
    return re.split("[\x00-\x08\n-\x1f\ufffd\ud800-\udfff]", run)
