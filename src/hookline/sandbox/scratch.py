"""Scratch: the folder of this process for what exists only while it runs, and what others left behind.

Each process holds a lock in its own folder, so that what a killed one left is recognised: its lock is
free. A process identifier would not do, since containers share folders but not process numbers.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread

from hookline.errors import SandboxError


def base() -> Path:
    """The folder of this user; it need not exist."""
    return Path(tempfile.gettempdir()) / f"hookline-{os.getuid()}"


def made() -> Path:
    """The folder of this user; an error if someone else could write to it."""
    folder = base()
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise SandboxError(f"{folder} is not a folder of yours alone; remove it")
    return folder


@cache
def own() -> Path:
    """The folder of this process; what processes that were killed left is removed meanwhile."""
    parent = made()
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    _locked(folder / "lock")  # until this process ends
    atexit.register(_remove, folder, os.getpid())
    Thread(target=sweep, args=(parent,), name="hookline:scratch", daemon=True).start()
    return folder


def sweep(parent: Path) -> int:
    """Remove the folders of processes that have ended without doing so; how many there were."""
    removed = 0
    for folder in parent.glob("run-*"):
        with suppress(OSError):
            lock = _locked(folder / "lock", create=False)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            removed += 1
    return removed


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def _locked(path: Path, *, create: bool = True) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    file = os.open(path, flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


os.register_at_fork(after_in_child=own.cache_clear)
