"""The commands that come with Hookline: a module for each, imported when the command is named."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from .root import LazyCommand, stand_in

if TYPE_CHECKING:
    import typer

    from hookline.runtime.app import Hookline

COMMANDS: Final = {
    "run": "Answer one message.",
    "chat": "Talk with the agent in the terminal.",
    "gateway": "Serve channels: web page, API, OpenAI, Telegram, stdio.",
    "worker": "Process the messages that gateways accept, on any machine.",
    "inspect": "Look at sessions, turns, hooks and decisions in a browser.",
    "doctor": "Check the installation: plugins, models, tools and the tape.",
    "sandbox": "Run a command in the sandbox, the way the agent's commands run.",
    "onboard": "Set up the model, and the settings that plugins need.",
    "trust": "Show what this project would run, and trust it.",
    "why": "Explain a turn or a tool call: who changed and decided what.",
    "sessions": "List the sessions, this project's first.",
    "replay": "Run a recorded session through today's hooks and compare.",
    "backtest": "Judge recorded tool calls with today's hooks and policies.",
    "eval": "Run an agent on cases; compare a change over them.",
    "bench": "Measure turns with your settings, plugins and model.",
    "config": "Show and change the settings.",
    "hooks": "Show every hook, one in detail, or check a plugin or hook file.",
    "plugins": "Show, switch and write plugins.",
    "models": "Show the models within reach.",
    "tape": "Look at what was recorded.",
    "db": "Look after the database of the tapes.",
    "policy": "Check, test and explain policies; answer approvals.",
    "audit": "Read and verify the log of decisions.",
    "triggers": "Show and fire triggers; look after their queues.",
    "mcp": "Show and check MCP servers.",
    "voice": "Try speech synthesis and recognition.",
}
"""Each command, which is also the name of its module, and the line that the overall help shows."""
EXTENSIONS: Final = ("triggers", "mcp", "voice")
"""The commands of extensions, which are there if their extension is."""


def add_commands(cli: typer.Typer, app: Hookline) -> None:
    """Add the commands to the command line."""

    def adds(name: str, one: typer.Typer) -> None:
        import_module(f".{name}", __package__).add(one, app)

    for name, summary in COMMANDS.items():
        if name not in EXTENSIONS or name not in app.plugins.missing:
            cli.command(name, help=summary, cls=LazyCommand)(stand_in(partial(adds, name)))
