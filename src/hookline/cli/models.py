"""`hookline models`: the available models."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from hookline.text.printable import printable

from .terminal import style, unguarded

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline models`."""
    group = typer.Typer(help="List the available models.", invoke_without_command=True)
    cli.add_typer(group, name="models")

    @group.callback()
    def models(context: typer.Context) -> None:
        """List the available models."""
        if context.invoked_subcommand is None:
            list_models(app)

    @group.command("list")
    def list_() -> None:
        """List the available models; `hookline models` does the same."""
        list_models(app)

    @group.command()
    def install() -> None:
        """Fetch the weights of the local model."""
        install_local(app)


def list_models(app: Hookline) -> None:
    """List the models within reach, and why others are not."""
    for model in app.models.available(ask=app.model):
        mark = style("ok", "green") if model.usable else style("--", "yellow")
        default = " (default)" if model.serves(app.model) else ""
        typer.echo(f"{mark}  {model.name:<16} {model.summary}{default}")
        if not model.usable:
            typer.echo(f"    {model.reason}")


def install_local(app: Hookline) -> None:
    """Fetch the local model's weights into the home."""
    from hookline.models import weights

    path = weights.install(app.home, progress=DownloadProgress())
    typer.echo(f"the local model is ready: {path}")


STEPS = {"download": "fetching the local model, once", "unpack": "unpacking the local model"}


class DownloadProgress:
    """Shows the progress of a download, on one line if possible."""

    def __init__(self) -> None:
        self._step = ""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show one step."""
        step = STEPS.get(step, step)
        share = f" {done * 100 // total} %" if total else ""
        if sys.stderr.isatty():
            end = "\n" if done >= total > 0 else ""
            print(f"\r{printable(step)}{share}\033[K", end=end, file=unguarded(sys.stderr), flush=True)
        elif step != self._step:
            typer.echo(step, err=True)
        self._step = step
