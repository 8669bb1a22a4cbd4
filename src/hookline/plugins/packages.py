"""Finding plugins that installed packages bring along: the entry points of group `hookline`.

What ships with Hookline is declared in the same group of its own `pyproject.toml`. The files are read
directly: that costs a tenth of importing `importlib.metadata`, at every start.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

GROUP = "hookline"
MANIFESTS = "hookline.manifest"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
"""The folder of Hookline itself."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One entry point: `name = module:attribute`, and the distribution that declares it."""

    group: str
    name: str
    value: str
    distribution: str
    version: str
    info: str = ""
    """The folder with the metadata of the distribution."""
    own: bool = False
    """Whether it is one of Hookline's own."""

    @property
    def is_on_disk(self) -> bool:
        """Whether the file of the module of an own entry point exists."""
        return any(map(os.path.exists, (f"{self.path}.py", f"{self.path}/__init__.py")))

    @property
    def path(self) -> str:
        """Where the module of an own entry point is, without its ending."""
        return f"{PACKAGE}/{self.module.partition('.')[2].replace('.', '/')}"

    @property
    def module(self) -> str:
        """The module that it names."""
        return self.value.partition(":")[0].strip()

    @property
    def package(self) -> str:
        """The package that the module lies in; nothing for one that other distributions share."""
        package = self.module.rpartition(".")[0]
        return package if getattr(sys.modules.get(package), "__file__", None) else ""

    @property
    def attributes(self) -> list[str]:
        """The attribute within the module; empty for the module itself."""
        path = self.value.partition(":")[2].strip()
        return path.split(".") if path else []

    def load(self) -> Any:
        """Import the module and return the named attribute."""
        return self.named_in(import_module(self.module))

    def named_in(self, value: Any) -> Any:
        """The attribute within a module."""
        for attribute in self.attributes:
            value = getattr(value, attribute)
        return value

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()


def own_entries() -> list[EntryPoint]:
    """The entry points of Hookline itself.

    They come from the metadata beside the package that runs, or from the `pyproject.toml` of its
    checkout, since the metadata of an editable install goes stale. Whatever else calls itself
    `hookline` on the path is ignored: own plugins are not compared with the lock file.
    """
    above = os.path.dirname(PACKAGE)  # noqa: PTH120
    if os.path.basename(above) == "src":  # noqa: PTH119
        text = declared_in(f"{above}/../pyproject.toml")
        version = text.partition('\nversion = "')[2].partition('"')[0]
        return [*parsed(text, GROUP, version, above, own=True)]
    for name in names_in(above):
        distribution, _, version = name.removesuffix(".dist-info").partition("-")
        if distribution == GROUP and name.endswith(".dist-info"):
            text = declared_in(f"{above}/{name}/entry_points.txt")
            return [*parsed(text, GROUP, version, f"{above}/{name}", own=True)]
    return []


def entries() -> list[EntryPoint]:
    """The entry points of Hookline's groups, of every other installed distribution.

    Of two distributions with one name the first on the path counts, as it does for imports.
    """
    found: list[EntryPoint] = []
    seen: set[str] = {GROUP}
    for folder in dict.fromkeys(sys.path):
        for name in sorted(names_in(folder or ".")):
            stem, _, ending = name.rpartition(".")
            if ending not in ("dist-info", "egg-info"):
                continue
            text = declared_in(f"{folder or '.'}/{name}/entry_points.txt")
            if f"[{GROUP}" not in text:
                continue
            info = f"{folder or '.'}/{name}"
            distribution = normal(_name_in(info) or stem.partition("-")[0])
            if distribution in seen:
                continue
            seen.add(distribution)
            found += parsed(text, distribution.replace("_", "-"), stem.partition("-")[2], info)
    return found


def _name_in(info: str) -> str:
    """The name in a distribution's metadata, which installers check.

    The name of the folder may be spelled differently, and then an update would seem a new package.
    """
    text = declared_in(f"{info}/METADATA") or declared_in(f"{info}/PKG-INFO")
    found = re.search(r"(?im)^name:[ \t]*(\S+)", text.partition("\n\n")[0])
    return found[1] if found else ""


def names_in(folder: str) -> list[str]:
    """The names in a folder; empty if there is none, as in a zipped library."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (half the time of a Path, at every start)
    except OSError:
        return []


def declared_in(path: str) -> str:
    """A distribution's entry points; empty if it has no such file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def normal(distribution: str) -> str:
    """A distribution's name, however it is spelled."""
    return re.sub(r"[-_.]+", "_", distribution.lower())


def parsed(
    text: str, distribution: str, version: str, info: str, *, own: bool = False
) -> Iterator[EntryPoint]:
    """The entry points of our groups in an `entry_points.txt`, or in our own `pyproject.toml`."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.removeprefix("[project.entry-points.").strip('[]" ')
        elif group in (GROUP, MANIFESTS) and "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            value = value.partition("[")[0].strip(' "')  # without extras
            yield EntryPoint(group, name.strip(), value, distribution, version, info, own)


def made(value: Any, app: Any) -> object:
    """The plugin of an entry point: an object or module as it is, a class or factory called.

    A class or factory gets the app if it takes an argument.
    """
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return value
    factory = cast("Callable[..., object]", value)
    return factory(app) if takes_an_argument(factory) else factory()


def takes_an_argument(factory: Callable[..., Any]) -> bool:
    """Whether a factory wants the app."""
    parameters = inspect.signature(factory).parameters.values()
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
