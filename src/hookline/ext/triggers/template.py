"""Message templates: `Order {order.id}: {order.total}`.

A name in braces is a way through the payload: keys of tables and numbers of lists, nothing else. No
attribute is read and nothing is called, so a payload from anywhere can fill any template. `{.}` is the
whole payload as JSON, `{{` and `}}` are braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from .errors import TemplateError

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"\.|[\w-]+(\.[\w-]+)*")


class Template:
    """A text with fields of a payload in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        for found in _PIECE.finditer(text):
            if found[0] in ("{", "}"):
                raise TemplateError(
                    f"a single {found[0]!r} at character {found.start() + 1}: write it twice for a "
                    "brace, or close the field"
                )
            if found[1] is not None and not _FIELD.fullmatch(found[1]):
                raise TemplateError(
                    f"{found[0]!r} is no field: write names with dots between them, such as "
                    "{order.id}, or {.} for the whole payload"
                )

    def fill(self, payload: Any) -> str:
        """The text for a payload; a field that it does not have is an error that names it."""

        def value(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][0]
            return shown(payload if found[1] == "." else lookup(payload, found[1]))

        return _PIECE.sub(value, self.text)

    def __repr__(self) -> str:
        return f"Template({self.text!r})"


def lookup(payload: Any, dotted: str) -> Any:
    """The value at a path of the payload."""
    value = payload
    for number, name in enumerate(dotted.split("."), start=1):
        if isinstance(value, Mapping) and name in value:
            value = cast("Mapping[str, Any]", value)[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(name)]
        else:
            at = ".".join(dotted.split(".")[:number])
            raise TemplateError(f"the payload has no field {at!r}, which the template needs")
    return value


def shown(value: Any) -> str:
    """A value in a message: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
