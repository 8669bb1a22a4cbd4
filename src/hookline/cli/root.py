"""The root command, to which plugins attach everything else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, TyperInfo

from hookline.plugins.registrations import name_of


class Root(TyperGroup):
    """The root command. A command's parameters are read only when that command is named."""

    whole: typer.Typer | None = None
    """Where the commands are as they were declared, when this one has outlines of them."""

    # Older releases of typer have their `Context` and `Command` from elsewhere.
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments name, as it was declared."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and self.whole is not None:
            command = built(picked(self.whole, name)).commands[name]
        return name, command, rest


def add_root_options(app: typer.Typer, prepare: Callable[[], None]) -> None:
    """Add what comes before the command; `prepare` is called before a command runs."""

    @app.callback(
        cls=Root,
        help="A hook-first agent runtime.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
        ] = False,
        # These four are read before the command line is built: see `early`.
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
        without: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help="Leave out this plugin or hook file, for this once."),
        ] = None,
    ) -> None:
        """Every stage, event and tool call of a complete agent is a declared hook."""
        prepare()


def outlined(app: typer.Typer) -> Root:
    """The command line with only as much of each command as the overall help shows.

    Reading the parameters of every command takes as long as importing typer, and only one runs.
    """
    outlines = copy(app)
    outlines.registered_commands = [*map(command_outline, app.registered_commands)]
    outlines.registered_groups = [*map(group_outline, app.registered_groups)]
    root = built(outlines)
    root.whole = app
    return root


def command_outline(command: CommandInfo) -> CommandInfo:
    """A command of the same name and help that takes nothing."""
    outline = copy(command)
    outline.name = name_of(command)
    outline.help = command.help or inspect.getdoc(command.callback)
    outline.callback = takes_nothing
    return outline


def group_outline(group: TyperInfo) -> TyperInfo:
    """A group of the same name and help without commands, unless the root shows them as its own."""
    if not group.name or group.typer_instance is None:
        return group
    outline = copy(group)
    outline.typer_instance = copy(group.typer_instance)
    outline.typer_instance.registered_commands = []
    outline.typer_instance.registered_groups = []
    return outline


def picked(app: typer.Typer, name: str) -> typer.Typer:
    """The command line with one of its commands or groups, and everything unnamed."""
    chosen = copy(app)
    chosen.registered_commands = [c for c in app.registered_commands if name_of(c) == name]
    chosen.registered_groups = [g for g in app.registered_groups if g.name == name or not g.name]
    return chosen


def built(app: typer.Typer) -> Any:
    """The command that runs a command line."""
    return typer.main.get_command(app)


def takes_nothing() -> None:
    """Stand in for a command where only its help is shown."""


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hookline {version('hookline')}")
        raise typer.Exit
