"""`hookline inspect`: the inspector on this machine, until asked to end."""

from __future__ import annotations

import os
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import ConfigError

from .gateway import HOW, link, run_loop
from .options import Workspace, configure

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline inspect`."""

    @cli.command()
    def inspect(
        port: Annotated[
            int | None,
            typer.Option(min=0, max=65535, help="The port, 8766 by default; 0 for any free one."),
        ] = None,
        show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
        workspace: Workspace = None,
    ) -> None:
        """Show sessions, turns, hooks and decisions in a browser."""
        configure(app, None, workspace)
        run_inspector(app, port, show=show)


def run_inspector(app: Hookline, port: int | None, *, show: bool = False) -> None:
    """Serve the page; with `show`, open it in a browser."""
    try:
        from hookline.serve.inspector_server import inspector_settings, serve_inspector
    except ImportError as error:
        raise ConfigError(
            f"the inspector needs {error.name}: pip install 'hookline[gateway]'"
        ) from None

    from hookline.serve.token import own_token

    def tell(address: str) -> None:
        print(f"hookline: the inspector is at {link(address, token)}", file=sys.stderr, flush=True)
        if own and not token:
            print(HOW, file=sys.stderr, flush=True)
        if show:
            open_link(app.home, link(address, token))

    settings = inspector_settings(app.config, port=port)
    # One who looks at a terminal of their own may see the token; a log gets it once at most.
    own, is_new = ("", False) if settings.token is not None else own_token(app.home)
    token = own if is_new or sys.stderr.isatty() or show else ""
    run_loop(serve_inspector(app, settings, started=tell))


def open_link(home: Path, address: str) -> None:
    """Open an address in a browser, through a file that only this user can read.

    The command line of a browser can be read by every user of the machine.
    """
    from hookline.system.children.browser import open_page

    page = home / "inspector-link.html"
    page.unlink(missing_ok=True)
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">'
            f'<a href="{escape(address)}">The inspector</a>'
        )
    open_page(page.as_uri())
