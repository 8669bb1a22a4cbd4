"""`hookline sandbox -- COMMAND`: run a command the way the agent's commands run."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import typer

from hookline.sandbox import SandboxError

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.sandbox import Profile


def run_confined(app: Hookline, command: list[str], profile: Profile | None, hosts: list[str]) -> None:
    """Run a command in the sandbox of the workspace, and exit with its exit code."""
    sandbox = app.sandbox
    if not sandbox.active:
        raise SandboxError(f"there is no sandbox here: {sandbox.reason}")
    raise typer.Exit(asyncio.run(_run(app, command, profile, hosts)))


async def _run(app: Hookline, command: list[str], profile: Profile | None, hosts: list[str]) -> int:
    async with app.running():
        with app.sandbox.launch(
            command,
            cwd=app.workspace,
            env=dict(os.environ),
            profile=profile,
            network=hosts or None,
        ) as launch:
            if launch.note:
                print(launch.note, file=sys.stderr)
            child = await asyncio.create_subprocess_exec(
                *launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds
            )
            return await child.wait()
