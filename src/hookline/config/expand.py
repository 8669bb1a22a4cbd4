"""`${VAR}` in settings: filled in from the environment when a setting is used, never before."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from hookline.errors import ConfigError

# Compiled when first used, as all patterns of this part: most starts need none of them.
_REFERENCE = r"\$\$|\$\{([^}]*)\}?"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*\Z"


def expand(value: Any, environ: Mapping[str, str] | None = None, *, where: str = "") -> Any:
    """The value with every `${VAR}` in its texts filled in; `$$` stands for one dollar.

    Tables and lists are walked. A variable that is not set is an error that names it; what a variable
    holds is taken as it is. `where` is told in the error.

        expand({"url": "http://${HOST}/"}, {"HOST": "localhost"})  # {"url": "http://localhost/"}
    """
    environ = os.environ if environ is None else environ
    if isinstance(value, str):
        return _filled(value, environ, where) if "$" in value else value
    if isinstance(value, Mapping):
        return {
            name: expand(each, environ, where=f"{where}.{name}" if where else str(name))
            for name, each in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list):
        return [expand(each, environ, where=where) for each in cast("list[Any]", value)]
    return value


def _filled(text: str, environ: Mapping[str, str], where: str) -> str:
    def fill(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name = found[1]
        if not found[0].endswith("}") or not re.match(_NAME, name):
            place = f" in {where}" if where else ""
            raise ConfigError(
                f"a reference to a variable{place} is written ${{NAME}}, and a dollar sign before a "
                "brace $${"
            )
        if name not in environ:
            place = f" ({where})" if where else ""
            raise ConfigError(
                f"the environment variable {name} is not set, and the configuration refers to it as "
                f"${{{name}}}{place}: set it, or write the value itself"
            )
        return environ[name]

    return re.sub(_REFERENCE, fill, text)


class Expanded(Mapping[str, Any]):
    """A table whose references are expanded when read.

    Unused values need no variable: the key of one provider may be missing while another is used.
    """

    def __init__(self, values: Mapping[str, Any], environ: Mapping[str, str], where: str) -> None:
        self._values = values
        self._environ = environ
        self._where = where

    def __getitem__(self, name: str) -> Any:
        return expand(self._values[name], self._environ, where=f"{self._where}.{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
