"""`hookline sandbox -- COMMAND`: run a command the way the agent's commands run."""

from __future__ import annotations

import asyncio
import sys
from signal import SIGKILL
from typing import TYPE_CHECKING

import typer

from hookline.sandbox import SandboxError
from hookline.system.children.environment import environment
from hookline.system.children.process import ended, launch_of, signal_group, start

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.sandbox import Profile


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
