"""`hookline sandbox -- COMMAND`: run a command the way the agent's commands run."""

from __future__ import annotations

import asyncio
import sys
from signal import SIGKILL
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.sandbox import SandboxError
from hookline.system.children.environment import environment
from hookline.system.children.process import ended, launch_of, signal_group, start

from .options import Workspace, configure

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.sandbox import Profile


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline sandbox`."""

    @cli.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
    def sandbox(
        command: Annotated[list[str], typer.Argument(help="The command and its arguments.")],
        profile: Annotated[
            str | None, typer.Option(help="read-only, workspace or open; by default the shell's.")
        ] = None,
        host: Annotated[
            list[str] | None, typer.Option(help="A host that it may reach; can be repeated.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Run a command in the sandbox, as the agent's commands run."""
        from hookline.sandbox.settings import PROFILES

        if profile is not None and profile not in PROFILES[:3]:
            raise typer.BadParameter(f"{profile!r} is not one of {', '.join(PROFILES[:3])}")
        configure(app, None, workspace)
        run_confined(app, command, profile, host or [])


def run_confined(app: Hookline, command: list[str], profile: Profile | None, hosts: list[str]) -> None:
    """Run a command in the sandbox of the workspace, and exit with its exit code."""
    sandbox = app.sandbox
    if not sandbox.active:
        raise SandboxError(f"there is no sandbox here: {sandbox.reason}")
    raise typer.Exit(asyncio.run(_run(app, command, profile, hosts)))


async def _run(app: Hookline, command: list[str], profile: Profile | None, hosts: list[str]) -> int:
    async with app.running():
        child = await start(
            command,
            cwd=app.workspace,
            env=environment(keep=app.sandbox.settings.environment),
            stdin=0,
            stdout=1,
            stderr=2,
            sandbox=app.sandbox,
            profile=profile,
            network=hosts or None,
        )
        try:
            if note := launch_of(child.pid).note:
                print(note, file=sys.stderr)
            return await child.wait()
        finally:
            signal_group(child.pid, SIGKILL)
            ended(child.pid)
