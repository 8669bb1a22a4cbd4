"""`hookline replay` and `hookline backtest`: re-run recorded sessions and calls with today's hooks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from hookline.errors import BadInput, UnknownRecording
from hookline.observe.replay import (
    MARK,
    BacktestReport,
    Comparison,
    Difference,
    Setup,
    WhatIf,
    backtest,
    replay,
)
from hookline.observe.replay.parallel import backtest_parallel
from hookline.observe.replay.report import FailOn
from hookline.observe.replay.traffic import Opens, StoredTraffic, opens
from hookline.tape.sqlite.reader import SessionSize
from hookline.text.printable import printable

from . import FAILED
from .audit import when
from .json_output import print_json
from .tape import write_whole
from .terminal import style

if TYPE_CHECKING:
    from hookline.observe.replay.backtest import Tell
    from hookline.observe.replay.report import DecisionChange
    from hookline.runtime.app import Hookline

SHOWN = 400
"""Characters of a value that are printed."""


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
        return side_of(value)  # pyright: ignore[reportUnknownArgumentType]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(printable(text).split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


def side_of(side: dict[str, Any]) -> str:
    """A decision, by whom and why."""
    by = f" by {', '.join(side['by'])}" if side["by"] else ""
    why = f": {side['reason']}" if side["reason"] else ""
    return " ".join(printable(f"{side['decision']}{by}{why}").split())


# --- backtest -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Test:
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


def run_backtest(app: Hookline, test: Test) -> None:
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
    if test.html_file is not None:
        from hookline.observe.replay.page import html_page

        write_whole(test.html_file, html_page(report, title_of(test)))
    if test.json_file is not None:
        write_json(test.json_file, report)
    if test.json_file is None or str(test.json_file) != "-":
        show_report(report)
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


def choose(sessions: Sequence[SessionSize], test: Test) -> tuple[list[SessionSize], int]:
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


def title_of(test: Test) -> str:
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


def show_report(report: BacktestReport) -> None:
    """Print counts and examples."""
    for note in report.notes:
        typer.echo(f"note: {note}", err=True)
    changed = sum(report.changes.values())
    many = f"{report.sessions:,} session{'' if report.sessions == 1 else 's'}"
    judged = f"{report.calls:,} recorded call{'' if report.calls == 1 else 's'} in {many}"
    typer.echo(f"{judged}, {changed:,} decided differently")
    for (kind, tool, party), number in report.changes.most_common(20):
        typer.echo(f"  {number:>8,}  {kind:<14} {tool}  by {printable(party)}")
    for change in report.examples[:10]:
        show_change(change)
    if report.random:
        typer.echo(style(f"{report.random:,} calls are not decided the same each time:", "yellow"))
        for change in report.random_examples[:3]:
            show_change(change)
    # For a few calls it would say how long the start takes.
    rate = f", {report.calls / report.elapsed:,.0f} calls/s" if report.elapsed > 1 else ""
    typer.echo(
        f"{report.seconds:.2f} s of judging: half of the calls within {report.percentile(0.5):.0f} µs, "
        f"95 % within {report.percentile(0.95):.0f} µs{rate}"
    )


def show_change(change: DecisionChange) -> None:
    """One example."""
    typer.echo(style(f"{change.tool} {shown(change.requested)}", "bold"))
    typer.echo(f"  {change.session_id}  {change.call}")
    typer.echo(f"  then  {side_of(change.before)}")
    typer.echo(f"  now   {side_of(change.after)}")
    if change.kind == "rewritten":
        typer.echo(f"  with  {shown(change.after['arguments'])}")
