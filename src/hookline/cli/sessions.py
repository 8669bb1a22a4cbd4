"""`hookline sessions`: the recorded sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .tape import list_sessions

if TYPE_CHECKING:
    import typer

    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline sessions`."""

    @cli.command()
    def sessions() -> None:
        """List the sessions, this project's first."""
        list_sessions(app)
