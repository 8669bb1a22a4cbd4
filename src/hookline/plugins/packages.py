"""Finding plugins that installed packages bring along."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hookline"


def installed(group: str = GROUP) -> Iterator[tuple[str, Callable[[Any], object]]]:
    """Each installed plugin: its name, and what loads it for an app."""
    if not declared(group):
        return
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=group), key=lambda e: e.name):
        yield entry.name, loader(entry)


def declared(group: str) -> bool:
    """Whether any installed distribution declares entry points of this group.

    A look at the files costs a tenth of importing `importlib.metadata`, which most runs then spare.
    """
    heading = f"[{group}]".encode()
    for folder in dict.fromkeys(sys.path):
        for name in names_in(folder or "."):
            if not name.endswith("-info"):
                continue
            try:
                with open(f"{folder or '.'}/{name}/entry_points.txt", "rb") as file:  # noqa: PTH123
                    if heading in file.read():
                        return True
            except OSError:
                continue
    return False


def names_in(folder: str) -> list[str]:
    """The names in a folder; none where there is no such folder, as in a zipped library."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (half the time of a Path, at every start)
    except OSError:
        return []


def loader(entry: EntryPoint) -> Callable[[Any], object]:
    """An entry point's plugin: an object or module as it is, a class or factory called.

    A class or factory is given the app where it takes an argument.
    """

    def load(app: Any) -> object:
        value = entry.load()
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            return value
        factory = cast("Callable[..., object]", value)
        return factory(app) if takes_an_argument(factory) else factory()

    return load


def takes_an_argument(factory: Callable[..., Any]) -> bool:
    """Whether a factory wants the app."""
    parameters = inspect.signature(factory).parameters.values()
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
