"""Raw schemas: arguments checked against a JSON Schema that came with the tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from .context import ToolContext
from .faults import Fault, in_words, missing, unknown, wrong


class RawSignature:
    """A JSON Schema, compiled when it is first needed, and a function that gets what passed it."""

    def __init__(self, schema: Mapping[str, Any], function: Callable[..., Any] | None) -> None:
        self.schema = schema
        self._validator: Any = None
        self._context = _context_parameter(function) if function else None

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any] | list[Fault]:
        """The arguments as they came, or everything that is wrong with them."""
        if self.schema == {"type": "object"}:
            return dict(arguments)
        # jsonschema costs more to import than all of this package
        from jsonschema.exceptions import SchemaError
        from referencing.exceptions import Unresolvable

        try:
            if self._validator is None:
                from .schema_validator import SchemaValidator

                self._validator = SchemaValidator(self.schema)
            errors: list[Any] = sorted(self._validator.errors(dict(arguments)), key=_place)
        except SchemaError as error:
            return [f"arguments: the tool's own schema is not valid: {error.message}"]
        except ValueError as error:  # too large, or too much work
            return [f"arguments: {error}"]
        except Unresolvable as error:
            return [f"arguments: the tool's own schema refers to what it does not contain: {error}"]
        return [fault for error in errors for fault in _faults(error)] or dict(arguments)

    def bind(self, values: Mapping[str, Any], context: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by name, and the context where the function asks for it."""
        if self._context is None:
            return [], dict(values)
        if self._context.kind is Parameter.POSITIONAL_ONLY:
            return [context], dict(values)
        return [], {**values, self._context.name: context}


def _context_parameter(function: Callable[..., Any]) -> Parameter | None:
    try:
        parameters = signature(function, eval_str=True).parameters.values()
    except (NameError, TypeError, ValueError):  # no signature, or names that are not there: no context
        return None
    return next((p for p in parameters if p.annotation is ToolContext), None)


def _place(error: Any) -> list[str]:
    return [str(step) for step in error.absolute_path]


def _faults(error: Any) -> list[Fault]:
    field = _field(error.absolute_path)
    if error.validator == "required":
        absent = [name for name in error.validator_value if name not in error.instance]
        properties = error.schema.get("properties", {})
        return [missing(_under(field, name), in_words(properties.get(name))) for name in absent]
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = list(error.schema.get("properties", {}))
        patterns = error.schema.get("patternProperties", {})
        extra = [name for name in error.instance if name not in known and not _matches(name, patterns)]
        return [unknown(_under(field, name), known) for name in extra]
    return [wrong(field or "arguments", error.instance, _expectation(error))]


def _expectation(error: Any) -> str:
    value = error.validator_value
    match error.validator:
        case "type":
            return value if isinstance(value, str) else " or ".join(value)
        case "enum":
            return f"one of {', '.join(map(repr, value))}"
        case "anyOf" | "oneOf":
            return " or ".join(in_words(branch) for branch in value)
        case "const":
            return repr(value)
        case name:
            return f"{name} {value!r}"


def _matches(name: str, patterns: Mapping[str, Any]) -> bool:
    from .schema_validator import finds

    return any(finds(pattern, name) for pattern in patterns)


def _under(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _field(path: Any) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")
