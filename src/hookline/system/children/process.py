"""Start a child process: `popen`, `run` and, for an event loop, `start`.

    said = run(["git", "--version"], timeout=10).stdout

Each takes the sandbox that the child runs in, if there is one, and what to ask of it (`kind`,
`profile`, …). Wait for a child in the thread that started it, or start it in a thread that lasts: a
sandbox may end it together with that thread.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

from . import guard
from .environment import environment
from .own import import_path

if TYPE_CHECKING:
    from asyncio.subprocess import Process

__all__ = [
    "DEVNULL", "NEUTRAL", "PIPE", "Child", "Process", "TimeoutExpired", "ended", "launch_of", "popen",
    "python", "run", "signal_group", "start",
]  # fmt: skip

Stream: TypeAlias = IO[Any] | int

NEUTRAL = "/"
"""The working directory of a child that needs none: not the workspace, and always the same."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); import runpy; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


class Launched(Protocol):
    """A command as it is started in a sandbox."""

    @property
    def argv(self) -> list[str]: ...
    @property
    def env(self) -> dict[str, str]: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def pass_fds(self) -> tuple[int, ...]: ...
    def begin(self) -> None:
        """Let the command start: until then it waits, and it ends if this process ends."""

    def close(self) -> None:
        """Release what the command needed while it ran."""


class Confiner(Protocol):
    """A sandbox: it turns a command into one that runs inside it."""

    @property
    def launch(self) -> Callable[..., Launched]:
        """Takes a command with its `cwd`, its whole environment as `secrets`, and what is wanted."""
        ...


class Child(subprocess.Popen[bytes]):
    """A process that does not outlive this one."""

    _code: int | None = None

    @property
    def returncode(self) -> Any:
        """The exit code, once it was collected."""
        return self._code

    @returncode.setter
    def returncode(self, code: int | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._code = code
        if code is not None:
            ended(self.pid)


def popen(
    argv: Sequence[str],
    *,
    cwd: str | Path = NEUTRAL,
    env: Mapping[str, str] | None = None,
    stdin: Stream = DEVNULL,
    stdout: Stream = DEVNULL,
    stderr: Stream = DEVNULL,
    sandbox: Confiner | None = None,
    lasting: bool = False,
    **wanted: Any,
) -> Child:
    """Start a child; `OSError` if that is not possible. A `lasting` one may outlive this process."""
    command, options, launched = _prepared(argv, cwd, env, sandbox, wanted)
    try:
        child = Child(command, stdin=stdin, stdout=stdout, stderr=stderr, **options)
    except BaseException:
        if launched is not None:
            launched.close()
        raise
    _begun(child.pid, launched, lasting=lasting)
    return child


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    stdin: Stream = DEVNULL,
    stdout: Stream = PIPE,
    stderr: Stream = PIPE,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run a child to its end; one that takes longer is killed, and `TimeoutExpired` raised."""
    with popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, **options) as child:
        try:
            out, err = child.communicate(timeout=timeout)
        except BaseException:
            signal_group(child.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


async def start(
    argv: Sequence[str],
    *,
    cwd: str | Path = NEUTRAL,
    env: Mapping[str, str] | None = None,
    stdin: Stream = DEVNULL,
    stdout: Stream = DEVNULL,
    stderr: Stream = DEVNULL,
    limit: int = 1 << 16,
    sandbox: Confiner | None = None,
    **wanted: Any,
) -> Process:
    """Start a child of the running event loop; call `ended` once it has ended."""
    from asyncio import create_subprocess_exec

    command, options, launched = _prepared(argv, cwd, env, sandbox, wanted)
    try:
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        process = await create_subprocess_exec(*command, limit=limit, **streams, **options)
    except BaseException:
        if launched is not None:
            launched.close()
        raise
    _begun(process.pid, launched)
    return process


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module in this Python: isolated, with the import path of this process."""
    path = json.dumps(import_path(sys.path, os.environ))
    return [sys.executable, "-I", "-c", _BOOT, path, module, *arguments]


def launch_of(pid: int) -> Any:
    """How the sandbox started a child that has not ended yet; None without a sandbox."""
    return _launched.get(pid)


def ended(pid: int) -> None:
    """Note that a child has ended: the number of its group may become another's."""
    launched = _launched.pop(pid, None)
    if launched is not None:
        # The process outside of the sandbox has ended; if it was killed early, the inside has not
        # noticed.
        signal_group(pid, signal.SIGKILL)
        launched.close()
    guard.guard.remove(pid)


def signal_group(group: int, number: signal.Signals) -> bool:
    """Send a signal to a process group; False if there is none."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


_launched: dict[int, Launched] = {}
"""The resources that a sandbox must release, by child."""


def _begun(pid: int, launched: Launched | None, *, lasting: bool = False) -> None:
    if launched is not None:
        _launched[pid] = launched
    if not lasting:
        guard.guard.add(pid)
    if launched is not None:
        launched.begin()


def _prepared(
    argv: Sequence[str],
    cwd: str | Path,
    env: Mapping[str, str] | None,
    sandbox: Confiner | None,
    wanted: dict[str, Any],
) -> tuple[list[str], dict[str, Any], Launched | None]:
    """The command with its program as an absolute path, and how to start it."""
    folder, variables = str(cwd), environment() if env is None else dict(env)
    if not folder.startswith("/"):
        raise ValueError(f"the working directory of a child must be absolute, not {folder!r}")
    command = [_located(argv[0], folder, variables.get("PATH")), *argv[1:]]
    options: dict[str, Any] = {"cwd": folder, "env": variables, "start_new_session": True}
    if sandbox is None:
        return command, options, None
    # the whole environment was chosen for this child: the sandbox has nothing to take out of it
    launched = sandbox.launch(command, cwd=Path(folder), env={}, secrets=variables, **wanted)
    options.update(cwd=launched.cwd, env=launched.env, pass_fds=launched.pass_fds)
    return launched.argv, options, launched


def _located(name: str, folder: str, path: str | None) -> str:
    if "/" in name:
        return name if name.startswith("/") else f"{folder.rstrip('/')}/{name}"
    found = shutil.which(name, path=path or os.defpath)
    if found is None or not found.startswith("/"):
        raise FileNotFoundError(2, "No such program", name)
    return found


os.register_at_fork(after_in_child=_launched.clear)  # they are the parent's
