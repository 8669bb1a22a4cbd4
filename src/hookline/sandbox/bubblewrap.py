"""bubblewrap: namespaces, with a view of the file system put together from mounts."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .view import TEMPORARY, View
from .words import words

_PROCESS = words(
    """
    --unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try
    --hostname sandbox --new-session --die-with-parent --cap-drop ALL
    """
)

_KERNEL = words("/proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/mtrr /proc/fs /proc/acpi")
"""bubblewrap leaves these writable for root: without capabilities it still owns them."""

_UNREADABLE = words(
    "/proc/kcore /proc/kallsyms /proc/keys /proc/key-users /proc/timer_list /proc/pressure"
)


def program() -> str | None:
    """Where `bwrap` is, if it is installed; never one from a relative folder on the path."""
    found = shutil.which("bwrap")
    return found if found is not None and Path(found).is_absolute() else None


def arguments(
    bwrap: str,
    view: View,
    temporary: Path,
    cwd: Path,
    *,
    options: Sequence[str] = (),
    shared: Sequence[tuple[Path, str]] = (),
) -> list[str]:
    """The command line up to the child's own; `shared` are files bound under another name."""
    base = "--bind" if view.profile == "open" else "--ro-bind"
    line = [bwrap, *_PROCESS, *options, base, "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in _KERNEL:
        line += ("--ro-bind-try", name, name)
    for name in _UNREADABLE:
        if Path(name).exists():
            line += _mask(Path(name))
    for folder in view.emptied:
        line += ("--perms", "0755", "--tmpfs", str(folder))
    for name in TEMPORARY:
        if Path(name).is_dir() and not Path(name).is_symlink():
            line += ("--bind", str(temporary), name)
    bind = dict.fromkeys(view.readable, "--ro-bind")
    bind |= dict.fromkeys(view.writable, "--bind")
    for path in sorted(bind):  # a folder before what is in it
        line += (bind[path], str(path), str(path))
    for path in sorted(view.pinned):
        line += ("--bind", str(path), str(path))
    for path in sorted(view.readonly):
        line += ("--ro-bind", str(path), str(path))
    for path in view.masked:
        line += _mask(path)
    for path in view.restored_writable:
        line += ("--bind", str(path), str(path))
    for path in view.restored:
        line += ("--ro-bind", str(path), str(path))
    for folder in view.emptied:
        line += ("--remount-ro", str(folder))
    for source, target in shared:
        line += ("--ro-bind", str(source), target)
    return [*line, "--chdir", str(cwd), "--"]


def _mask(path: Path) -> Sequence[str]:
    """An empty folder that cannot be written to, or a file that cannot be opened."""
    if path.is_dir():
        return ("--perms", "0000", "--tmpfs", str(path), "--remount-ro", str(path))
    return ("--ro-bind-try", "/dev/null", str(path))
