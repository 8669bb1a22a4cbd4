"""`hookline hook`: the hooks of this home in Claude Code, Codex, Gemini CLI, opencode and pi."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import BadInput

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from .install import Scope, SettingsChange

Host = Annotated[
    str, typer.Option("--for", metavar="HOST", help="claude-code, codex, gemini, opencode or pi.")
]
Project = Annotated[bool, typer.Option("--project", help="For this project only.")]
User = Annotated[bool, typer.Option("--user", help="For all projects of this user; the default.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def add_hook(cli: typer.Typer, app: Hookline) -> None:
    """Add the command `hook`."""
    group = typer.Typer(help="Run these hooks in another agent.", no_args_is_help=False)
    cli.add_typer(group, name="hook", rich_help_panel="Change what it does")

    @group.callback(invoke_without_command=True)
    def judge(
        context: typer.Context,
        host: Annotated[
            str, typer.Option("--for", metavar="HOST", help="Whose event is on standard input.")
        ] = "",
    ) -> None:
        """Judge the event on standard input, and answer as the host expects."""
        if context.invoked_subcommand is None:
            run_client([host])

    @group.command()
    def install(host: Host, project: Project = False, user: User = False, yes: Yes = False) -> None:
        """Write these hooks into the settings of a host."""
        from .install import (
            InstallRecord,
            SettingsChange,
            installation,
            settings_of,
        )

        record = InstallRecord(app.home)
        settings = settings_of(host, scope_of(project, user), app.workspace)
        change, base = installation(settings, record)
        if change.is_empty:
            typer.echo(f"installed already in {settings.path}")
            return
        if apply(change, yes):
            record.keep(SettingsChange(settings, base, change.after))
            typer.echo(f"installed in {settings.path}")
            if host == "codex":
                typer.echo(
                    "Codex runs new hooks only after you approve them: start `codex` once and say yes."
                )

    @group.command()
    def uninstall(host: Host, project: Project = False, user: User = False, yes: Yes = False) -> None:
        """Take these hooks out of the settings of a host."""
        from .install import InstallRecord, removal, settings_of

        record = InstallRecord(app.home)
        settings = settings_of(host, scope_of(project, user), app.workspace)
        change = removal(settings, record)
        if change.is_empty:
            typer.echo(f"not installed in {settings.path}")
        elif apply(change, yes):
            record.keep(change)
            typer.echo(f"removed from {settings.path}")

    @group.command()
    def status(as_json: Json = False) -> None:
        """Show where these hooks are installed and if the server runs."""
        from .install import everywhere

        rows = [
            {
                "host": each.host,
                "scope": each.scope,
                "path": str(each.path),
                "installed": installed_in(each),
            }
            for each in everywhere(app.workspace)
        ]
        pid = server_of(app.home)
        if as_json:
            import json

            typer.echo(json.dumps({"server": pid, "hosts": rows}))
            return
        for row in rows:
            if row["installed"]:
                typer.echo(f"{row['host']}  {row['scope']}  {row['path']}")
        if not any(row["installed"] for row in rows):
            typer.echo("installed nowhere; `hookline hook install --for claude-code` does it")
        typer.echo(
            "no server runs; the next event starts one" if pid is None else f"server: process {pid}"
        )

    @group.command()
    def serve(
        idle: Annotated[
            float | None, typer.Option(min=0.1, help="Seconds without an event until it ends.")
        ] = None,
    ) -> None:
        """Answer events from a running process; the first starts it."""
        from .server import serve as run

        if not run(idle, app.home):
            raise BadInput(f"a server runs already: process {server_of(app.home)}")

    @group.command()
    def stop() -> None:
        """End the server."""
        from signal import SIGTERM

        pid = server_of(app.home)
        if pid is None:
            typer.echo("no server runs")
            return
        os.kill(pid, SIGTERM)
        typer.echo(f"ended process {pid}")


def run_client(arguments: list[str]) -> None:
    """Be the client of one event, and end the process with its exit code."""
    from hookline.system.hook_client import main

    if not arguments or not arguments[0]:
        raise BadInput("say whose event this is: hookline hook --for claude-code")
    raise SystemExit(main(arguments))


def scope_of(project: bool, user: bool) -> Scope:
    """Where to install."""
    if project and user:
        raise BadInput("choose --project or --user, not both")
    return "project" if project else "user"


def apply(change: SettingsChange, yes: bool) -> bool:
    """Show a change, ask, and make it; return whether it was made."""
    typer.echo(change.diff)
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("there is no terminal to ask on; look at the change, then add --yes")
        if not typer.confirm("Write this?"):
            typer.echo("nothing was changed")
            return False
    try:
        change.apply()
    except OSError as error:
        raise BadInput(f"{change.settings.path} cannot be written: {error.strerror}") from None
    return True


def installed_in(settings: object) -> bool:
    """Whether the hooks are in a file; one that cannot be read counts as one without them."""
    from .install import HostSettings

    assert isinstance(settings, HostSettings)
    with suppress(BadInput):
        return settings.is_installed()
    return False


def server_of(home: Path) -> int | None:
    """The process that serves a home."""
    import socket
    import struct

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(home / "hook" / "socket"))
        except OSError:
            return None
        if not hasattr(socket, "SO_PEERCRED"):
            return 0
        about = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", about)[0]
