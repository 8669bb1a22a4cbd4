"""Starts the command of a `Launch` the way the children package does, with more freedom for a test."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hookline.sandbox import Launch


@contextmanager
def started(launch: Launch, **options: Any) -> Generator[subprocess.Popen[Any]]:
    """A process that runs."""
    options.setdefault("start_new_session", True)
    with subprocess.Popen(
        launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds, **options
    ) as process:
        launch.begin()
        yield process


def finished(
    launch: Launch, *, given: bytes | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end."""
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    with started(launch, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(launch.argv, process.returncode, out, err)
