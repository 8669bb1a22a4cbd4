"""The root command, to which plugins attach everything else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from hookline.plugins.registrations import name_of

HEADINGS = ("Talk to the agent", "See what happened", "Change what it does", "Set it up")
"""The headings of the overall help, in order."""
Adds = Callable[[typer.Typer], object]


class _Lazy:
    """A command known by its name and help; the rest is read when it is named."""

    name: str | None
    callback: Any

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the command as it was declared, and let it parse its arguments."""
        return self.declared().make_context(info_name, args, parent, **extra)

    def declared(self) -> Any:
        """The command as it was declared."""
        cli = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
        cli.callback()(lambda: None)  # a group, even with one command
        self.callback.adds(cli)
        return built(cli).commands[self.name]


class LazyCommand(_Lazy, TyperCommand):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A command that is read when it is named."""


class LazyGroup(_Lazy, TyperGroup):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A group of commands that is read when it is named."""


class RootGroup(TyperGroup):
    """The root command; its help lists the commands under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by heading; those of plugins come last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        width = formatter.width - 6 - max(map(len, self.commands), default=0)
        for name, command in self.commands.items():
            heading = getattr(command, "rich_help_panel", None)
            if not command.hidden:
                rows = groups.setdefault(heading if isinstance(heading, str) else "", [])
                rows.append((name, command.get_short_help_str(width)))
        rest = groups.pop("", [])
        known = [(heading, groups.pop(heading)) for heading in HEADINGS if heading in groups]
        last = "From plugins" if known else "Commands"
        for heading, rows in [*known, *groups.items(), (last, rest)]:
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def stand_in(adds: Adds) -> Callable[[], None]:
    """A function in place of a command's own; `adds` adds the command as it was declared."""

    def function() -> None: ...

    function.adds = adds  # pyright: ignore[reportFunctionMemberAccess]
    return function


def add_root_options(app: typer.Typer, prepare: Callable[[], None]) -> None:
    """Add what comes before the command; `prepare` is called before a command runs."""

    @app.callback(
        cls=RootGroup,
        help="Hooks with explicit rules for every step of an AI agent.",
        epilog='First steps: hookline run "Hello", then hookline why. `hookline COMMAND -h` says more.',
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


def outlined(app: typer.Typer) -> Any:
    """The command line with only as much of each command as the overall help shows.

    Reading the parameters of every command takes as long as importing typer, and only one runs.
    """
    outlines = copy(app)
    outlines.registered_commands = [*map(command_outline, app.registered_commands)]
    outlines.registered_groups = [*map(group_outline, app.registered_groups)]
    return built(outlines)


def command_outline(command: CommandInfo) -> CommandInfo:
    """A command of the same name and help, read when it is named."""
    if command.cls is LazyCommand:
        return command
    outline = copy(command)
    outline.name, outline.cls = name_of(command), LazyCommand
    outline.help = command.help or inspect.getdoc(command.callback)
    outline.callback = stand_in(lambda cli: cli.registered_commands.append(command))
    return outline


def group_outline(group: TyperInfo) -> TyperInfo:
    """A group of the same name and help, read when it is named, unless it is part of the root."""
    if not group.name or group.typer_instance is None:
        return group
    outline = copy(group)
    outline.cls, outline.typer_instance = LazyGroup, copy(group.typer_instance)
    outline.typer_instance.registered_commands = []
    outline.typer_instance.registered_groups = []
    outline.callback = stand_in(lambda cli: cli.registered_groups.append(group))
    return outline


def built(app: typer.Typer) -> Any:
    """The command that runs a command line."""
    return typer.main.get_command(app)


def declared(command: Any) -> Any:
    """A command as it was declared, with its parameters."""
    return command.declared() if isinstance(command, LazyCommand | LazyGroup) else command


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hookline {version('hookline')}")
        raise typer.Exit
