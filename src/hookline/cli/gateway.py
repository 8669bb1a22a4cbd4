"""`hookline gateway`: run the channels until asked to end."""

from __future__ import annotations

import asyncio
import gc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from hookline.hooks import HooklineError

from . import REFUSED

if TYPE_CHECKING:
    from hookline.app import Hookline


@dataclass(frozen=True, slots=True)
class Service:
    """What was asked for on the command line."""

    channels: list[str] | None = None
    host: str | None = None
    port: int | None = None
    token: str | None = None
    reload: bool = False
    log_json: bool = False


def run_gateway(app: Hookline, service: Service) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    try:
        from hookline.gateway.server import serve
    except ImportError as error:
        missing = f"hookline: the gateway needs {error.name}: pip install 'hookline[gateway]'"
        typer.echo(missing, err=True)
        raise typer.Exit(REFUSED) from None
    from hookline.gateway import Gateway
    from hookline.gateway.logs import log_to_stderr
    from hookline.gateway.settings import settings_of

    log_to_stderr(as_json=service.log_json)

    async def main() -> None:
        settings = settings_of(app.config, host=service.host, port=service.port, token=service.token)
        settings.check()
        gateway = Gateway(app, enabled=service.channels, settings=settings)
        await serve(gateway, started=tell, changed=tell_change if service.reload else None)
        if gateway.error is not None:
            raise gateway.error

    try:
        run_loop(main())
    except HooklineError as error:
        typer.echo(f"hookline: {error}", err=True)
        raise typer.Exit(REFUSED) from None


def run_loop(main: Any) -> None:
    """Run on uvloop where it is installed, in a process that does nothing else."""
    gc.freeze()  # what is loaded stays
    gc.set_threshold(20_000, 50, 50)  # thousands of open turns are no garbage: look more seldom
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main)


def tell_change(text: str) -> None:
    """Say what came of a change of hook files."""
    print(f"hookline: {text}", file=sys.stderr, flush=True)


def tell(address: str) -> None:
    """Say where the gateway is; standard output may belong to a channel."""
    if address:
        print(f"hookline: the gateway is at {address}", file=sys.stderr, flush=True)
