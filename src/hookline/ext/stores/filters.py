"""Filters: which fields must have which values, the same for every store.

    {"year": 2024}                          equal; None: missing or null
    {"author.name": "Ada"}                  a field inside a field
    {"year": {"gte": 2020, "lt": 2030}}     ne, gt, gte, lt, lte; texts compare with texts only
    {"lang": {"in": ["en", "de"]}}          one of
    {"tags": {"contains": "new"}}           a list that has this value

All conditions must be met. A value is a text, a number, a truth value or None.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hookline.hooks.errors import suggestion

from .errors import BadStoreValue
from .values import text

_ORDERS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "gt": (">", operator.gt),
    "gte": (">=", operator.ge),
    "lt": ("<", operator.lt),
    "lte": ("<=", operator.le),
}
OPERATORS = ("eq", "ne", *_ORDERS, "in", "contains")
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """One thing that a field must meet."""

    path: tuple[str, ...]
    operator: str
    value: Any


def conditions(where: Mapping[str, Any] | None) -> list[FieldCondition]:
    """Parse a filter into conditions, or raise with the reason."""
    found: list[FieldCondition] = []
    for name, wanted in (where or {}).items():
        path = _path(name)
        asked = cast("Mapping[str, Any]", wanted if isinstance(wanted, Mapping) else {"eq": wanted})
        for operation, value in asked.items():
            found.append(FieldCondition(path, operation, _value(name, operation, value)))
    return found


def _path(name: Any) -> tuple[str, ...]:
    parts = tuple(text(name, "a field of the filter").split("."))
    if not all(parts) or any(c in '"\\' or c < " " for c in name):
        raise BadStoreValue(
            f"the filter names a field {name!r}; fields are names with dots between them"
        )
    return parts


def _value(name: str, operation: str, value: Any) -> Any:
    if operation not in OPERATORS:
        hint = suggestion(str(operation), OPERATORS) or f"; there are: {', '.join(OPERATORS)}"
        raise BadStoreValue(f"the filter on {name!r} has the unknown operator {operation!r}{hint}")
    if operation == "in":
        if not isinstance(value, list | tuple | set | frozenset):
            raise BadStoreValue(f"the filter on {name!r}: 'in' takes a list, not {value!r}")
        return [_scalar(name, each) for each in cast("list[Any]", value)]
    if operation in _ORDERS and (isinstance(value, bool) or not isinstance(value, int | float | str)):
        raise BadStoreValue(
            f"the filter on {name!r}: {operation!r} takes a number or a text, not {value!r}"
        )
    return _scalar(name, value)


def _scalar(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return text(value, f"the filter on {name!r}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and -_LARGEST <= value < _LARGEST:
        return value
    raise BadStoreValue(
        f"the filter on {name!r} takes a text, a number, a truth value or None, not {value!r}"
    )


# --- In Python ---


def met(wanted: list[FieldCondition], data: Any) -> bool:
    """Whether data meets all conditions."""
    return all(_meets(_field(data, each.path), each.operator, each.value) for each in wanted)


def _field(data: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        data = cast("dict[str, Any]", data).get(part) if isinstance(data, dict) else None
    return data


def _meets(present: Any, operation: str, value: Any) -> bool:
    if operation in _ORDERS:
        return _kind(present) == _kind(value) and _ORDERS[operation][1](present, value)
    if operation == "in":
        return any(_same(present, each) for each in value)
    if operation == "contains":
        listed = cast("list[Any]", present if isinstance(present, list) else [])
        return any(_same(each, value) for each in listed)
    return _same(present, value) is (operation == "eq")


def _same(present: Any, value: Any) -> bool:
    return _kind(present) == _kind(value) and present == value


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool | str):
        return type(value).__name__
    return "number" if isinstance(value, int | float) else "structure"


# --- In SQLite ---


def sql(wanted: list[FieldCondition], column: str) -> tuple[str, list[Any]]:
    """The same as ` AND …` for a WHERE clause, with its values."""
    clause = ""
    values: list[Any] = []
    for each in wanted:
        path = "$" + "".join(f'."{part}"' for part in each.path)
        part, more = _clause(each, column, path)
        clause += f" AND {part}"
        values += more
    return clause, values


def _clause(condition: FieldCondition, column: str, path: str) -> tuple[str, list[Any]]:
    operation, value = condition.operator, condition.value
    at, kind = f"json_extract({column}, ?)", f"json_type({column}, ?)"
    if operation in _ORDERS:
        kinds = "= 'text'" if isinstance(value, str) else "IN ('integer', 'real')"
        return f"({kind} {kinds} AND {at} {_ORDERS[operation][0]} ?)", [path, path, value]
    if operation == "in":
        parts = [_equal(at, kind, path, each) for each in value]
        joined = " OR ".join(part for part, _ in parts) or "0"
        return f"({joined})", [each for _, more in parts for each in more]
    if operation == "contains":
        part, more = _equal("each.value", "each.type", None, value)
        looked = f"SELECT 1 FROM json_each({column}, ?) AS each WHERE {part}"
        return f"({kind} IS 'array' AND EXISTS ({looked}))", [path, path, *more]
    part, more = _equal(at, kind, path, value)
    return (part, more) if operation == "eq" else (f"NOT {part}", more)


def _equal(at: str, kind: str, path: str | None, value: Any) -> tuple[str, list[Any]]:
    once: list[Any] = [] if path is None else [path]
    if value is None:
        return f"(coalesce({kind}, 'null') = 'null')", once
    if isinstance(value, bool):
        return f"(coalesce({kind}, '') = '{str(value).lower()}')", once
    kinds = "= 'text'" if isinstance(value, str) else "IN ('integer', 'real')"
    return f"(coalesce({kind}, '') {kinds} AND {at} = ?)", [*once, *once, value]
