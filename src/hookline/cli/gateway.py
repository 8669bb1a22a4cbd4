"""`hookline gateway`: run the channels until asked to end."""

from __future__ import annotations

import asyncio
import gc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from hookline.errors import ConfigError
from hookline.hooks import HooklineError

from . import beside
from .options import LogJson, Model, Workspace, configure
from .orphans import adopting

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


HOW = "hookline: `hookline gateway --print-token` shows the link with the token"


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline gateway`."""

    @cli.command()
    def gateway(
        enable_channel: Annotated[
            list[str] | None, typer.Option(help="Run this channel, and only those named so.")
        ] = None,
        host: Annotated[
            str | None, typer.Option(help="Where to listen; by default this machine alone reaches it.")
        ] = None,
        port: Annotated[int | None, typer.Option(help="The port; 0 for any free one.")] = None,
        token: Annotated[
            str | None,
            typer.Option(help="What requests must carry; better in HOOKLINE_GATEWAY__TOKEN."),
        ] = None,
        reload: Annotated[
            bool, typer.Option("--reload", help="Load hook files anew when they change.")
        ] = False,
        log_json: LogJson = False,
        print_token: Annotated[
            bool, typer.Option("--print-token", help="Print the link with the token, and end.")
        ] = False,
        rotate_token: Annotated[
            bool, typer.Option("--rotate-token", help="Make a new token, print its link, and end.")
        ] = False,
        model: Model = None,
        workspace: Workspace = None,
    ) -> None:
        """Serve the web page, the HTTP API, Telegram and stdio."""
        if print_token or rotate_token:
            show_token(app, host, port, rotate=rotate_token)
            return
        configure(app, model, workspace, ask=True)
        run_gateway(app, GatewayOptions(enable_channel, host, port, token, reload, log_json))


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """The options of the command line."""

    channels: list[str] | None = None
    host: str | None = None
    port: int | None = None
    token: str | None = None
    reload: bool = False
    log_json: bool = False


def run_gateway(app: Hookline, service: GatewayOptions) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    try:
        from hookline.serve.server import serve
    except ImportError as error:
        raise ConfigError(f"the gateway needs {error.name}: pip install 'hookline[gateway]'") from None
    from hookline.serve import Gateway
    from hookline.serve.logs import log_to_stderr
    from hookline.serve.settings import settings_of
    from hookline.serve.token import own_token

    log_to_stderr(as_json=service.log_json)

    async def main() -> None:
        settings = settings_of(app.config, host=service.host, port=service.port, token=service.token)
        settings.check()
        own, is_new = ("", False) if settings.token is not None else own_token(app.home)
        is_shown = bool(own) and (is_new or sys.stderr.isatty())
        gateway = Gateway(app, enabled=service.channels, settings=settings)

        def started(address: str) -> None:
            tell(address, own if is_shown else "", generated=bool(own))

        async with adopting():
            await serve(gateway, started=started, changed=beside if service.reload else None)
        if gateway.error is not None:
            raise gateway.error

    run_loop(main())


def run_loop(main: Any) -> None:
    """Run on uvloop if it is installed, in a process that does nothing else."""
    gc.freeze()  # loaded modules stay
    gc.set_threshold(20_000, 50, 50)  # thousands of open turns are no garbage: look more seldom
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)


def tell(address: str, token: str, *, generated: bool) -> None:
    """Say where the gateway is; standard output may belong to a channel.

    The link has the generated token in it: at the first start, and on a terminal. A log that is kept
    gets it once at most.
    """
    if not address:
        return
    print(f"hookline: the gateway is at {link(address, token)}", file=sys.stderr, flush=True)
    if generated and not token:
        print(HOW, file=sys.stderr, flush=True)


def link(address: str, token: str) -> str:
    """An address that hands a token to the page: what follows `#` is sent to no server."""
    return f"{address}#token={quote(token, safe='')}" if token else address


def show_token(app: Hookline, host: str | None, port: int | None, *, rotate: bool) -> None:
    """Print the link with the generated token."""
    from hookline.serve.settings import settings_of
    from hookline.serve.token import make_token, own_token

    settings = settings_of(app.config, host=host, port=port)
    if settings.token is not None:
        place = app.config.source("gateway.token")
        raise HooklineError(f"the token is set by {place}; none is generated")
    token = make_token(app.home) if rotate else own_token(app.home)[0]
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    typer.echo(link(f"http://{name}:{settings.port}/", token))
    if rotate:
        typer.echo("hookline: a running gateway takes it when it is restarted, or on SIGHUP", err=True)
