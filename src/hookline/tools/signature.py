"""Signature: a function's parameters as a schema for the model, and back from JSON to values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from hookline.hooks.errors import DeclarationError, error_text

from .context import ToolContext
from .docstrings import parse_docstring
from .faults import Fault, pydantic_faults

_PREFIX = "arg_"  # a parameter may be named like an attribute of the model: schema, copy, json


class _Schema(GenerateJsonSchema):
    """JSON Schema without titles, which say nothing that the names do not."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Signature:
    """The parameters that a model sets, those that are injected, and the description."""

    def __init__(self, function: Callable[..., Any], name: str, names: Mapping[str, Any]) -> None:
        self.name = name
        parameters = _parameters(function, name)
        hints = _hints(function, name, names)
        self.context = next((p for p in parameters if _is_context(hints.get(p))), None)
        self.positional = tuple(
            p for p, kind in parameters.items() if kind.kind is inspect.Parameter.POSITIONAL_ONLY
        )
        taken = {p: kind for p, kind in parameters.items() if p != self.context}
        self.description, texts = parse_docstring(inspect.getdoc(function), taken)
        try:
            self._model = _model(name, taken, hints, texts)
            self.schema = _schema(self._model)
        except (PydanticUserError, TypeError, ValueError) as error:
            raise DeclarationError(
                f"the tool {name!r} has a parameter that no JSON value can fill: {error_text(error)}"
            ) from error
        streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        self.output_schema = {} if streams else _output_schema(hints.get("return"))
        self._fields = tuple((p, _PREFIX + p) for p in taken)

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any] | list[Fault]:
        """The function's arguments from JSON values, or everything that is wrong with them."""
        try:
            filled = self._model.model_validate(arguments)
        except ValidationError as error:
            try:
                filled = self._from_json(arguments, error)
            except ValidationError as error:
                return pydantic_faults(error, arguments, self.schema)
        return {parameter: getattr(filled, field) for parameter, field in self._fields}

    def _from_json(self, arguments: Mapping[str, Any], error: ValidationError) -> BaseModel:
        """Try once more as JSON: a strict model takes a date from text there, and nowhere else."""
        import json

        try:
            text = json.dumps(arguments)
        except (TypeError, ValueError, RecursionError):
            raise error from None
        return self._model.model_validate_json(text)

    def bind(self, values: Mapping[str, Any], context: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        """Values and the context as the function is called with them."""
        by_name = dict(values)
        if self.context is not None:
            by_name[self.context] = context
        return [by_name.pop(name) for name in self.positional], by_name


def _parameters(function: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"the tool {name!r} has no signature to read: {error}") from error
    first = next(iter(parameters.values()), None)
    if first is not None and first.name in {"self", "cls"} and first.annotation is first.empty:
        raise DeclarationError(
            f"the tool {name!r} is a method without its object; make a tool of the bound method: "
            f"tool(thing.{name})"
        )
    for parameter in parameters.values():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise DeclarationError(
                f"the tool {name!r} takes {parameter}: a model must be told every parameter by name"
            )
    return parameters


def _hints(function: Callable[..., Any], name: str, names: Mapping[str, Any]) -> dict[str, Any]:
    target: Any = function
    while hasattr(target, "func"):  # a partial has the hints of what it completes
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return get_type_hints(target, localns=dict(names), include_extras=True)
    except NameError as error:
        raise DeclarationError(
            f"the tool {name!r} has an annotation that cannot be resolved: {error}; "
            "import the name where the tool is declared, not under TYPE_CHECKING"
        ) from error
    except TypeError as error:
        raise DeclarationError(
            f"the tool {name!r} has an annotation that is no type: {error}"
        ) from error


def _is_context(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return hint is ToolContext or ToolContext in get_args(hint)


def _model(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
    texts: Mapping[str, str],
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter, declared in parameters.items():
        default = ... if declared.default is declared.empty else declared.default
        kind = _field_type(parameter, hints.get(parameter, Any), texts.get(parameter))
        fields[_PREFIX + parameter] = (kind, default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _field_type(parameter: str, hint: Any, text: str | None) -> Any:
    """The annotation with its description: the author's own, or else the docstring's."""
    metadata: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        metadata = tuple(Field(description=m) if isinstance(m, str) else m for m in rest)
    described = (Field(description=text),) if text else ()
    kind: Any = hint
    for extra in (*described, *metadata, Field(alias=parameter)):
        kind = Annotated[kind, extra]
    return kind


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, schema_generator=_Schema)
    schema.pop("title", None)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _output_schema(hint: Any) -> dict[str, Any]:
    """What the function says it returns, as far as that has a schema."""
    if hint is None or hint is type(None) or hint is Any:
        return {}
    try:
        schema = TypeAdapter(hint).json_schema(mode="serialization", schema_generator=_Schema)
    except Exception:  # a generator, parts, anything: the schema is a courtesy
        return {}
    schema.pop("title", None)
    return schema
