"""Limits of a child: resource limits, and for root a cgroup where one can be made."""

from __future__ import annotations

import atexit
import os
import shutil
import time
from functools import cache
from pathlib import Path

from .settings import ChildLimits

_ENTER = 'echo 0 >"$1/cgroup.procs" || exit 125; shift; exec "$@"'


def prlimit(limits: ChildLimits) -> list[str]:
    """The command line that limits each process, up to the child's own.

    It runs inside: a user namespace counts its own processes, so that the limit is the child's and not
    that of everything that the user runs.
    """
    program = _prlimit()
    if program is None:
        return []
    line = [program, "--core=0"]
    values = {
        "data": limits.memory,
        "nproc": limits.processes,
        "nofile": limits.open_files,
        "cpu": limits.cpu_seconds,
        "fsize": limits.file_size,
    }
    return [*line, *(f"--{name}={value}" for name, value in values.items() if value is not None), "--"]


@cache
def _prlimit() -> str | None:
    return shutil.which("prlimit", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")


def enter_cgroup(limits: ChildLimits) -> list[str]:
    """The command line that counts a child's processes, up to the child's own; empty where not needed.

    Resource limits do not hold root. All confined children of this process share one cgroup: moving a
    process into it takes microseconds, making one takes milliseconds.
    """
    if os.getuid() != 0 or limits.processes is None:
        return []
    group = _cgroup(limits.processes)
    return [] if group is None else ["/bin/sh", "-c", _ENTER, "enter", str(group)]


@cache
def _cgroup(processes: int) -> Path | None:
    parent = _parent()
    if parent is None:
        return None
    group = parent / f"hookline-{os.getpid()}-{processes}"
    try:
        group.mkdir(exist_ok=True)
        (group / "pids.max").write_text(str(processes))
    except OSError:
        return None
    atexit.register(_remove, group, os.getpid())
    return group


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


def _parent() -> Path | None:
    """Where a cgroup that counts processes can be made, of version 2 or of version 1."""
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
