"""Slash commands: what a person asks of the app itself, as `/name arguments`, in a chat or a channel.

@hookimpl
def register_commands(self):
    return [SlashCommand("shelf", "Where a book stands.", lambda ctx, title: find(title))]

Every tool is a command too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import BadInput
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text, suggestion

if TYPE_CHECKING:
    from hookline.types import HookContext

    from .app import Hookline

Handler = Callable[["HookContext", str], "str | Awaitable[str | None] | None"]
"""Gets the context (session, channel, sender, app) and what follows the command's name; returns what
to show."""

WRITTEN = r"(?s)/([\w.:-]+)(?:\s+(.*))?"
NAME = r"[\w.:-]+"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command that a person may give in a chat or a channel, as `/name arguments`."""

    name: str
    help: str
    handler: Handler
    operator: bool = True
    """Whether a channel lets operators alone give it."""


def written(text: str) -> tuple[str, str] | None:
    """The command and arguments of a message, or None if it is no command (`/etc/hosts` is a path)."""
    found = re.fullmatch(WRITTEN, text.rstrip())
    return (found[1], found[2] or "") if found else None


def command_from(given: Any) -> SlashCommand:
    """A command from an object or mapping with name, help and handler, or from a function.

    A function is named by its name and described by its docstring; one with a single parameter gets
    only what follows the command.
    """
    if isinstance(given, SlashCommand):
        return given
    if isinstance(given, Mapping):
        fields = cast("Mapping[str, Any]", given)
        name, help_, handler = fields.get("name"), fields.get("help"), fields.get("handler")
        operator = fields.get("operator", True)
    elif inspect.isroutine(given):
        lines = (inspect.getdoc(given) or "").splitlines()
        name, help_, handler = given.__name__, lines[0] if lines else "", of_function(given)
        operator = True
    else:
        name, help_, handler = (getattr(given, field, None) for field in ("name", "help", "handler"))
        operator = getattr(given, "operator", True)
    if not isinstance(name, str) or not re.fullmatch(NAME, name) or not callable(handler):
        raise BadInput(f"a command needs a name and a handler that can be called, not {given!r}")
    return SlashCommand(name, str(help_ or ""), cast("Handler", handler), bool(operator))


def of_function(function: Callable[..., Any]) -> Handler:
    """A function as a handler."""
    if len(inspect.signature(function).parameters) >= 2:
        return function
    return lambda ctx, arguments: function(arguments)


def plugin_commands(app: Hookline) -> tuple[dict[str, SlashCommand], list[str]]:
    """The commands of plugins, and what went wrong; a plugin that describes one wrongly is left out."""
    before = len(app.failures)
    found = app.plugins.gather("register_commands", command_from, lambda c: c.name, "command")
    wrong = [f"{f.plugin}: {f.stage} failed: {_reason(f.error)}" for f in app.failures[before:]]
    return {command.name: command for command in found}, wrong


def _reason(error: BaseException) -> str:
    text = str(error) if isinstance(error, HooklineError) else error_text(error)
    return " ".join(text.split())


def configured_models(app: Hookline) -> list[str]:
    """The models that the user's settings name: the default, `[agents]`, and `[gateway] models`.

    Any other name may load a file or connect to an address, which a message must not cause.
    """
    agents: dict[str, Any] = app.config.own("agents")
    listed: Any = app.config.own("gateway").get("models")
    found: list[Any] = [app.model]
    found += [each.get("model") for each in map(_table, agents.values())]
    found += cast("list[Any]", listed) if isinstance(listed, list) else []
    return [*dict.fromkeys(name for name in found if isinstance(name, str) and name)]


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def session_commands(models: Callable[[], list[str]] | None = None) -> list[SlashCommand]:
    """Commands about the current session, the same on every channel.

    With `models`, only those can be chosen; without, any known model.
    """

    async def compact(ctx: HookContext, instructions: str) -> str:
        entry = await ctx.app.sessions.compact(ctx.session_id, instructions.strip() or None)
        if entry is None:
            return "there is nothing to compact"
        return f"compacted. The model goes on from:\n{entry.payload['summary'] or ''}"

    async def model(ctx: HookContext, wanted: str) -> str:
        app: Hookline = ctx.app
        present, name = await app.sessions.find_model(ctx.session_id), wanted.strip()
        if name and models is not None and name not in models():
            raise BadInput(
                f"only configured models can be chosen here: {', '.join(models())}; "
                "an operator lists more in [gateway] models"
            )
        if name:
            await app.sessions.choose_model(ctx.session_id, name)
            return f"the model of this session is {name} now"
        if models is not None:
            return "\n".join([f"the model is {present}", *(f"  {each}" for each in models())])
        others = [f"  {m.name}: {m.summary if m.usable else m.reason}" for m in app.models.available()]
        return "\n".join([f"the model is {present}", *others])

    async def think(ctx: HookContext, level: str) -> str:
        sessions = ctx.app.sessions
        if level.strip():
            await sessions.choose_thinking(ctx.session_id, level.strip())
        await sessions.open(ctx.session_id)
        return f"thinking: {sessions.thinking_of(ctx.session_id) or 'as the model does by itself'}"

    return [
        SlashCommand("compact", "Summarise the older part: /compact [what to keep].", compact, False),
        SlashCommand("model", "Show the model, or choose another: /model NAME.", model),
        SlashCommand("think", "Have the model think more or less: /think LEVEL.", think, False),
    ]


def names(
    app: Hookline, known: Mapping[str, SlashCommand], *, tools: bool = True
) -> list[tuple[str, str]]:
    """Everything that may follow a slash, commands and tools, each with a line of help."""
    commands = [(command.name, command.help) for command in known.values()]
    if not tools:
        return commands
    return commands + [
        (tool.name, (tool.description or "a tool").splitlines()[0])
        for tool in app.tools
        if tool.name not in known
    ]


async def run(
    ctx: HookContext,
    known: Mapping[str, SlashCommand],
    name: str,
    arguments: str,
    call_tool: Callable[[str, str], Awaitable[str | None]],
) -> str | None:
    """Run a command, or the tool of this name; return what to show.

    Tools are looked up when they are called: they may come and go.
    """
    app, command = ctx.app, known.get(name)
    if command is not None:
        answer = command.handler(ctx, arguments)
        shown = await answer if inspect.isawaitable(answer) else answer
        return str(shown) if shown else None
    if name in app.tools:
        return await call_tool(name, arguments)
    every = [each for each, _ in names(app, known)]
    raise BadInput(f"no command /{name}{suggestion(name, every)}; /help lists them")
