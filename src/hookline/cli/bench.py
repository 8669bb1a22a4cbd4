"""`hookline bench`: how fast turns are here, and where the time goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import FAILED, beside
from .json_output import Json, print_json

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


def add_bench(cli: typer.Typer, app: Hookline) -> None:
    """Attach the command."""

    @cli.command()
    def bench(
        turns: Annotated[int, typer.Option(min=1, help="How many turns to make.")] = 100,
        concurrency: Annotated[int, typer.Option(min=1, help="How many at once.")] = 1,
        message: Annotated[str | None, typer.Option(help="What is said in each turn.")] = None,
        model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
        workspace: Annotated[Path | None, typer.Option(help="The folder that tools work in.")] = None,
        as_json: Json = False,
    ) -> None:
        """Measure turns with your settings, plugins and model."""
        from .commands import configure

        configure(app, model, workspace)
        run_bench(app, turns, concurrency, message, as_json=as_json)


def run_bench(
    app: Hookline, turns: int, concurrency: int, message: str | None, *, as_json: bool
) -> None:
    """Measure and print the results; exit with status 1 if a turn failed."""
    import asyncio

    from .bench_turn import MESSAGE, bench

    found = asyncio.run(bench(app, turns=turns, concurrency=concurrency, message=message or MESSAGE))
    if as_json:
        print_json(found.as_json(), indent=2)
    else:
        typer.echo(f"{found.turns} turns with {found.model}, {found.concurrency} at once")
        typer.echo(
            f"  {found.turns_per_second:.1f} turns/s, {found.cpu_per_turn * 1e3:.2f} ms CPU each"
        )
        typer.echo(f"  p50 {found.p50 * 1e3:.1f} ms, p95 {found.p95 * 1e3:.1f} ms")
        for name, share in found.shares.items():
            typer.echo(f"  {name:8} {share:6.1%}")
    if found.failed:
        beside(f"{found.failed} turns failed: {found.first_failure}")
        raise typer.Exit(FAILED)
