"""Options before the command: they decide which plugins load, so they are read first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def early(arguments: Sequence[str]) -> dict[str, Any]:
    """`--profile`, `--no-project`, `--set` and `--without` of the root command, as the app takes them.

    The command line is built from what plugins bring, and cannot be parsed before they are loaded;
    it parses these options again, and refuses what is wrong with them.
    """
    found: dict[str, Any] = {}
    chosen: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option == "--no-project":
            found["project"] = False
        elif option in ("--profile", "--set", "--without"):
            if not equals:
                value = rest.pop(0) if rest else ""
            if option == "--profile":
                found["profile"] = value
            elif option == "--without":
                found.setdefault("without", []).append(value)
            else:
                chosen.append(value)
    if chosen:
        found["overrides"] = overrides(chosen)
    return found


def overrides(chosen: Sequence[str]) -> dict[str, Any]:
    """The tables that `--set KEY=VALUE` says."""
    from hookline.config import ConfigError
    from hookline.config.layers import merged, nested, parse_value

    tables: dict[str, Any] = {}
    for each in chosen:
        key, equals, value = each.partition("=")
        if not equals or not all(key.split(".")):
            raise ConfigError("--set takes KEY=VALUE, such as --set limits.steps=20")
        tables = merged(tables, nested(key, parse_value(key, value)))
    return tables
