"""Typed answers: a Python type as the form of an answer, and the answer as a value of that type."""

from __future__ import annotations

import re
import sys
from inspect import isroutine
from types import UnionType
from typing import (
    Any,
    Generic,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import from_json

from hookline.errors import AgentUsage, OutputInvalid
from hookline.models.output import OutputSchema

T = TypeVar("T")

WRAPPED = "response"
"""The field of an answer that is no object itself, such as a list."""
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.S)


class OutputForm(Generic[T]):
    """The type of an answer: a dataclass, pydantic model, TypedDict, Literal, union or list."""

    def __init__(self, kind: Any) -> None:
        shown = getattr(kind, "__name__", None) or str(kind)
        try:
            if isroutine(kind):
                raise TypeError("it is a function")
            self._adapter: TypeAdapter[T] = TypeAdapter(readable(kind))
            schema = self._adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError, NameError) as error:
            why = str(error).partition(". ")[0].splitlines()[0]
            raise AgentUsage(
                f"output={shown} has no JSON schema: {why}; use a dataclass, "
                "a pydantic model, a TypedDict, a Literal, or a list or union of these"
            ) from error
        self.is_wrapped = schema.get("type") != "object"
        if self.is_wrapped:
            definitions = schema.pop("$defs", None)
            schema = {"type": "object", "properties": {WRAPPED: schema}, "required": [WRAPPED]}
            if definitions:
                schema["$defs"] = definitions
        name = re.sub(r"\W+", "_", shown).strip("_")[:64] or "answer"
        enforced = strict(schema)
        self.schema = OutputSchema(name, enforced or schema, strict=enforced is not None)

    def read(self, text: str) -> T:
        """The value that an answer stands for; raises `OutputInvalid` with what is wrong with it."""
        fenced = _FENCED.fullmatch(text)
        try:
            if not self.is_wrapped:
                return self._adapter.validate_json(fenced[1] if fenced else text)
            found = from_json(fenced[1] if fenced else text)
            return self._adapter.validate_python(self._unwrapped(found), strict=False)
        except ValidationError as error:
            raise invalid(error) from None
        except ValueError as error:
            raise OutputInvalid(f"it is not JSON: {error}") from None

    def value(self, data: Any) -> T:
        """Data, or a value, as the type of the answers; raises `OutputInvalid` if it does not fit."""
        try:
            return self._adapter.validate_python(data)
        except ValidationError as error:
            raise invalid(error) from None

    def partial(self, text: str) -> Any:
        """What is there of an answer that still comes in, as plain data; None if nothing is."""
        try:
            found = from_json(text, allow_partial="trailing-strings")
        except ValueError:
            return None
        return self._unwrapped(found) if self.is_wrapped else found

    def _unwrapped(self, found: Any) -> Any:
        is_wrapping = isinstance(found, dict) and [*cast("dict[str, Any]", found)] == [WRAPPED]
        return cast("Any", found[WRAPPED] if is_wrapping else found)


def readable(kind: Any) -> Any:
    """A type as pydantic reads it: before Python 3.12 it knows only the other `TypedDict`."""
    if sys.version_info >= (3, 12):
        return kind
    if is_typeddict(kind) and type(kind).__module__ == "typing":
        hints = {name: readable(each) for name, each in get_type_hints(kind).items()}
        fields = {
            name: hint if name in kind.__required_keys__ else NotRequired[hint]
            for name, hint in hints.items()
        }
        from typing_extensions import TypedDict

        make = cast("Any", TypedDict)
        return make(kind.__name__, fields)
    if get_origin(kind) in (list, Union, UnionType):
        readable_arguments = tuple(map(readable, get_args(kind)))
        container: Any = list if get_origin(kind) is list else Union
        return container[readable_arguments]
    return kind


def invalid(error: ValidationError) -> OutputInvalid:
    """What is wrong with a value, in one line."""
    wrong = [f"{place(each['loc'])}{each['msg']}" for each in error.errors()]
    return OutputInvalid("; ".join(wrong))


def place(path: tuple[int | str, ...]) -> str:
    """Where in an answer something is wrong."""
    return f"{'.'.join(map(str, path))}: " if path else ""


# --- strict mode ----------------------------------------------------------------------------------

KEPT = (
    "type", "title", "description", "enum", "const", "pattern", "multipleOf", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
)  # fmt: skip
"""What a provider enforces beside the structure. The rest is checked when the answer is read."""
FORMATS = (
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
)  # fmt: skip
SHAPES = ("type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const")


def strict(schema: Any) -> dict[str, Any] | None:
    """A schema in the subset that providers enforce strictly; None if it cannot be said in that.

    Every object is closed, and all its fields are required: a default is for people, not for models.
    """
    if not isinstance(schema, dict) or not any(name in schema for name in SHAPES):
        return None  # anything goes, which is no form
    table = cast("dict[str, Any]", schema)
    found: dict[str, Any] = {name: table[name] for name in KEPT if name in table}
    if table.get("format") in FORMATS:
        found["format"] = table["format"]
    if "$ref" in table:
        found = {"$ref": table["$ref"]}  # nothing may stand beside a reference
    parts: list[Any] = []
    if table.get("type") == "object":
        fields: dict[str, Any] = table.get("properties", {})
        if not fields or table.get("additionalProperties", False) is not False:
            return None
        found["properties"] = {name: strict(each) for name, each in fields.items()}
        found["required"], found["additionalProperties"] = list(fields), False
        parts += found["properties"].values()
    if table.get("type") == "array":
        found["items"] = None if "prefixItems" in table else strict(table.get("items"))
        parts.append(found["items"])
    for name in ("anyOf", "oneOf", "allOf"):
        if name in table:
            if name == "allOf" and len(table[name]) > 1:
                return None
            found["anyOf"] = [strict(each) for each in table[name]]
            parts += found["anyOf"]
    if "$defs" in table:
        found["$defs"] = {name: strict(each) for name, each in table["$defs"].items()}
        parts += found["$defs"].values()
    return None if None in parts else found
