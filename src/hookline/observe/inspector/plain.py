"""Records for the page: long texts shortened, and differences as lines."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from hookline.text.foreign_json import parse_json
from hookline.text.line_diff import line_diff

from ..trace.why import brief, parsed

LONGEST: Final = 20_000
"""Characters of one text that are shown."""
MOST: Final = 500
"""Items of one list that are shown."""


def plain(value: Any, longest: int = LONGEST) -> Any:
    """JSON with long texts and lists shortened, and a note where that was done."""
    if isinstance(value, str):
        return cut(value, longest)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        shown = [plain(each, longest) for each in items[:MOST]]
        return shown if len(items) <= MOST else [*shown, f"… {len(items) - MOST:,} more"]
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {cut(name, 200): plain(each, longest) for name, each in named.items()}
    return value


def cut(text: str, longest: int = LONGEST) -> str:
    """A text shortened if it is too long, and without halves of surrogate pairs."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # a half has no UTF-8, and no place in a page
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left:,} more characters)"


def diff_of(before: Any, after: Any) -> str:
    """What changed from one value to the other, as a unified diff; empty when nothing did."""
    old, new = lines_of(before), lines_of(after)
    return "\n".join(line_diff(old, new, ("before", "after"), end="", context=2))


def lines_of(value: Any) -> list[str]:
    """A value in lines, its keys sorted; a text that is JSON is read first, as arguments are."""
    shown = plain(value)
    if isinstance(shown, str):
        try:
            shown = parse_json(shown)
        except ValueError:
            return shown.splitlines()
    return json.dumps(shown, indent=2, ensure_ascii=False, sort_keys=True).splitlines()


def in_few_words(arguments: Any) -> str:
    """The arguments of a call, to tell it from others: the value alone if there is one."""
    given = parsed(arguments)
    values = [*cast("dict[str, Any]", given).values()] if isinstance(given, dict) else []
    shown: Any = values[0] if len(values) == 1 else cast("Any", given)
    return brief(shown, 80) if shown else ""
