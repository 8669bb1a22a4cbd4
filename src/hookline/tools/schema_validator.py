"""Validation of arguments against a JSON Schema that a stranger wrote, with an end in sight.

A schema can be a trap: references that double at every level, `pattern`s that backtrack, lists whose
items are compared each with each. So a schema has a size, patterns run on RE2, and the work that one
validation takes is counted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any, cast

from hookline.errors import SchemaTooLarge
from hookline.text.errors import PatternError
from hookline.text.patterns import Pattern

log = logging.getLogger(__name__)

MOST_NODES = 10_000
"""Lists, objects and values that a schema may have."""
DEEPEST = 64
"""Levels of a schema."""
MOST_WORK = 100_000
"""Keywords that are looked at in one validation; a second or so."""
COSTS = {"$ref": 20, "$dynamicRef": 20, "anyOf": 10, "oneOf": 10, "allOf": 5, "not": 5, "if": 5}
"""The cost of expensive keywords."""
MOST_ERRORS = 50
"""The errors of one set of arguments, as far as they are reported."""


class SchemaValidator:
    """A compiled schema. It never fetches references."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        check_schema(schema)
        registry: Any = import_module("jsonschema_specifications").REGISTRY
        self._validator: Any = _bounded(_kind(schema))(schema, registry=registry)

    def errors(self, instance: Any) -> list[Any]:
        """The errors of a value, at most this many."""
        before = _left.set([MOST_WORK])
        try:
            return [*islice(self._validator.iter_errors(instance), MOST_ERRORS)]
        except RecursionError:
            raise SchemaTooLarge("a reference of the schema leads back to itself") from None
        finally:
            _left.reset(before)


_left: ContextVar[list[int]] = ContextVar("_left")
"""The work left for the validation that runs in this thread or task."""


def _take(amount: int) -> None:
    left = _left.get()
    left[0] -= amount
    if left[0] < 0:
        raise SchemaTooLarge("checking them takes too long: the schema or the arguments are too large")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is none, or too large."""
    nodes = 0
    level: list[Any] = [schema]
    for _ in range(DEEPEST):
        nodes += len(level)
        if nodes > MOST_NODES:
            raise SchemaTooLarge(f"a schema may have {MOST_NODES:,} parts")
        level = [child for each in level for child in _children(each)]
        if not level:
            break
    else:
        raise SchemaTooLarge(f"a schema may be nested {DEEPEST} levels deep")
    _kind(schema).check_schema(schema)


def _children(value: Any) -> Any:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _kind(schema: Mapping[str, Any]) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for

    return validator_for(schema, default=Draft202012Validator)


@lru_cache(maxsize=16)
def _bounded(kind: Any) -> Any:
    """A validator class that counts its work and uses linear patterns."""
    from jsonschema import validators

    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        # Which properties others have evaluated is found by validating again, at every level.
        "unevaluatedProperties": _nothing,
        "unevaluatedItems": _nothing,
    }
    known: dict[str, Any] = {
        **kind.VALIDATORS,
        **{k: v for k, v in own.items() if k in kind.VALIDATORS},
    }
    return cast("Any", validators).extend(
        kind, {name: _counted(each, COSTS.get(name, 1)) for name, each in known.items()}
    )


def _counted(keyword: Any, cost: int) -> Any:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _take(cost + (len(cast("list[Any]", value)) >> 3 if isinstance(value, list | dict) else 0))
        if isinstance(instance, str | list | dict):  # an error shows the value that is wrong
            _take(len(cast("list[Any]", instance)) >> 10)
        return keyword(validator, value, instance, schema)

    return counted


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _pattern(validator: Any, value: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not finds(value, instance):
        yield _error(f"{instance[:200]!r} does not match {value!r}")


def _pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, part in value.items():
        for name, each in cast("dict[str, Any]", instance).items():
            _take(1)
            if finds(pattern, name):
                yield from validator.descend(each, part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra: list[str] = []
    for name in cast("dict[str, Any]", instance):
        _take(1 + len(patterns))
        if name not in properties and not any(finds(pattern, name) for pattern in patterns):
            extra.append(name)
    if isinstance(value, dict):
        for name in extra:
            yield from validator.descend(instance[name], value, path=name)
    elif value is False and extra:
        yield _error(f"additional properties are not allowed: {', '.join(map(repr, extra[:20]))}")


def _unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if value and isinstance(instance, list):
        items = cast("list[Any]", instance)
        _take(len(items))
        if len({json.dumps(each, sort_keys=True) for each in items}) < len(items):
            yield _error("the items are not all different")


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return cast("Any", ValidationError)(message)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern | None:
    try:
        return Pattern(pattern)
    except PatternError as error:
        log.warning("schema.pattern_not_checked: %s", error)
        return None


def finds(pattern: str, text: str) -> bool:
    """Whether a pattern of a schema occurs in a text.

    One that RE2 cannot run counts as found: the tool checks its own arguments, and a server whose
    schema asks for an e-mail address by lookahead stays usable.
    """
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None
