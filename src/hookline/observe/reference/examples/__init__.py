"""One small, working implementation of every hook and event, for the reference and for copying.

The plugins are what somebody might write: each class serves one purpose, and takes of each hook only
the parameters it needs. Those that touch files are given the directory they work in.
"""

from collections.abc import Callable, Iterator
from inspect import getsource
from textwrap import dedent
from typing import Any

from hookline.hooks.plugins import PROJECT
from hookline.hookspecs import CATALOG

from . import agent, gateway, message, misc, model, plugin, session, subagent, tool, trigger, turn

PLUGINS: tuple[type, ...] = (
    turn.Threads, turn.Parrot, turn.Canned, turn.Mailer, turn.House,
    plugin.Library, plugin.OfficeHours,
    tool.Workspace, tool.Patience, tool.Stopwatch,
    gateway.Voice, gateway.Watch,
    session.Project, session.Librarian,
    agent.Manners, agent.Diary,
    message.Ticker,
    model.Budget,
    subagent.Foreman,
    misc.Desk,
    trigger.Hourly,
)  # fmt: skip


def implementations(plugin: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods of a plugin class that are marked, each with the name of its hook."""
    for name, function in vars(plugin).items():
        options = getattr(function, f"{PROJECT}_impl", None)
        if options is not None:
            yield options["specname"] or name, function


_found = dict(found for plugin in PLUGINS for found in implementations(plugin))

EXAMPLES: dict[str, Callable[..., Any]] = {name: _found[name] for name in CATALOG}
"""By hook, in the order of the catalogue."""


def example_source(name: str) -> str:
    """The text of a hook's example, as it would stand in a class."""
    return dedent(getsource(EXAMPLES[name]))
