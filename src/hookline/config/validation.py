"""Checking: settings against a pydantic model, with every fault under the name it is written by.

Plain pydantic is enough here. `pydantic-settings` would read files and the environment a second time,
without telling which of them set a value, and cost its import at every start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from hookline.hooks.errors import suggestion


@dataclass(frozen=True, slots=True)
class SettingError:
    """An error in one setting. The text never shows the value, which may be a secret."""

    dotted: str
    text: str


def form_of(declared: type[BaseModel] | str) -> type[BaseModel] | None:
    """The model of a section that was declared, imported if it was declared by its name."""
    if not isinstance(declared, str):
        return declared
    from importlib import import_module
    from operator import attrgetter

    module, _, name = declared.partition(":")
    try:
        return attrgetter(name)(import_module(module)) if declared else None
    except ImportError:  # a library is missing, which the code that reads the section says
        return None


def faults(model: type[BaseModel], values: Mapping[str, Any], above: str) -> list[SettingError]:
    """Everything that is wrong with a section; unknown keys come with the nearest names."""
    found = list(_unknown(model, values, above))
    known = {fault.dotted for fault in found}
    try:
        model.model_validate(values)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False, include_context=False):
            dotted = ".".join([above, *(str(part) for part in each["loc"])])
            if dotted not in known and each["type"] != "extra_forbidden":
                found.append(SettingError(dotted, _plain(each["msg"])))
    return found


def secrets(model: type[BaseModel], above: str) -> Iterator[str]:
    """The dotted names of the fields that are declared secret; `*` for any key of a table."""
    for name, field in model.model_fields.items():
        dotted = f"{above}.{field.alias or name}"
        for kind, table in _kinds(field.annotation):
            at = f"{dotted}.*" if table else dotted
            if kind in (SecretStr, SecretBytes):
                yield at
            elif issubclass(kind, BaseModel) and kind is not model:
                yield from secrets(kind, at)


def _unknown(model: type[BaseModel], values: Mapping[str, Any], above: str) -> Iterator[SettingError]:
    """Keys that no field has. A model that takes any key is not asked; one that ignores them is."""
    named = {field.alias or name: field for name, field in model.model_fields.items()}
    names = {*named, *model.model_fields}
    for name, value in values.items():
        dotted = f"{above}.{name}"
        if name not in names:
            if model.model_config.get("extra") != "allow":
                yield SettingError(dotted, f"unknown key {name!r}{suggestion(name, names)}")
            continue
        field = named.get(name) or model.model_fields[name]
        for kind, table in _kinds(field.annotation):
            if not issubclass(kind, BaseModel) or not isinstance(value, Mapping):
                continue
            within = cast("Mapping[str, Any]", value)
            for key, each in within.items() if table else ((None, within),):
                if isinstance(each, Mapping):
                    at = dotted if key is None else f"{dotted}.{key}"
                    yield from _unknown(kind, cast("Mapping[str, Any]", each), at)


def _kinds(annotation: Any, table: bool = False) -> Iterator[tuple[type, bool]]:
    """The classes in an annotation, and whether each is the value of a `dict[str, …]`."""
    origin = get_origin(annotation)
    if origin is None:
        if isinstance(annotation, type):
            yield annotation, table
        return
    arguments = get_args(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        yield from _kinds(arguments[1], True)
    elif not (isinstance(origin, type) and issubclass(origin, list | tuple | set)):
        for each in arguments:  # a union, or `Annotated`, whose other arguments are no classes
            yield from _kinds(each, table)


def _plain(message: str) -> str:
    """Pydantic's sentence as one of ours: `must be a valid integer`."""
    message = message.removeprefix("Value error, ")
    return message.replace("Input should be", "must be", 1)
