"""Layers: the places that settings come from, and how a later one lies over an earlier one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, cast

from hookline.errors import ConfigError
from hookline.text.errors import TooComplex, TooLarge
from hookline.text.untrusted import load_toml, read_regular_file

from .secrets import is_secret

Origin = Literal["user", "profile", "project", "environment", "command line"]

PREFIX = "HOOKLINE_"
RESERVED = ("HOOKLINE_HOME", "HOOKLINE_PROFILE", "HOOKLINE_TRACE_PLUGINS")
"""Variables that are read elsewhere, and are no settings."""

TEXTS = ("model", "thinking")
"""Settings that are strings even if they look like a number."""

VALUES = (bool, int, float, str, list, dict)
"""The possible types of a setting; a date is not among them."""

LARGEST = 1_000_000
"""Bytes that a file of settings may have."""


class Layer:
    """The settings of one place; for the environment, with the variable of each dotted name."""

    __slots__ = ("origin", "path", "values", "variables")

    def __init__(
        self,
        origin: Origin,
        values: dict[str, Any],
        path: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.origin: Origin = origin
        self.values = values
        self.path = path
        self.variables = variables or {}

    def has(self, dotted: str) -> bool:
        """Whether the setting is here."""
        return find(self.values, dotted, MISSING) is not MISSING

    def label(self, dotted: str) -> str:
        """The source of a setting in this layer, for messages."""
        if self.origin == "environment":
            names = [
                n for at, n in self.variables.items() if at == dotted or at.startswith(dotted + ".")
            ]
            return f"environment {', '.join(names)}".rstrip()
        return str(self.path) if self.path is not None else self.origin


MISSING: Any = object()


def find(values: Mapping[str, Any], dotted: str, default: Any = None) -> Any:
    """The value of a dotted name."""
    found: Any = values
    for name in dotted.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return default
        found = cast("Mapping[str, Any]", found)[name]
    return found


def nested(dotted: str, value: Any) -> dict[str, Any]:
    """Tables in tables, with the value under its dotted name."""
    for name in reversed(dotted.split(".")):
        value = {name: value}
    return value


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both, as a copy: tables are merged, anything else of the later one stands."""
    result: dict[str, Any] = {name: deepcopy(value) for name, value in under.items()}
    for name, value in over.items():
        below = result.get(name)
        if isinstance(below, dict) and isinstance(value, Mapping):
            result[name] = merged(cast("dict[str, Any]", below), cast("Mapping[str, Any]", value))
        else:
            result[name] = deepcopy(value)
    return result


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting with its dotted name; an empty table is a setting too."""
    for name, value in values.items():
        dotted = f"{above}.{name}" if above else name
        if isinstance(value, Mapping) and value:
            yield from leaves(cast("Mapping[str, Any]", value), dotted)
        else:
            yield dotted, value


def read_file(path: Path) -> dict[str, Any] | None:
    """The settings of a file; None when there is none."""
    data = read_bytes(path)
    return None if data is None else parse_bytes(data, path)


def read_bytes(path: Path, largest: int = LARGEST) -> bytes | None:
    """The contents of a settings file, or None if there is none. A pipe or a device is refused."""
    try:
        return read_regular_file(path, largest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except TooLarge:
        text = f"{path} has more than {largest:,} bytes: this is no file of settings"
        raise ConfigError(text) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def parse_bytes(data: bytes, path: Path) -> dict[str, Any]:
    """Parse settings; errors name the path."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> dict[str, Any]:
    """Parse TOML; errors name their location."""
    import tomllib

    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        at = re.search(r" \(at line (\d+), column (\d+)\)", told)
        line = at[1] if at else str(text.count("\n") + 1)
        what = told.partition(" (at ")[0]
        raise ConfigError(f"{where}, line {line}: this is not TOML: {what}") from None
    except TooComplex as error:
        raise ConfigError(f"{where}: {error}") from None


def parse_value(dotted: str, text: str) -> Any:
    """Parse one value of the environment or the command line.

    It is read as TOML if it is valid TOML, and as a string otherwise. Names and secrets are always
    strings.
    """
    if dotted in TEXTS or is_secret(dotted) or "\n" in text:
        return text
    import tomllib

    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return cast("Any", value) if isinstance(value, VALUES) else text


def read_environment(environ: Mapping[str, str], below: Iterable[Mapping[str, Any]]) -> Layer:
    """The settings of `HOOKLINE_*`: two underscores go into a table.

    `below` are the settings that are there already: a name that has a hyphen or a capital there is
    found by its variable, in which neither can be told.
    """
    values: dict[str, Any] = {}
    variables: dict[str, str] = {}
    known = merged_all(below)
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in RESERVED:
            continue
        parts = variable.removeprefix(PREFIX).lower().split("__")
        if not all(parts):
            continue  # `HOOKLINE_`, `HOOKLINE___X`: no name at all
        dotted = ".".join(_spelled(parts, known))
        clash = next((at for at in variables if dotted.startswith(f"{at}.")), None)
        if clash is not None:
            raise ConfigError(
                f"{variables[clash]} and {variable} contradict each other: {clash} is either a value "
                "or a table; unset one of them"
            )
        variables[dotted] = variable
        values = merged(values, nested(dotted, parse_value(dotted, environ[variable])))
    return Layer("environment", values, variables=variables)


def merged_all(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All of them, each over the ones before it."""
    result: dict[str, Any] = {}
    for table in tables:
        result = merged(result, table)
    return result


def _spelled(parts: list[str], known: Mapping[str, Any]) -> Iterator[str]:
    table: Any = known
    for part in parts:
        names: Mapping[str, Any] = {}
        if isinstance(table, Mapping):
            names = cast("Mapping[str, Any]", table)
        alike = (name for name in names if name.lower().replace("-", "_") == part)
        name = next(alike, part)
        table = names.get(name)
        yield name
