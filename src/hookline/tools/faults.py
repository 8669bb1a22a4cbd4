"""Faults: errors in a call's arguments, one line for each field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from hookline.hooks.errors import suggestion

if TYPE_CHECKING:
    from pydantic import ValidationError

Fault: TypeAlias = str
_SHOWN = 80
_EXPECTATIONS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"^Input should be |^Value error, "), ""),
    (re.compile(r"^(\w+) should have "), lambda found: f"a {found[1].lower()} with "),
    (re.compile(r"^(\w+) should match "), lambda found: f"a {found[1].lower()} that matches "),
)


def missing(field: str, takes: str) -> Fault:
    """A field that must be there and is not."""
    return f"{field}: missing; it takes {takes}"


def unknown(field: str, known: Iterable[str]) -> Fault:
    """A field that there is not."""
    names = list(known)
    hint = suggestion(field.rpartition(".")[2], names)
    takes = f"; it takes {', '.join(names)}" if names else ""
    return f"{field}: unknown argument{hint or takes}"


def wrong(field: str, got: Any, takes: str) -> Fault:
    """A field with a value that it does not take."""
    return f"{field}: got {shown(got)}, takes {takes}"


def shown(value: Any) -> str:
    """A value short enough for a line."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def pydantic_faults(
    error: ValidationError, arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> list[Fault]:
    """A line for each field, with what every branch of a union would take."""
    lines: dict[str, Fault] = {}
    takes: dict[str, list[str]] = {}
    got: dict[str, Any] = {}
    for fault in error.errors(include_url=False, include_context=False):
        field = _field(fault["loc"], arguments, fault["type"])
        if fault["type"] == "missing":
            lines.setdefault(field, missing(field, _takes(schema, fault["loc"])))
        elif fault["type"] == "extra_forbidden":
            lines.setdefault(field, unknown(field, _names(schema, fault["loc"])))
        else:
            expected = takes.setdefault(field, [])
            text = _expectation(fault["msg"])
            if text not in expected:
                expected.append(text)
            got.setdefault(field, fault["input"])
            lines[field] = wrong(field, got[field], " or ".join(expected))
    return list(lines.values())


def _expectation(message: str) -> str:
    for said, meant in _EXPECTATIONS:
        message = said.sub(meant, message)
    return message


def _field(loc: tuple[int | str, ...], arguments: Any, kind: str) -> str:
    """The way to a value as its caller wrote it: without the names of a union's branches."""
    names: list[str] = []
    here: Any = arguments
    for position, step in enumerate(loc):
        try:
            here = here[step]
        except (LookupError, TypeError):
            if kind != "missing" or position < len(loc) - 1:
                continue
        names.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(names).removeprefix(".") or "arguments"


def _names(schema: Mapping[str, Any], loc: tuple[int | str, ...]) -> list[str]:
    return list(schema.get("properties", {})) if len(loc) == 1 else []


def _takes(schema: Mapping[str, Any], loc: tuple[int | str, ...]) -> str:
    described = schema.get("properties", {}).get(loc[0]) if len(loc) == 1 else None
    return in_words(described) if isinstance(described, Mapping) else "a value"


def in_words(schema: Any) -> str:
    """What a schema accepts, in a few words: `string (The file to read.)`."""
    if not isinstance(schema, Mapping):
        return "a value"
    of = cast("Mapping[str, Any]", schema)
    if "const" in of:
        kind = shown(of["const"])
    elif "enum" in of:
        kind = f"one of {', '.join(map(repr, of['enum']))}"
    elif "anyOf" in of:
        kind = " or ".join(in_words(branch) for branch in of["anyOf"])
    elif "$ref" in of:
        kind = str(of["$ref"]).rpartition("/")[2]
    else:
        kind = of.get("type", "a value")
        kind = kind if isinstance(kind, str) else " or ".join(map(str, kind))
    text = str(of.get("description", ""))
    return f"{kind} ({text})" if text else kind
