"""Read-only Cypher for a graph's `query`.

The database runs it in a read-only transaction. What such a transaction would still allow (several
statements, files, settings) is refused here.
"""

from __future__ import annotations

import re

from .errors import BadStoreValue

_HIDDEN = re.compile(
    r"""'(?:[^'\\]|\\.?)*+(?:'|(\Z)) | "(?:[^"\\]|\\.?)*+(?:"|(\Z)) | `[^`]*+(?:`|(\Z))
    | //[^\n]*+ | /\*.*?(?:\*/|(\Z))""",
    re.VERBOSE | re.DOTALL,
)
_BEGINS = ("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN")
_FILES = re.compile(r"\bLOAD\s+(FROM|WITH)\b|\bCALL\b", re.IGNORECASE)


def _blank(hidden: re.Match[str]) -> str:
    if any(end is not None for end in hidden.groups()):
        raise BadStoreValue(f"a query must close what it opens: {hidden[0][:40]}")
    return " "


def question(statement: str) -> str:
    """The statement, if it is a single query."""
    bare = _HIDDEN.sub(_blank, statement).strip().removesuffix(";").strip()
    words = bare.split(None, 1)
    if not words or words[0].upper() not in _BEGINS:
        begins = f"{', '.join(_BEGINS[:-1])} or {_BEGINS[-1]}"
        raise BadStoreValue(
            f"a query begins with {begins}, not with {words[0] if words else 'nothing'!r}"
        )
    if ";" in bare:
        raise BadStoreValue("a query is one statement; send several one after the other")
    refused = _FILES.search(bare)
    if refused is not None:
        raise BadStoreValue(f"a query cannot use {' '.join(refused[0].upper().split())}")
    return statement
