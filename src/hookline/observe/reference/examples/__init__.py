"""One small, working implementation of every hook and event, for the reference and for copying.

The plugins are what somebody might write: each class serves one purpose, and takes of each hook only
the parameters it needs. Those that touch files are given the directory they work in.
"""

from collections.abc import Callable, Iterator
from inspect import getsource
from textwrap import dedent
from types import ModuleType
from typing import Any

from hookline.hooks.plugins import PROJECT
from hookline.hookspecs import CATALOG

from . import agent, gateway, message, misc, model, plugin, session, subagent, tool, trigger, turn


def implementations(plugin: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of a plugin class that are marked, each with the name of its hook."""
    for name, function in vars(plugin).items():
        options = getattr(function, f"{PROJECT}_impl", None)
        if options is not None:
            yield options["specname"] or name, function


def plugins(module: ModuleType) -> Iterator[type]:
    """Yield the plugin classes that a module defines."""
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and value.__module__ == module.__name__
            and any(implementations(value))
        ):
            yield value


MODULES = (turn, plugin, tool, gateway, session, agent, message, model, subagent, misc, trigger)
PLUGINS = tuple(found for module in MODULES for found in plugins(module))
_found = dict(found for plugin in PLUGINS for found in implementations(plugin))

EXAMPLES: dict[str, Callable[..., Any]] = {name: _found[name] for name in CATALOG if name in _found}
"""By hook, in the order of the catalogue."""


def example_source(name: str) -> str:
    """The text of a hook's example, as it would stand in a class."""
    return dedent(getsource(EXAMPLES[name]))
