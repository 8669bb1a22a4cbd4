"""Slash commands: those that come with the chat, and those that plugins bring.

@hookimpl
def register_commands(self):
    return [SlashCommand("shelf", "Where a book stands.", lambda app, title: find(title))]
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hookline.hooks import HooklineError
from hookline.hooks.errors import suggestion

from .view import told

if TYPE_CHECKING:
    from hookline.app import Hookline

    from .session import Chat

Handler = Callable[["Hookline", str], "str | Awaitable[str | None] | None"]
"""Is given the app and what stands behind the command's name; gives what is shown."""

WRITTEN = re.compile(r"/([\w.:-]+)(?:\s+(.*))?", re.DOTALL)
NAME = re.compile(r"[\w.:-]+")


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command that a person may give in a chat, as `/name arguments`."""

    name: str
    help: str
    handler: Handler


class BadCommand(HooklineError, ValueError):
    """A command that is unknown, or that a plugin described wrongly."""


def written(text: str) -> tuple[str, str] | None:
    """The command and arguments of a message; None where it is none (`/etc/hosts` is a path)."""
    found = WRITTEN.fullmatch(text.rstrip())
    return (found[1], found[2] or "") if found else None


def command_from(given: Any) -> SlashCommand:
    """A command from an object or mapping with name, help and handler, or from a function.

    A function is named by its name and described by its docstring; one that takes a single argument
    is given what stands behind the command.
    """
    if isinstance(given, SlashCommand):
        return given
    if isinstance(given, Mapping):
        fields = cast("Mapping[str, Any]", given)
        name, help_, handler = fields.get("name"), fields.get("help"), fields.get("handler")
    elif inspect.isroutine(given):
        lines = (inspect.getdoc(given) or "").splitlines()
        name, help_, handler = given.__name__, lines[0] if lines else "", of_function(given)
    else:
        name, help_, handler = (getattr(given, field, None) for field in ("name", "help", "handler"))
    if not isinstance(name, str) or not NAME.fullmatch(name) or not callable(handler):
        raise BadCommand(f"a command needs a name and a handler that can be called, not {given!r}")
    return SlashCommand(name, str(help_ or ""), cast("Handler", handler))


def of_function(function: Callable[..., Any]) -> Handler:
    """A function as a handler."""
    if len(inspect.signature(function).parameters) >= 2:
        return function
    return lambda app, arguments: function(arguments)


def plugin_commands(app: Hookline) -> tuple[dict[str, SlashCommand], list[str]]:
    """The commands of plugins, and what went wrong; a plugin that describes one wrongly is left out."""
    before = len(app.failures)
    found = app.plugins.gather("register_commands", command_from, lambda c: c.name, "command")
    wrong = [f"{f.plugin}: {f.stage} failed: {told(f.error)}" for f in app.failures[before:]]
    return {command.name: command for command in found}, wrong


class Commands:
    """Every command of a chat; tools are looked up when they are called, they may come and go."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.gather()

    def gather(self) -> None:
        """Gather them, again where plugins may have changed."""
        from .builtin import builtin_commands
        from .sessions import session_commands

        brought, self.wrong = plugin_commands(self._chat.app)
        own = [*builtin_commands(self._chat, self), *session_commands(self._chat)]
        self.known = {command.name: command for command in own} | brought

    def names(self) -> list[tuple[str, str]]:
        """Everything that may follow a slash, with a line of help."""
        commands = [(command.name, command.help) for command in self.known.values()]
        return commands + [
            (tool.name, (tool.description or "a tool").splitlines()[0])
            for tool in self._chat.app.tools
            if tool.name not in self.known
        ]

    async def run(self, name: str, arguments: str) -> None:
        """Run a command or a tool and show what it gives."""
        chat = self._chat
        command = self.known.get(name)
        if command is not None:
            answer = command.handler(chat.app, arguments)
            shown = await answer if inspect.isawaitable(answer) else answer
            if shown:
                chat.view.say(str(shown))
        elif name in chat.app.tools:
            await chat.call_tool(name, arguments)
        else:
            known = [known for known, _ in self.names()]
            raise BadCommand(f"no command /{name}{suggestion(name, known)}; /help lists them")
