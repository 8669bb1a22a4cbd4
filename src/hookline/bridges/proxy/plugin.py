"""The plugin `proxy`: the command `hookline proxy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    import typer

    from hookline.runtime.app import Hookline


class ProxyPlugin:
    """Brings the command."""

    def __init__(self, app: Hookline) -> None:
        self._app = app

    @hookimpl
    def register_cli_commands(self, app: typer.Typer) -> None:
        """Add `hookline proxy`."""
        from .commands import add_proxy

        add_proxy(app, self._app)
