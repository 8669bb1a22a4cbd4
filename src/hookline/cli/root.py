"""The root command, to which plugins attach everything else."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.models import CommandInfo


def create_app() -> typer.Typer:
    """A command line without commands."""
    app = typer.Typer(
        name="hookline",
        help="A hook-first agent runtime.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # drawing boxes around the help costs more than all the rest
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    return app


def keep_first(app: typer.Typer) -> None:
    """Of two commands or groups with one name, keep the one that was added first."""
    seen: set[str] = set()

    def fresh(name: str) -> bool:
        new = name not in seen
        seen.add(name)
        return new

    def name_of(command: CommandInfo) -> str:
        return command.name or (command.callback.__name__ if command.callback else "")

    app.registered_commands = [c for c in app.registered_commands if fresh(name_of(c))]
    app.registered_groups = [g for g in app.registered_groups if fresh(str(g.name))]


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hookline {version('hookline')}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Every stage, event and tool call of a complete agent is a declared hook."""
