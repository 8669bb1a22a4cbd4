"""`hookline replay`: run a recorded session again with today's hooks, and compare."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookline.errors import BadInput
from hookline.observe.replay import Comparison, Difference, Setup, WhatIf, replay
from hookline.observe.replay.report import as_text, side_of
from hookline.text.document import one_line

from . import FAILED
from .json_output import Json, print_json
from .options import Workspace, configure
from .terminal import style

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Plugin = Annotated[
    list[Path] | None,
    typer.Option(help="A plugin's file or folder, or a hook file, to try."),
]
Pack = Annotated[list[str] | None, typer.Option(help="A policy pack, or its folder, to try.")]
SHOWN = 400
"""Characters of a value that are printed."""


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline replay`."""

    @cli.command("replay")
    def replay_(
        session: Annotated[str, typer.Argument(help="The session.")],
        from_: Annotated[
            str | None, typer.Option("--from", help="Entry to start replaying from.")
        ] = None,
        message: Annotated[
            str | None, typer.Option(help="Say this instead, in the turn of that entry.")
        ] = None,
        plugin: Plugin = None,
        pack: Pack = None,
        result: Annotated[
            list[str] | None, typer.Option(metavar="CALL=TEXT", help="The result of a tool call.")
        ] = None,
        model: Annotated[
            str | None, typer.Option(help="Model to use once the replay diverges from the recording.")
        ] = None,
        workspace: Workspace = None,
        as_json: Json = False,
    ) -> None:
        """Run a recorded session through today's hooks and compare."""
        configure(app, None, workspace)
        edits = Edits(from_, message, plugin or [], pack or [], result or [], model)
        replay_session(app, session, edits, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Edits:
    """Overrides from the command line."""

    entry: str | None
    message: str | None
    plugins: Sequence[Path]
    packs: Sequence[str]
    results: Sequence[str]
    model: str | None


def replay_session(app: Hookline, session_id: str, edits: Edits, *, as_json: bool) -> None:
    """Replay a session and print the differences; exit with status 1 if there are any."""
    setup = Setup.like(app, plugins=edits.plugins, packs=edits.packs)
    tried = {
        "plugins": [str(path) for path in edits.plugins],
        "packs": [str(pack) for pack in edits.packs],
    }
    what_if = WhatIf(
        edits.entry,
        edits.message,
        supplied(edits.results),
        edits.model,
        keep=bool(edits.plugins or edits.packs),
        about={name: value for name, value in tried.items() if value},
    )
    only_look(app)

    async def run() -> Comparison:
        async with app.running():
            return await replay(app.store(), session_id, setup, what_if)

    comparison = asyncio.run(run())
    if as_json:
        print_json(comparison.data())
    else:
        show_comparison(comparison)
    if not comparison.same:
        raise typer.Exit(FAILED)


def only_look(app: Hookline) -> None:
    """Open only the tape: the replay has an app of its own."""
    app.passive = True


def supplied(results: Sequence[str]) -> dict[str, str]:
    """`CALL=TEXT`, each."""
    found: dict[str, str] = {}
    for written in results:
        call, equals, text = written.partition("=")
        if not equals or not call:
            raise BadInput(f"--result {written!r}: write CALL=TEXT, with the id of the call")
        found[call] = text
    return found


def show_comparison(comparison: Comparison) -> None:
    """Print the differences."""
    for note in comparison.notes:
        typer.echo(f"note: {note}", err=True)
    for difference in comparison.differences:
        show_difference(difference)
    for difference in comparison.random:
        where = f" {difference.tool} {difference.call}".rstrip()
        typer.echo(style(f"not deterministic: {difference.field}{where}", "yellow"))
        typer.echo(f"  once   {shown(difference.before)}")
        typer.echo(f"  again  {shown(difference.after)}")
    for told in (comparison.diverged, comparison.stopped):
        if told is not None:
            typer.echo(style(told, "red"))
    many = len(comparison.pairs)
    what = f"{many} item{'' if many == 1 else 's'} replayed"
    if comparison.same:
        typer.echo(f"{what}, no differences")
    else:
        found = len(comparison.differences)
        typer.echo(f"{what}, {found} difference{'' if found == 1 else 's'}")
    if comparison.branch is not None:
        typer.echo(f"on the tape as {comparison.branch}")


def show_difference(difference: Difference) -> None:
    """One difference, then and now."""
    where = f" of {difference.tool} ({difference.call})" if difference.call else ""
    typer.echo(style(f"{difference.item}  {difference.field}{where}  at {difference.entry}", "bold"))
    typer.echo(f"  then  {shown(difference.before)}")
    typer.echo(f"  now   {shown(difference.after)}")


def shown(value: Any) -> str:
    """A value in one line, as far as it is printed."""
    if isinstance(value, dict) and "decision" in value:
        return side_of(value).text  # pyright: ignore[reportUnknownArgumentType]
    return one_line(as_text(value), SHOWN)
