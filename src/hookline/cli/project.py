"""Entering a project: untrusted content is shown, and the person decides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import typer

from hookline.text.printable import visible

if TYPE_CHECKING:
    from hookline.plugins.trust import TrustItem
    from hookline.runtime.app import Hookline

WIDTH = 78
LINES = 14
"""Lines for the contents of a project: with the rest of the notice they fit on 24 lines."""

_ORDER = ("config", "settings", "hook file", "skill")


def enter(app: Hookline, *, ask: bool = False) -> None:
    """Report inactive parts of the project once; with `ask` on a terminal, let the person decide."""
    files = app.hook_files
    if files.announced is not None or not app.project:
        return
    pending = files.inert()
    files.announced = len(pending)
    if pending and ask and is_terminal():
        if decide(app, pending, err=True):
            app.trust.grant(pending)
            app.config.reload()
            files.announced = 0
        else:
            typer.echo("It stays inert. `hookline trust` asks again.", err=True)
    elif line := summary(app, len(pending)):
        typer.echo(f"hookline: {line}", err=True)


def decide(app: Hookline, pending: list[TrustItem], *, err: bool) -> bool:
    """Show the contents of a project and ask. A yes counts only after all of it was on the screen."""
    lines, complete = notice(app, pending)
    typer.echo("\n".join(lines), err=err)
    if not complete:
        if not typer.confirm("This is not all of it. Show everything before you decide?", err=err):
            return False
        everything = [line for item in pending for line in description(item, app.trust.knows(item))]
        if not paged([*everything, *(shown(line) for line in app.config.inert_lines())], err=err):
            return False
    return typer.confirm("Trust it? What is trusted runs with your rights.", err=err)


def paged(lines: Iterable[str], *, err: bool) -> bool:
    """Show lines one screen at a time. Returns whether the person read to the end."""
    size = get_terminal_size()
    width, height = max(size.columns - 1, 20), max(size.lines - 1, 2)
    rows = [row for line in lines for row in wrapped(line, width)]
    pages = [rows[at : at + height] for at in range(0, len(rows), height)]
    for number, page in enumerate(pages, 1):
        typer.echo("\n".join(page), err=err)
        if number == len(pages):
            break
        question = f"Page {number} of {len(pages)}: Enter shows the next one, q stops"
        if typer.prompt(question, default="", show_default=False, err=err).strip():
            return False
    return True


def wrapped(line: str, width: int) -> list[str]:
    """A line in pieces that a terminal does not break, whatever blanks it has."""
    return [line[at : at + width] for at in range(0, len(line), width)] or [""]


def description(item: TrustItem, changed: bool) -> list[str]:
    """Everything about an item: its hash, what it runs and reads, and the files that it covers."""
    covered = [] if item.snapshot is None else item.snapshot.lines()
    return [
        f"{item.kind} {shown(item.name)} ({'changed' if changed else 'new'})",
        f"  sha256 {item.sha256}",
        *(f"  runs {shown(each)}" for each in item.runs),
        *(f"  reads ${shown(name)} from your environment" for name in item.reads),
        *(
            f"  only in the sandbox: {shown(place)}: {shown(why)}"
            for place, why in item.unclear.items()
        ),
        *(f"  covers {shown(line)}" for line in covered),
    ]


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def summary(app: Hookline, count: int) -> str:
    """One line about everything inactive in the project, or nothing."""
    from hookline.runtime.hook_files import inert_text

    if count:
        return inert_text(count)
    if app.config.fault:
        return shown(app.config.fault)
    never = never_text(app)
    return f"inert in this project: {never}" if never else ""


def notice(app: Hookline, pending: list[TrustItem]) -> tuple[list[str], bool]:
    """The contents of a project, in at most one screen of lines, and whether that is everything."""
    never = never_text(app)
    body, complete = outline(pending, LINES - bool(never), changed=app.trust.knows)
    lines = [
        "This project brings things that would run or change your settings.",
        cut(f"  {shown(str(app.workspace))}"),
        "Nothing of this counts until you trust it:",
        *body,
    ]
    if never:
        lines.append(cut(f"  {'never':<9} {never} stay as you have them"))
    lines.append("`hookline trust --full` shows all of it, with hashes.")
    return lines, complete


def outline(
    items: Iterable[TrustItem], most: int, changed: Callable[[TrustItem], bool] = lambda item: False
) -> tuple[list[str], bool]:
    """A line for each item and for what it runs, within the limit, and whether that is everything."""
    items = sorted(items, key=lambda item: (_ORDER.index(item.kind), item.name))
    all_runs = max((len(item.runs) for item in items), default=0)
    lines: list[str] = []
    for runs in (all_runs, 4, 2, 1, 0):
        lines = [line for item in items for line in _lines(item, runs, changed(item))]
        if len(lines) <= most:
            complete = runs == all_runs and all(len(line) <= WIDTH for line in lines)
            return [*map(cut, lines)], complete
    return [*map(cut, lines[: most - 1]), f"  … and {len(lines) - most + 1} more"], False


def _lines(item: TrustItem, runs: int, changed: bool) -> list[str]:
    many = len(item.runs)
    name = shown(item.name) + (" (changed)" if changed else "")
    if item.reads:
        name += f", reads {', '.join(f'${shown(each)}' for each in item.reads)}"
    if runs == 0:
        count = f" ({many} to run)" if many else ""
        return [f"  {item.kind:<9} {name}{count}"]
    lines = [f"  {item.kind:<9} {name}"]
    room = runs if many <= runs else runs - 1
    lines += [f"            {shown(each)}" for each in item.runs[:room]]
    if many > room:
        lines.append(f"            … and {many - room} more")
    return lines


def never_text(app: Hookline) -> str:
    """The sections that never count in a project's file, in a few words."""
    sections = dict.fromkeys(
        each.dotted.partition(".")[0] for each in app.config.inert if not each.waits
    )
    names = [shown(name) for name in sections]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(f"[{name}]" for name in names[:4]) + more


def cut(text: str) -> str:
    """A line that a terminal does not break; the end says how much is left out."""
    if len(text) <= WIDTH:
        return text
    return f"{text[: WIDTH - 16]}… (+{len(text) - WIDTH + 16:,} chars)"


def shown(text: str) -> str:
    """A stranger's text in one line, with everything in it visible."""
    return visible(text, line=True)
