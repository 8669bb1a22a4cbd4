"""`hookline backtest`: judge recorded calls with today's hooks and policies, and compare."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from hookline.errors import BadInput, UnknownRecording
from hookline.observe.replay import MARK, BacktestReport, Setup, backtest
from hookline.observe.replay.parallel import backtest_parallel
from hookline.observe.replay.report import FailOn
from hookline.observe.replay.traffic import Opens, StoredTraffic, opens
from hookline.tape.sqlite.reader import SessionSize

from . import FAILED
from .audit import when
from .json_output import for_output, print_json
from .options import Workspace, configure
from .replay import Pack, Plugin, only_look
from .tape import write_whole
from .terminal import show_document

if TYPE_CHECKING:
    from hookline.observe.replay.backtest import Tell
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline backtest`."""

    @cli.command("backtest")
    def backtest_(
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
        configure(app, None, workspace)
        test = BacktestOptions(
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


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """Options of the backtest: what to test and how to report it."""

    plugins: Sequence[Path]
    packs: Sequence[str]
    since: str | None
    sessions: Sequence[str]
    everything: bool
    """Whether the sessions of subagents count, too."""
    fail_on: str | None
    json_file: Path | None
    html_file: Path | None
    jobs: int | None


def run_backtest(app: Hookline, test: BacktestOptions) -> None:
    """Judge recorded calls and print changed decisions; exit with 1 if the options forbid them."""
    if test.fail_on is not None and test.fail_on not in get_args(FailOn):
        raise BadInput(f"--fail-on {test.fail_on!r}: use one of {', '.join(get_args(FailOn))}")
    if test.jobs is not None and test.jobs < 1:
        raise BadInput(f"--jobs {test.jobs}: at least one process is needed")
    since = when(test.since) if test.since else 0.0
    setup = Setup.like(app, plugins=test.plugins, packs=test.packs)
    setup()  # report load errors now, once
    only_look(app)
    source = asyncio.run(source_of(app, since, test.sessions))
    chosen, left_out = choose(source.sessions, test)
    with progress(sum(session.entries for session in chosen)) as tell:
        if source.opens is not None:
            options: Any = {"since": since, "jobs": test.jobs, "tell": tell}
            report = backtest_parallel(setup, source.opens, chosen, **options)
        else:
            assert source.stored is not None
            names = [session.id for session in chosen]
            judging = backtest(setup, source.stored, since=since, sessions=names, tell=tell)
            report = asyncio.run(judging)
    if left_out:
        report.notes.append(f"{left_out} sessions of subagents are left out; see --all-sessions")
    document = report.document(title_of(test))
    if test.html_file is not None:
        write_whole(test.html_file, document.page())
    if test.json_file is not None:
        write_json(test.json_file, report)
    if test.json_file is None or str(test.json_file) != "-":
        show_document(document)
    if test.fail_on is not None and report.fails(test.fail_on):  # pyright: ignore[reportArgumentType]
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class RecordedStore:
    """A source of recorded calls: one that any process can open, or calls read from another store."""

    sessions: list[SessionSize]
    opens: Opens | None = None
    stored: StoredTraffic | None = None


async def source_of(app: Hookline, since: float, wanted: Sequence[str]) -> RecordedStore:
    """Find the recorded sessions; one that is wanted and not there is an error."""
    async with app.running():
        store = app.store()
        known = [info.id for info in await store.sessions()] if wanted else []
        for name in wanted:
            if name not in known:
                look = "`hookline tape list` shows the sessions"
                raise UnknownRecording("session", name, known, look)
        reading = opens(store)
        if reading is None:
            stored = await StoredTraffic.read(store, since, wanted)
            return RecordedStore(stored.sessions(), stored=stored)
        with reading() as source:
            return RecordedStore(source.sessions(since), opens=reading)


def choose(sessions: Sequence[SessionSize], test: BacktestOptions) -> tuple[list[SessionSize], int]:
    """The sessions that are tested, and how many of subagents are not."""
    if test.sessions:
        return [session for session in sessions if session.id in test.sessions], 0
    real = [session for session in sessions if MARK not in session.id]
    own = [session for session in real if test.everything or "/" not in session.id]
    return own, len(real) - len(own)


@contextmanager
def progress(entries: int) -> Generator[Tell | None]:
    """A bar on a terminal; nothing elsewhere."""
    from rich.progress import Progress, TextColumn

    from .console import GuardedConsole

    console = GuardedConsole(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(
        *Progress.get_default_columns(),
        TextColumn("{task.completed} calls"),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("judging", total=max(1, entries // 3))  # a call is some three entries

        def tell(calls: int) -> None:
            bar.advance(task, calls)

        yield tell


def title_of(test: BacktestOptions) -> str:
    """What was tested, on which calls."""
    tried = [path.name for path in test.plugins] + [Path(pack).name for pack in test.packs]
    what = f"Backtest of {', '.join(tried)}" if tried else "Backtest of today's configuration"
    return f"{what}, since {test.since}" if test.since else what


def write_json(file: Path, report: BacktestReport) -> None:
    """The report as JSON, to a file or to standard output."""
    if str(file) == "-":
        print_json(report.data(), indent=2)
    else:
        text = json.dumps(report.data(), ensure_ascii=False, indent=2, default=str)
        write_whole(file, f"{text}\n")
