"""`hookline replay` and `hookline backtest`: the commands, with their work in `replay.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .json_output import Json, for_output

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Plugin = Annotated[
    list[Path] | None,
    typer.Option(help="A plugin's file or folder, or a hook file, to try."),
]
Pack = Annotated[list[str] | None, typer.Option(help="A policy pack, or its folder, to try.")]
Workspace = Annotated[Path | None, typer.Option(help="The folder that tools work in.")]


def add_replay(cli: typer.Typer, app: Hookline) -> None:
    """`hookline replay` and `hookline backtest`."""

    @cli.command()
    def replay(
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
        from .commands import configure
        from .replay import Edits, replay_session

        configure(app, None, workspace)
        edits = Edits(from_, message, plugin or [], pack or [], result or [], model)
        replay_session(app, session, edits, as_json=as_json)

    @cli.command()
    def backtest(
        plugin: Plugin = None,
        pack: Pack = None,
        since: Annotated[
            str | None, typer.Option(help="A time, such as 2026-01-31; or 12h, 30d.")
        ] = None,
        session: Annotated[list[str] | None, typer.Option(help="Only this session.")] = None,
        all_sessions: Annotated[
            bool, typer.Option("--all-sessions", help="Also the sessions of subagents.")
        ] = False,
        fail_on: Annotated[
            str | None, typer.Option(help="Exit with 1 on these changes: new-allow, new-deny or any.")
        ] = None,
        json_file: Annotated[
            Path | None,
            typer.Option("--json", help="Write JSON; '-' for standard output.", callback=for_output),
        ] = None,
        html_file: Annotated[Path | None, typer.Option("--html", help="Write a page.")] = None,
        jobs: Annotated[
            int | None, typer.Option(help="How many processes; by default as many as help.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Judge recorded tool calls with today's hooks and policies."""
        from .commands import configure
        from .replay import Test, run_backtest

        configure(app, None, workspace)
        test = Test(
            plugin or [],
            pack or [],
            since,
            session or [],
            all_sessions,
            fail_on,
            json_file,
            html_file,
            jobs,
        )
        run_backtest(app, test)
