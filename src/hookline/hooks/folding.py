"""How results are put together: lists without repetition, dicts, renewed records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast


def unique_by(attribute: str | None) -> Callable[[list[Any], set[Any], Iterable[Any]], None]:
    """Add items to a list, each value of the attribute once."""

    def add(out: list[Any], seen: set[Any], items: Iterable[Any]) -> None:
        fresh: dict[Any, Any] = {}
        for item in items:
            fresh.setdefault(getattr(item, attribute or ""), item)
        for key, item in fresh.items():  # all of a list, or nothing
            if key not in seen:
                seen.add(key)
                out.append(item)

    return add


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put dicts together; later ones overwrite."""
    out: dict[str, Any] = {}
    for part in parts:
        out.update(part)
    return out


def merged_deep(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put dicts together, dicts inside them too; later ones overwrite."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            below = out.get(key)
            if isinstance(value, dict):
                out[key] = merged_deep(
                    cast("list[Any]", [below, value] if isinstance(below, dict) else [value])
                )
            else:
                out[key] = value
    return out


def renewing(attribute: str) -> Callable[[Any, Any], Any]:
    """Make a copy of an immutable record with one attribute changed."""

    def renew(record: Any, value: Any) -> Any:
        return record if record is None else replace(record, **{attribute: value})

    return renew
