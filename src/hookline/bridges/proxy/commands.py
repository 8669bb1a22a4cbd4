"""`hookline proxy`: serve the model proxy until it is asked to end."""

from __future__ import annotations

import asyncio
import sys
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add_proxy(cli: typer.Typer, app: Hookline) -> None:
    """Add the command `proxy`."""

    @cli.command(rich_help_panel="Change what it does")
    def proxy(
        port: Annotated[
            int | None, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")
        ] = None,
        print_token: Annotated[
            bool, typer.Option("--print-token", help="Print what clients use as their key, and end.")
        ] = False,
    ) -> None:
        """Run these hooks around any agent, between it and its model."""
        from .settings import ProxySettings

        token = token_of(app, app.config.settings("proxy", ProxySettings).token)
        if print_token:
            typer.echo(token)
        else:
            asyncio.run(run_proxy(app, token, port))


def token_of(app: Hookline, given: str | None) -> str:
    """The token of the settings, or the generated one."""
    from hookline.serve.token import check_token, own_token

    return own_token(app.home, "proxy")[0] if given is None else check_token(given)


async def run_proxy(app: Hookline, token: str, port: int | None) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    from .server import ProxyServer

    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal in (SIGTERM, SIGINT):
        loop.add_signal_handler(signal, over.set)
    try:
        async with ProxyServer(app.home, app.workspace, token).running(port) as address:
            say(f"the proxy is at {address}/v1")
            say("clients use the token of `hookline proxy --print-token` as their key")
            await over.wait()
    finally:
        for signal in (SIGTERM, SIGINT):
            loop.remove_signal_handler(signal)


def say(text: str) -> None:
    """Say something to the person who started the proxy."""
    print(f"hookline: {text}", file=sys.stderr, flush=True)
