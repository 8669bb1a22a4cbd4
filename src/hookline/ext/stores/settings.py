"""A store's configuration against its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from hookline.hooks.errors import suggestion

from .errors import StoreMisconfigured


def check(store: str, config: dict[str, Any], schema: Mapping[str, Any], whose: str) -> None:
    """Refuse a configuration that violates the schema. Values are not shown: they may be secrets."""
    if not schema:
        return
    from jsonschema import Draft202012Validator, SchemaError, exceptions

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise StoreMisconfigured(
            store, f"the config_schema of {whose} is not a JSON Schema: {error.message}"
        ) from None
    validator, library = cast("Any", Draft202012Validator(schema)), cast("Any", exceptions)
    wrong = library.best_match(validator.iter_errors(config))  # whose types are not known
    if wrong is not None:
        where = ".".join(["stores", store, *map(str, wrong.absolute_path)])
        raise StoreMisconfigured(store, f"{where} {_told(wrong)} (schema of {whose})")


def _told(wrong: Any) -> str:
    expected = wrong.validator_value
    match wrong.validator:
        case "required":
            missing = [name for name in expected if name not in wrong.instance]
            return f"needs {' and '.join(map(repr, missing))}"
        case "additionalProperties" if expected is False:
            known = wrong.schema.get("properties", {})
            unknown = next(name for name in wrong.instance if name not in known)
            return f"has the unknown key {unknown!r}{suggestion(unknown, known)}"
        case "type":
            return f"must be of type {expected}, not {_type(wrong.instance)}"
        case "enum":
            return f"must be one of {', '.join(map(repr, expected))}"
        case _:
            return f"does not meet {wrong.validator} {expected!r}"


def _type(value: object) -> str:
    return _TYPES.get(type(value), "null")


_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
