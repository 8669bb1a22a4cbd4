"""`hookline why`, `hookline hooks stats` and `hookline doctor --coverage`: what the trace knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from hookline.errors import BadInput
from hookline.observe.trace import Coverage, Explanation, Stats, cover, explain, measure
from hookline.observe.trace.plugin import Tracing
from hookline.observe.trace.stats import Measured
from hookline.observe.trace.why import WhyStep, brief
from hookline.text.printable import printable
from hookline.types import Identity

from . import FAILED
from .audit import when
from .console import GuardedConsole, console
from .json_output import Json, print_json

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

T = TypeVar("T")
LET_THROUGH = 'it failed and the gate let this through; hooks.on_gate_error = "deny" denies instead'
HEADINGS = ("hook", "who", "did", "took")
COLOURS = {"denied": "red", "asked": "yellow", "rewrote": "cyan", "raised": "red", "timed out": "red"}


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline why`."""

    @cli.command()
    def why(
        session: Annotated[
            str | None, typer.Argument(help="The session; by default the latest of this project.")
        ] = None,
        what: Annotated[
            list[str] | None,
            typer.Argument(help="A tool call, an entry, or `turn N`; the last turn unless said."),
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Explain a turn or a tool call: who changed and decided what."""
        app.hook_files.load()
        tell_why(app, session, what, as_json=as_json)


def with_trace(app: Hookline, action: Callable[[], Awaitable[T]]) -> T:
    """Do something with the tape and the trace, open while it lasts; nothing of it is traced."""
    app.passive = True
    app.absences.enforced = False

    async def run() -> T:
        async with app.running():
            return await action()

    return asyncio.run(run())


# --- why ---


def tell_why(
    app: Hookline, session: str | None, what: list[str] | None, *, as_json: bool = False
) -> None:
    """Say who saw, changed and decided on a call, an entry or a turn."""
    target, turn = asked_for(what or [])

    async def look() -> Explanation:
        present = {impl.name for name in app.hooks.catalog for impl in app.hooks[name].implementations}
        traces = await Tracing.of(app).store()
        latest = session or await app.sessions.latest()
        if latest is None:
            raise BadInput("this project has no session yet; `hookline sessions` lists the others")
        return await explain(app.store(), traces, latest, target, turn=turn, present=present)

    found = with_trace(app, look)
    if as_json:
        print_json(found.as_json(), indent=2)
    else:
        show(found)


def asked_for(words: list[str]) -> tuple[str | None, int | None]:
    """What the command line means: an id, or `turn` and a number; nothing is the last turn."""
    if not words:
        return None, None
    if len(words) == 2 and words[0] == "turn" and words[1].isdecimal():
        return None, int(words[1])
    if len(words) > 1 or words[0] == "turn":
        raise BadInput("name a call, an entry, or a turn by its number: `hookline why SESSION turn 2`")
    return words[0], None


def show(found: Explanation) -> None:
    """The explanation as people read it."""
    out = console_of()
    took = f", {duration(found.seconds)}" if found.seconds is not None else ""
    out.print(f"[bold]{said(found.title)}[/]")
    out.print(f"{found.kind} {said(found.id)} of {said(found.session)}: {said(found.outcome)}{took}")
    if found.identity is not None:
        out.print(f"on behalf of {said(str(Identity.restored(found.identity)))}")
    for change in found.changes:
        out.print(f"  {said(change.path)}: {value(change.before)} → {value(change.after)}")
    if found.steps:
        rows = [HEADINGS, *map(cells, found.steps)]
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        out.print(f"\n[bold]{'  '.join(padded(HEADINGS, widths))}[/]")
        for title, steps in by_call(found):
            if title:
                out.print(f"\n{said(title)}")
            for line in step_lines(steps, widths):
                out.print(line, soft_wrap=True)
    elif found.records:
        out.print("\nNobody changed or decided anything.")
    for note in found.notes:
        out.print(f"\n[dim]note: {said(note)}[/]")


def by_call(found: Explanation) -> list[tuple[str, list[WhyStep]]]:
    """The steps of each tool call under its heading; steps without a call come without a heading."""
    groups: dict[tuple[str, int], list[WhyStep]] = {}
    runs, last = 0, ""
    for step in found.steps:
        runs += bool(last and not step.call)
        last = step.call
        groups.setdefault((step.call, 0 if step.call else runs), []).append(step)
    titles = {call: f"{title} ({call})" for call, title in found.calls.items()}
    return [(titles.get(call, ""), steps) for (call, _), steps in groups.items()]


def step_lines(steps: list[WhyStep], widths: list[int]) -> Iterator[str]:
    """A line for each handler, followed by its reason, its changes and its source."""
    for step in steps:
        hook, who, did, took = padded(cells(step), widths)
        colour = COLOURS.get(step.did)
        yield f"{hook}  {who}  {f'[{colour}]{did}[/]' if colour else did}  {took}".rstrip()
        yield from (f"    {line}" for line in about(step))


def cells(step: WhyStep) -> tuple[str, str, str, str]:
    """The line of a handler."""
    took = duration(step.duration) if step.duration is not None else ""
    return printable(step.hook or "(policy)"), printable(step.by), printable(step.did), took


def padded(row: tuple[str, ...], widths: list[int]) -> Iterator[str]:
    """Cells that stand below each other."""
    for text, width in zip(row, widths, strict=True):
        yield escape(text) + " " * (width - cell_len(text))


def about(step: WhyStep) -> list[str]:
    """Why, what changed, and where the handler is written."""
    known = [c for c in step.changes if (c.before, c.after) != ("…", "…")]
    lines = [said(step.reason)] if step.reason else []
    lines += [f"[red]{said(step.error)}[/]"] if step.error else []
    lines += [f"[red]{LET_THROUGH}[/]"] if step.let_through else []
    lines += [f"{said(c.path)}: {value(c.before)} → {value(c.after)}" for c in known]
    if len(known) < len(step.changes):
        lines.append(f"changed {said(', '.join(c.path for c in step.changes))}")
    return lines + ([f"[dim]{said(step.place)}[/]"] if step.place else [])


# --- stats ---


def show_stats(app: Hookline, session: str | None, since: str | None, *, as_json: bool = False) -> None:
    """How often hooks and plugins ran, and how long they took."""
    start = when(since) if since else 0.0

    async def look() -> Stats:
        return await measure(app.store(), await Tracing.of(app).store(), session, since=start)

    found = with_trace(app, look)
    if as_json:
        print_json(found.as_json(), indent=2)
        return
    if not found.records:
        of = f" of {session!r}" if session else ""
        raise BadInput(
            f"nothing was traced{of}; `hookline config set trace.level full` keeps everything"
        )
    out = console_of()
    out.print(measured_table("hook", found.hooks))
    out.print()
    out.print(measured_table("plugin", found.plugins))
    turns = f"{found.turns} turn(s), {duration(found.turn_seconds)}"
    out.print(f"\n[dim]{found.records:,} dispatches in {turns}[/]")


def measured_table(what: str, rows: list[Measured]) -> Table:
    """A line for each, the one that took longest first."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column(what, no_wrap=True)
    for heading in ("calls", "p50", "p95", "total", "of turns", "errors"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        share = f"{100 * row.share:.2f} %" if row.share is not None else ""
        times = (duration(row.p50), duration(row.p95), duration(row.total))
        errors = f"[red]{row.errors}[/]" if row.errors else "0"
        grid.add_row(said(row.name), f"{row.calls:,}", *times, share, errors)
    return grid


# --- coverage ---


def show_coverage(app: Hookline, *, as_json: bool = False) -> None:
    """Every declared hook with its call sites; exit code 1 where something can never run."""

    async def look() -> Coverage:
        traces = await Tracing.of(app).store()
        return cover(app.hooks, await traces.fired(), tools=app.tools.names())

    found = with_trace(app, look)
    if as_json:
        print_json(found.as_json(), indent=2)
    else:
        coverage_tables(app, found)
    if not found.complete or app.failures:
        raise typer.Exit(FAILED)


def coverage_tables(app: Hookline, found: Coverage) -> None:
    """The hooks, then the problems."""
    out = console_of()
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("hook", "called in", "attached", "seen", "last"):
        grid.add_column(heading, overflow="fold")
    for each in found.hooks:
        first = said(each.sites[0]) if each.sites else "[red]nowhere[/]"
        more = f" +{len(each.sites) - 1}" if len(each.sites) > 1 else ""
        last = datetime.fromtimestamp(each.last).strftime("%Y-%m-%d %H:%M") if each.last else ""
        names = said(", ".join(dict.fromkeys(each.attached)))
        grid.add_row(
            said(each.hook), first + more, names, f"{each.fired:,}" if each.fired else "", last
        )
    out.print(grid)
    out.print()
    for each in found.hooks:
        if not each.sites:
            out.print(f"[red]!![/]  {said(each.hook)} is declared and called nowhere")
    for fault in found.faults:
        out.print(f"[red]!![/]  {said(str(fault))}")
    for failure in app.failures:
        out.print(f"[red]!![/]  {said(str(failure))}")
    if found.complete and not app.failures:
        runner = "tools and models are reached through the one runner alone"
        out.print(f"{len(found.hooks)} hooks, each called somewhere; every handler can run; {runner}")


# --- texts ---


def console_of() -> GuardedConsole:
    """The terminal; on a pipe, lines as wide as they need be."""
    found = console()
    return found if found.is_terminal else console(width=1000, soft_wrap=True)


def said(text: str) -> str:
    """A text that was recorded: it can neither steer the terminal nor pass for markup."""
    return escape(printable(str(text)))


def value(given: Any) -> str:
    """A value in one line."""
    return said(brief(given, 80))


def duration(seconds: float) -> str:
    """A time as people read it."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
