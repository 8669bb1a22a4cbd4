"""`hookline trust`: show what a project would run, and trust it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import BadInput

from .options import check_workspace
from .project import cut, decide, description, never_text, notice, shown

if TYPE_CHECKING:
    from hookline.plugins.trust import TrustItem
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline trust`."""

    @cli.command()
    def trust(
        path: Annotated[
            Path | None, typer.Argument(help="The project; by default the current folder.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust without asking.")] = False,
        full: Annotated[
            bool, typer.Option("--full", help="Show everything, with hashes and covered files.")
        ] = False,
        list_: Annotated[bool, typer.Option("--list", help="Show what is trusted.")] = False,
        revoke: Annotated[bool, typer.Option("--revoke", help="No longer trust the project.")] = False,
    ) -> None:
        """Show what this project would run, and trust it."""
        if list_:
            list_trusted(app, path)
        elif revoke:
            revoke_trust(app, path)
        else:
            trust_project(app, path, yes=yes, full=full)


def trust_project(app: Hookline, path: Path | None, *, yes: bool, full: bool = False) -> None:
    """Show what is not trusted yet, ask, and record exactly what was shown."""
    if not app.project:
        raise BadInput("--no-project leaves the project out, so there is nothing to trust")
    if path is not None:
        app.workspace = check_workspace(path)
        app.config.reload(app.workspace)
    app.hook_files.announced = 0  # what follows says it
    asyncio.run(app.hook_files.start())
    items = app.hook_files.items()
    pending = app.trust.pending(app.workspace, items)
    for failure in app.failures:
        if failure.plugin.startswith("project"):
            told = str(failure.error).replace(f"{app.workspace}/", "")
            typer.echo(cut(f"left out: {shown(told)}"), err=True)
    if not pending:
        typer.echo(f"project {shown(str(app.workspace))}")
        typer.echo("everything that would run is trusted" if items else "nothing here needs trust")
        if never := never_text(app):
            typer.echo(f"inert: {never}; `hookline config show` says why")
        return
    if full or yes:
        for item in pending:
            typer.echo("\n".join(description(item, app.trust.knows(item))))
        lines(shown(line) for line in app.config.inert_lines())
    elif not sys.stdin.isatty():
        typer.echo("\n".join(notice(app, pending)[0]))
    if not yes and not confirmed(app, pending, full=full):
        typer.echo("nothing was trusted")
        return
    app.trust.grant(pending)
    typer.echo(f"trusted: {len(pending)}")


def list_trusted(app: Hookline, path: Path | None) -> None:
    """Show what is trusted, in every project or in one."""
    projects = app.trust.projects()
    if path is not None:
        place = str(path.resolve())
        projects = {place: projects.get(place, {})}
    if not any(projects.values()):
        typer.echo("nothing is trusted")
    for project, trusted in sorted(projects.items()):
        if trusted:
            typer.echo(f"project {shown(project)}")
            lines(f"{sha256}  {shown(name)}" for name, sha256 in sorted(trusted.items()))


def revoke_trust(app: Hookline, path: Path | None) -> None:
    """Trust a project no longer; it need not exist any more."""
    project = (path or app.workspace).resolve()
    gone = app.trust.revoke(project)
    if not gone:
        raise BadInput(
            f"nothing of {shown(str(project))} is trusted; `hookline trust --list` shows what is"
        )
    typer.echo(f"no longer trusted: {len(gone)}")
    lines(map(shown, gone))


def confirmed(app: Hookline, pending: list[TrustItem], *, full: bool) -> bool:
    """Ask the person; without a terminal nothing is trusted."""
    if not sys.stdin.isatty():
        raise BadInput(
            "there is no terminal to ask on; run `hookline trust --yes` after looking at the list"
        )
    if not full:
        return decide(app, pending, err=False)
    them = "it" if len(pending) == 1 else f"these {len(pending)}"
    return typer.confirm(f"Trust {them}? What is trusted runs with your rights.")


def lines(texts: Iterable[str]) -> None:
    """Some lines below another one."""
    for text in texts:
        typer.echo(f"  {text}")
