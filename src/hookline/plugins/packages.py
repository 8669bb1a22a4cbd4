"""Finding plugins that installed packages bring along."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

GROUP = "hookline"


def installed(group: str = GROUP) -> Iterator[tuple[str, Callable[[Any], object]]]:
    """Each installed plugin: its name, and what loads it for an app."""
    for entry in sorted(entry_points(group=group), key=lambda e: e.name):
        yield entry.name, loader(entry)


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
