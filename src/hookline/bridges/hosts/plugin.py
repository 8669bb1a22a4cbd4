"""The plugin `hosts`: the command `hookline hook`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    import typer

    from hookline.runtime.app import Hookline


class HostsPlugin:
    """Brings the command."""

    def __init__(self, app: Hookline) -> None:
        self._app = app

    @hookimpl
    def register_cli_commands(self, app: typer.Typer) -> None:
        """Add `hookline hook`."""
        from .commands import add_hook

        add_hook(app, self._app)
