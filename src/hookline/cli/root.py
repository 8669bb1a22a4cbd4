"""The root command, to which plugins attach everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from typer.models import CommandInfo


def create_app(prepare: Callable[[], None]) -> typer.Typer:
    """A command line without commands; `prepare` is called before one of them runs."""
    app = typer.Typer(
        name="hookline",
        help="A hook-first agent runtime.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # drawing boxes around the help costs more than all the rest
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
        ] = False,
        # These three are read before the command line is built: see `early`.
        profile: Annotated[
            str | None, typer.Option(help="The profile to work under: settings, hooks, skills.")
        ] = None,
        no_project: Annotated[
            bool, typer.Option("--no-project", help="Ignore what the workspace's .hookline says.")
        ] = False,
        setting: Annotated[
            list[str] | None,
            typer.Option("--set", metavar="KEY=VALUE", help="A setting, for this once."),
        ] = None,
    ) -> None:
        """Every stage, event and tool call of a complete agent is a declared hook."""
        prepare()

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
