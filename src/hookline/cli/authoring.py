"""Commands for plugin authors: `hookline hooks` and `hookline plugins`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .json_output import Json

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Name = Annotated[str, typer.Argument(help="The plugin.")]


class ShowUnlessNamed(TyperGroup):
    """A group whose command `show` is meant wherever no other is named: `hookline hooks NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `show` before an argument that is not a command of this group."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Show both forms."""
        formatter.write_usage(ctx.command_path, "[NAME] [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List what `show` takes, then the commands."""
        show = self.commands["show"]
        taken = [record for p in show.get_params(ctx) if (record := p.get_help_record(ctx))]
        for title in ("Arguments", "Options"):
            with formatter.section(title):
                formatter.write_dl([r for r in taken if r[0].startswith("-") == (title == "Options")])
        self.format_commands(ctx, formatter)


def add_hooks(cli: typer.Typer, app: Hookline) -> None:
    """`hookline hooks`."""
    group = typer.Typer(cls=ShowUnlessNamed)
    cli.add_typer(
        group, name="hooks", help="Show every hook, one in detail, or check a plugin or hook file."
    )

    @group.command()
    def show(
        name: Annotated[
            str | None, typer.Argument(metavar="NAME", help="Show this hook in detail.")
        ] = None,
        family: Annotated[str | None, typer.Option(help="Only the hooks of this family.")] = None,
        as_json: Json = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the whole reference.")
        ] = False,
        turn: Annotated[bool, typer.Option("--turn", help="Show one turn, hook by hook.")] = False,
        source: Annotated[
            bool, typer.Option("--source", help="Print the code that dispatches the hook here.")
        ] = False,
    ) -> None:
        """Show every hook, or one in detail; the word `show` may be left out."""
        from .hooks import show, show_source

        app.hook_files.load()
        if source:
            show_source(app.hooks, name)
            return
        show(app.hooks, name, family, as_json=as_json, as_markdown=as_markdown, turn=turn)

    @group.command()
    def check(
        file: Annotated[Path, typer.Argument(help="A plugin's module, or a hook file.")],
    ) -> None:
        """Import and check a plugin or a hook file without running an agent."""
        from .hooks import check_file

        check_file(app.hooks, file, app.trust)

    @group.command()
    def stats(
        session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
        since: Annotated[
            str | None, typer.Option(help="Only from then on: 2026-01-31, 30m, 2h or 3d.")
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Count what hooks and plugins did: calls, time, errors."""
        from .why import show_stats

        show_stats(app, session, since, as_json=as_json)


def add_why(cli: typer.Typer, app: Hookline) -> None:
    """`hookline why`."""

    @cli.command()
    def why(
        session: Annotated[str, typer.Argument(help="The session.")],
        what: Annotated[
            list[str] | None,
            typer.Argument(help="A tool call, an entry, or `turn N`; the last turn unless said."),
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Explain a turn or a tool call: who changed and decided what."""
        from .why import tell_why

        app.hook_files.load()
        tell_why(app, session, what, as_json=as_json)


def add_plugins(cli: typer.Typer, app: Hookline) -> None:
    """`hookline plugins`."""
    group = typer.Typer(help="Show, switch and write plugins.", no_args_is_help=True)
    cli.add_typer(group, name="plugins")

    @group.command("list")
    def list_(
        as_json: Json = False,
    ) -> None:
        """List every plugin with its state, in the order of loading."""
        from .plugins import list_plugins

        list_plugins(app, as_json=as_json)

    @group.command()
    def show(name: Name) -> None:
        """Show one plugin: its manifest, its hooks, its problems."""
        from .plugins import show_plugin

        show_plugin(app, name)

    @group.command()
    def enable(name: Name) -> None:
        """Load a plugin again that was disabled."""
        from .plugins import switch

        switch(app, name, on=True)

    @group.command()
    def disable(name: Name) -> None:
        """Leave a plugin out from now on."""
        from .plugins import switch

        switch(app, name, on=False)

    @group.command()
    def verify(
        name: Annotated[str | None, typer.Argument(help="Only this plugin or package.")] = None,
    ) -> None:
        """Compare every file of the installed plugins with the lock file."""
        from .pluginlock import verify_plugins

        verify_plugins(app, name)

    @group.command()
    def lock(
        name: Annotated[str | None, typer.Argument(help="Only this plugin or package.")] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    ) -> None:
        """Show what changed in installed plugins, and pin them."""
        from .pluginlock import lock_plugins

        lock_plugins(app, name, yes=yes)

    @group.command()
    def new(
        name: Annotated[str, typer.Argument(help="What the plugin is to be called.")],
        folder: Annotated[
            Path | None, typer.Argument(help="Where to write it; ./hookline-NAME unless said.")
        ] = None,
    ) -> None:
        """Write a new package with a working plugin."""
        from .plugins import write_new

        write_new(name, folder)
