"""Entering a project: what it brings that is not trusted is shown, and a person decides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

from hookline.text import visible

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.plugins.trust import Item

WIDTH = 78
LINES = 14
"""Lines for what a project brings: with the rest of the notice they fit on a terminal of 24 lines."""

_ORDER = ("config", "settings", "hook file", "skill")


def enter(app: Hookline, *, ask: bool = False) -> None:
    """Tell what of the project is inert, once; with `ask` on a terminal, let the person decide."""
    files = app.hook_files
    if files.announced is not None or not app.project:
        return
    pending = files.inert()
    files.announced = len(pending)
    if pending and ask and is_terminal():
        typer.echo("\n".join(notice(app, pending)), err=True)
        if typer.confirm("Trust it? What is trusted runs with your rights.", err=True):
            app.trust.grant(pending)
            app.config.reload()
            files.announced = 0
        else:
            typer.echo("It stays inert. `hookline trust` asks again.", err=True)
    elif line := summary(app, len(pending)):
        typer.echo(f"hookline: {line}", err=True)


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def summary(app: Hookline, count: int) -> str:
    """One line about everything in the project that is inert; nothing where nothing is."""
    from hookline.hookfiles import inert_text

    if count:
        return inert_text(count)
    if app.config.fault:
        return shown(app.config.fault)
    never = never_text(app)
    return f"inert in this project: {never}" if never else ""


def notice(app: Hookline, pending: list[Item]) -> list[str]:
    """What a project brings that would run, in no more lines than a screen has."""
    never = never_text(app)
    body = outline(pending, LINES - bool(never), changed=app.trust.knows)
    lines = [
        "This project brings things that would run or change your settings.",
        cut(f"  {shown(str(app.workspace))}"),
        "Nothing of this counts until you trust it:",
        *body,
    ]
    if never:
        lines.append(cut(f"  {'never':<9} {never} stay as you have them"))
    lines.append("`hookline trust --full` shows all of it, with hashes.")
    return lines


def outline(
    items: Iterable[Item], most: int, changed: Callable[[Item], bool] = lambda item: False
) -> list[str]:
    """A line for each item and for what it runs, as many as there is room for."""
    items = sorted(items, key=lambda item: (_ORDER.index(item.kind), item.name))
    for runs in (4, 2, 1, 0):
        lines = [line for item in items for line in _lines(item, runs, changed(item))]
        if len(lines) <= most:
            return lines
    return [*lines[: most - 1], f"  … and {len(lines) - most + 1} more"]


def _lines(item: Item, runs: int, changed: bool) -> list[str]:
    many = len(item.runs)
    name = shown(item.name) + (" (changed)" if changed else "")
    if runs == 0:
        told = f" ({many} to run)" if many else ""
        return [cut(f"  {item.kind:<9} {name}{told}")]
    lines = [cut(f"  {item.kind:<9} {name}")]
    room = runs if many <= runs else runs - 1
    lines += [cut(f"            {shown(each)}") for each in item.runs[:room]]
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
