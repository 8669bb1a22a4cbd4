"""JSON that somebody else wrote: a model, a server, a webhook, a file of a repository.

    parse_json('{"a": [1, 2]}')       # {'a': [1, 2]}
    parse_json("[" * 500)             # ForeignJsonError: JSON may be nested 128 levels deep

Deep nesting is cheap to write and costs whoever walks through it later: Python's own recursion limit
would end a turn, or a session that kept it. So it is refused where it comes in.
"""

from __future__ import annotations

import json
from typing import Any, cast

from hookline.text.errors import ForeignJsonError

DEEPEST = 128
"""Levels of lists and objects within each other."""


def parse_json(text: str | bytes, *, largest: int | None = None, deepest: int = DEEPEST) -> Any:
    """The value of a JSON text. A text that is none, too long or too deep is a ValueError."""
    if largest is not None and len(text) > largest:
        raise ForeignJsonError(f"JSON may have {largest:,} characters; this has {len(text):,}")
    try:
        value: Any = json.loads(text)
    except RecursionError:
        raise _too_deep(deepest) from None
    check_depth(text, value, deepest)
    return value


def check_depth(text: str | bytes, value: Any, deepest: int = DEEPEST) -> None:
    """Refuse a value that was parsed from a text and is nested too deep."""
    if len(text) < 2 * deepest:  # each level opens and closes
        return
    is_text = isinstance(text, str)
    opened = text.count("[") + text.count("{") if is_text else text.count(b"[") + text.count(b"{")
    if opened > deepest and is_deeper(value, deepest):
        raise _too_deep(deepest)


def is_deeper(value: Any, deepest: int = DEEPEST) -> bool:
    """Whether lists and objects are nested deeper than that; walked level by level."""
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(deepest):
        if not level:
            return False
        level = [child for held in level for child in _children(held) if isinstance(child, dict | list)]
    return bool(level)


def _children(held: Any) -> Any:
    return cast("dict[str, Any]", held).values() if isinstance(held, dict) else held


def _too_deep(deepest: int) -> ForeignJsonError:
    return ForeignJsonError(f"JSON may be nested {deepest} levels deep")
