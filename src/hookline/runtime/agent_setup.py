"""How an agent becomes an app: embedded, or with a home; and the commands that run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from hookline.errors import AgentUsage
from hookline.hooks import hookimpl

from .agent_app import AgentApp, AgentParts, HomeApp
from .agent_parts import CONFIGURED
from .embedded import EmbeddedPlugin, SharedModel

if TYPE_CHECKING:
    from hookline.tape import Entry, TapeStore


COMMANDS: Final = ("cli", "gateway")
"""The plugins that bring the command line and the channels of a gateway."""


def embed(parts: AgentParts) -> None:
    """Complete the parts of an agent without a home: a tape in memory, every given tool allowed."""
    from hookline.agent.run import Limits
    from hookline.tape.memory import MemoryTapeStore

    parts.limits = parts.limits or Limits()
    parts.store = parts.store if parts.store is not None else MemoryTapeStore()
    parts.hooks.add(EmbeddedPlugin(parts), name="builtin")
    add_budgets(parts)


def add_budgets(parts: AgentParts) -> None:
    """Deny model calls of a session that has used up the budget of its policy.

    Here and not in each app, since several apps may share these hooks.
    """
    policy, store = parts.policy, parts.store
    if policy is None or store is None or not policy.budget:
        return
    from hookline.policy import METERED, Meter
    from hookline.policy.budgets import PLUGIN, BudgetGate

    async def entries(session_id: str, after: str | None) -> list[Entry]:
        return await store.entries(session_id, kinds=METERED, after=after)

    policy.spending = policy.spending or Meter(entries).spent
    parts.hooks.add(BudgetGate(lambda: policy), name=PLUGIN)


def one_app(**options: Any) -> Callable[[AgentParts], AgentApp]:
    """Return a function that makes the one app of an agent with a home, with options of `Hookline`."""
    made: list[HomeApp] = []

    def make(parts: AgentParts) -> AgentApp:
        if not made:
            model = parts.model if isinstance(parts.model, str) else parts.model.name
            model = "" if model == CONFIGURED else model
            app = HomeApp(
                **options,
                model=model or None,
                hooks=parts.hooks,
                limits=parts.limits,
                options=parts.options or None,
                policy=parts.policy,
            )
            app.take(parts)
            if not isinstance(parts.model, str):
                app.models.add(SharedModel(parts.model))
            made.append(app)
        if any(app is made[0] for app in parts.apps.values()):
            raise AgentUsage(
                "an agent with a home works in one event loop at a time, and another one has it: use "
                "run_sync() everywhere or run() everywhere, or close() it in between"
            )
        return made[0]

    return make


def settle(parts: AgentParts) -> None:
    """Load the plugins of an agent with a home, and add the agent's own arguments."""
    parts.make(parts).load_hooks()
    if parts.instructions or parts.store is not None:
        parts.hooks.add(GivenParts(parts.instructions, parts.store), name="agent")


class GivenParts:
    """The instructions and the tape that an agent with a home was given."""

    def __init__(self, instructions: str, store: TapeStore | None) -> None:
        self._instructions = instructions
        self._store = store

    @hookimpl
    def system_prompt(self) -> str | None:
        """Add the instructions."""
        return self._instructions or None

    @hookimpl
    def provide_tape_store(self) -> TapeStore | None:
        """Provide the tape."""
        return self._store


def run_command(parts: AgentParts, command: str, **options: Any) -> None:
    """Run a command of the command line with an agent.

    If the agent has no home, files that the command stores, such as the token of a gateway, are in a
    temporary folder.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise AgentUsage("this runs an event loop of its own: call it from synchronous code")
    given = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    with TemporaryDirectory(prefix="hookline-") as folder, ExitStack() as stack:
        app = parts.make(parts)
        if app.embedded:
            app.home = Path(folder)
            add_commands(app, stack)
        parts.apps[None] = app
        stack.callback(parts.apps.pop, None)
        arguments = [command, *(word for pair in given for word in pair)]
        app.create_cli_app()(arguments, standalone_mode=False)


def add_commands(app: AgentApp, stack: ExitStack) -> None:
    """Let an app without plugins have the commands and channels of Hookline for a while."""
    from hookline.plugins.packages import GROUP, made, own_entries

    for entry in own_entries():
        if entry.group == GROUP and entry.name in COMMANDS:
            app.hooks.add(made(entry.load(), app), name=entry.name)
            stack.callback(app.hooks.remove, entry.name)
