"""The commands that come with Hookline: a module for each, imported when the command is named."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from .root import LazyCommand, stand_in

if TYPE_CHECKING:
    import typer

    from hookline.runtime.app import Hookline

GROUPS: Final = {
    "Talk to the agent": {
        "run": "Answer one message.",
        "chat": "Talk to the agent in the terminal.",
        "gateway": "Serve the web page, the HTTP API, Telegram and stdio.",
        "sessions": "List the sessions, this project's first.",
    },
    "See what happened": {
        "why": "Explain a turn or a tool call: who changed and decided what.",
        "inspect": "Show sessions, turns, hooks and decisions in a browser.",
        "tape": "Read, search, export and import recorded sessions.",
        "replay": "Run a recorded session through today's hooks and compare.",
        "backtest": "Judge recorded tool calls with today's hooks and policies.",
        "eval": "Run an agent on cases; compare a change over them.",
        "audit": "Read and verify the log of decisions.",
    },
    "Change what it does": {
        "hooks": "Show every hook, one in detail, or check a plugin or hook file.",
        "plugins": "Show, enable, disable, verify and create plugins.",
        "policy": "Check, test and explain policies; answer approvals.",
        "trust": "Show what this project would run, and trust it.",
        "sandbox": "Run a command in the sandbox, as the agent's commands run.",
        "triggers": "Show and fire triggers; manage their queues.",
        "mcp": "Show and check MCP servers.",
        "voice": "Try speech synthesis and recognition.",
    },
    "Set it up": {
        "onboard": "Choose a model, and fill in the settings that plugins need.",
        "config": "Show and change the settings.",
        "models": "List the available models.",
        "doctor": "Check the installation: plugins, models, tools and the tape.",
        "worker": "Process the messages that gateways accept, on any machine.",
        "db": "Manage the database of the tapes.",
        "bench": "Measure turns with your settings, plugins and model.",
    },
}
"""Each command, which is also the name of its module, and its line in the overall help, by heading."""
COMMANDS: Final = {name: line for group in GROUPS.values() for name, line in group.items()}
EXTENSIONS: Final = ("triggers", "mcp", "voice")
"""The commands of extensions, which are there if their extension is."""


def add_commands(cli: typer.Typer, app: Hookline) -> None:
    """Add the commands to the command line."""

    def adds(name: str, one: typer.Typer) -> None:
        import_module(f".{name}", __package__).add(one, app)

    for heading, commands in GROUPS.items():
        for name, summary in commands.items():
            if name not in EXTENSIONS or name not in app.plugins.missing:
                cli.command(name, help=summary, cls=LazyCommand, rich_help_panel=heading)(
                    stand_in(partial(adds, name))
                )
