"""`hookline worker`: make the turns of a cluster until asked to end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import ConfigError

from .gateway import run_loop
from .options import LogJson, Model, Workspace, configure
from .orphans import adopting

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline worker`."""

    @cli.command()
    def worker(
        concurrency: Annotated[
            int | None, typer.Option(min=1, help="How many sessions to process at the same time.")
        ] = None,
        log_json: LogJson = False,
        model: Model = None,
        workspace: Workspace = None,
    ) -> None:
        """Process the messages that gateways accept, on any machine."""
        configure(app, model, workspace)
        run_worker(app, concurrency, log_json=log_json)


def run_worker(app: Hookline, concurrency: int | None, *, log_json: bool) -> None:
    """Work until SIGTERM or Ctrl-C."""
    try:
        from hookline.serve.worker import Worker
    except ImportError as error:
        raise ConfigError(
            f"a worker needs {error.name}: pip install 'hookline[gateway,postgres]'"
        ) from None
    from hookline.serve.logs import log_to_stderr
    from hookline.serve.settings import settings_of, worker_settings_of
    from hookline.serve.signals import signals

    log_to_stderr(as_json=log_json)

    async def main() -> None:
        settings = worker_settings_of(app.config)
        if concurrency is not None:
            settings = settings.model_copy(update={"concurrency": concurrency})
        worker = Worker(app, settings, debounce=settings_of(app.config).debounce)
        with signals(worker):
            async with adopting(), app.running(), worker.running():
                print(f"hookline: working on {worker.place}", file=sys.stderr, flush=True)
                await worker.leaving.wait()
        if worker.error is not None:
            raise worker.error

    run_loop(main())
