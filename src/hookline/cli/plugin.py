"""The plugin `cli`: the commands that come with Hookline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    import typer

    from hookline.runtime.app import Hookline


class CliPlugin:
    """Brings the options of the root command, and its commands."""

    def __init__(self, app: Hookline) -> None:
        self._app = app

    @hookimpl
    def register_cli_commands(self, app: typer.Typer) -> None:
        """Add what comes before the command, and the commands."""
        from .commands import add_commands
        from .root import add_root_options

        add_root_options(app, self._app.plugins.finish)
        add_commands(app, self._app)
