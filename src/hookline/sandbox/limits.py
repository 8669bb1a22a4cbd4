"""How a child starts: when its parent says so, with resource limits, and for root in a cgroup."""

from __future__ import annotations

import atexit
import os
import resource
import shutil
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from .settings import ChildLimits

_WAIT = 'read -r go <"/dev/fd/$1" || exit 125'
_ENTER = 'echo 0 >"$2" || exit 125'
_BECOME = 'shift 2; exec "$@"'


def start(limits: ChildLimits, gate: int, group: str = "") -> list[str]:
    """The command line that starts a child, up to the sandbox's own.

    It waits for a line at the descriptor `gate`. The parent writes it once the guard knows the child's
    group; if the parent dies before that, the child never starts. For root, the children of one `group`
    share their limit on processes: what the agent runs cannot use up that of the hooks that guard it.
    """
    steps = [_WAIT, "ulimit -c 0"]
    tasks: Path | None = None
    if os.getuid() == 0 and limits.processes is not None:
        tasks = _cgroup(limits.processes, group)
    if tasks is not None:
        steps.append(_ENTER)
    # /bin/sh counts memory in kibibytes and the size of files in blocks of 512 bytes
    for flag, kind, value, unit in (
        ("-d", resource.RLIMIT_DATA, limits.memory, 1024),
        ("-n", resource.RLIMIT_NOFILE, limits.open_files, 1),
        ("-t", resource.RLIMIT_CPU, limits.cpu_seconds, 1),
        ("-f", resource.RLIMIT_FSIZE, limits.file_size, 512),
    ):
        hard = resource.getrlimit(kind)[1]
        if value is not None:
            lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
            steps.append(f"ulimit {flag} {max(1, lower // unit)} || exit 125")
    script = "; ".join((*steps, _BECOME))
    return ["/bin/sh", "-c", script, "start", str(gate), "" if tasks is None else str(tasks)]


def count(limits: ChildLimits) -> list[str]:
    """The command line that limits the number of processes, up to the child's own.

    It runs inside: a user namespace counts its own processes, so that the limit is the child's and not
    that of everything that the user runs. It does not bind root, who gets a cgroup instead.
    """
    if limits.processes is None or os.getuid() == 0 or (program := prlimit()) is None:
        return []
    return [program, f"--nproc={limits.processes}", "--"]


@cache
def prlimit() -> str | None:
    """Where `prlimit` of util-linux is, if it is installed."""
    return shutil.which("prlimit", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")


def missing() -> str:
    """Why the number of processes is not limited here; empty if it is."""
    if os.getuid() == 0:
        return "" if _parent() else "no limit on processes: root cannot make a cgroup that counts them"
    return "" if prlimit() else "no limit on processes: `prlimit` of util-linux is missing"


@cache
def _cgroup(processes: int, name: str) -> Path | None:
    """The file by which a process enters a cgroup that children of this process share."""
    parent = _parent()
    if parent is None:
        return None
    group = parent / f"hookline-{os.getpid()}-{processes}-{name}"
    try:
        _remove_stale(parent)
        group.mkdir(exist_ok=True)
        (group / "pids.max").write_text(str(processes))
    except OSError:
        return None
    atexit.register(_remove, group, os.getpid())
    # Moving a process by `cgroup.procs` waits for a grace period of the kernel, some milliseconds.
    # `tasks` of version 1 moves one thread, and the shell has only one.
    tasks = group / "tasks"
    return tasks if tasks.exists() else group / "cgroup.procs"


def _remove_stale(parent: Path) -> None:
    """Remove the cgroups of processes that were killed; one that is in use cannot be removed."""
    for group in parent.glob("hookline-*-*"):
        pid = group.name.split("-")[1]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with suppress(OSError):
                group.rmdir()


def _remove(group: Path, owner: int) -> None:
    """Remove a cgroup; its last process may still be on its way out."""
    for _ in range(20):
        if os.getpid() != owner:
            return
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.01)
        else:
            return


@cache
def _parent() -> Path | None:
    """Where a cgroup that counts processes can be created, of version 2 or 1."""
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for _, names, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        own = path.lstrip("/")
        if "pids" in names.split(","):
            candidates = [root / names / own]
        elif not names:
            candidates = [(root / own).parent, root / own]
        else:
            continue
        for folder in candidates:
            control = folder / "cgroup.subtree_control"
            usable = (folder / "pids.max").exists() or folder == root / "pids"
            if control.exists():
                usable = "pids" in control.read_text().split()
            if usable and folder.is_relative_to(root) and os.access(folder, os.W_OK):
                return folder
    return None


os.register_at_fork(after_in_child=_cgroup.cache_clear)
