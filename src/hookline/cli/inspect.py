"""`hookline inspect`: the inspector on this machine, until asked to end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from hookline.hooks import HooklineError

from . import REFUSED
from .gateway import run_loop

if TYPE_CHECKING:
    from hookline.app import Hookline


def run_inspector(app: Hookline, port: int | None, *, show: bool = False) -> None:
    """Serve the page; with `show`, open it in a browser."""
    try:
        from hookline.gateway.inspecting import inspector_settings, serve_inspector
    except ImportError as error:
        missing = f"hookline: the inspector needs {error.name}: pip install 'hookline[gateway]'"
        typer.echo(missing, err=True)
        raise typer.Exit(REFUSED) from None

    def tell(address: str) -> None:
        print(f"hookline: the inspector is at {address}", file=sys.stderr, flush=True)
        if show:
            import webbrowser

            webbrowser.open(address)

    try:
        run_loop(serve_inspector(app, inspector_settings(app.config, port=port), started=tell))
    except HooklineError as error:
        typer.echo(f"hookline: {error}", err=True)
        raise typer.Exit(REFUSED) from None
