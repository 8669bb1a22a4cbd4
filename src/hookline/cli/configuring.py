"""The commands of `hookline config` and `hookline models`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .json_output import Json

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Key = Annotated[str, typer.Argument(help="Such as model, or limits.steps.")]
ForProfile = Annotated[str | None, typer.Option(help="In the file of this profile.")]
ForProject = Annotated[
    bool, typer.Option("--project", help="In the file of the project in the current folder.")
]


def add_config(cli: typer.Typer, app: Hookline) -> None:
    """`hookline config`."""
    group = typer.Typer(help="Show and change the settings.", no_args_is_help=True)
    cli.add_typer(group, name="config")

    @group.command()
    def show(
        section: Annotated[str | None, typer.Argument(help="Only this section.")] = None,
        as_json: Json = False,
    ) -> None:
        """Show every setting and where it stands; secrets are never shown."""
        from .config import show

        show(app, section, as_json=as_json)

    @group.command("set")
    def set_(
        key: Key,
        value: Annotated[str, typer.Argument(help="A TOML value, or a text.")],
        profile: ForProfile = None,
        project: ForProject = False,
    ) -> None:
        """Set a value in the user's file; comments in it are kept."""
        from .config import put

        put(app, key, value, profile=profile, project=project)

    @group.command()
    def get(key: Key) -> None:
        """Print one setting, or a section as JSON; secrets are never shown."""
        from .config import get

        get(app, key)

    @group.command()
    def unset(key: Key, profile: ForProfile = None, project: ForProject = False) -> None:
        """Remove a setting from the user's file; comments in it are kept."""
        from .config import unset

        unset(app, key, profile=profile, project=project)

    @group.command()
    def path() -> None:
        """Show which files are read."""
        from .config import paths

        paths(app)


def add_models(cli: typer.Typer, app: Hookline) -> None:
    """`hookline models`."""
    group = typer.Typer(help="Show the models within reach.", invoke_without_command=True)
    cli.add_typer(group, name="models")

    @group.callback()
    def models(context: typer.Context) -> None:
        """Show the models within reach."""
        if context.invoked_subcommand is None:
            from .models import show

            show(app)

    @group.command("list")
    def list_() -> None:
        """Show the models within reach; `hookline models` does the same."""
        from .models import show

        show(app)

    @group.command()
    def install() -> None:
        """Fetch the weights of the local model."""
        from .models import install

        install(app)
