"""Placeholders: empty folders that stand for missing ones while confined children run.

A mount needs something to stand on. Where a child must not create `.git`, an empty read-only folder
takes its place, and is removed when the last child that needed it has ended, in any process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from . import scratch

IDLE = 1.0
"""Seconds without a child after which placeholders are removed."""

_MODE = 0o555
"""Marks a folder as a placeholder: a folder that someone else created is writable for its owner."""


class Placeholders:
    """The placeholders of one workspace, shared by all processes that use it."""

    def __init__(self, workspace: Path) -> None:
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        self._path = scratch.base() / f"{name}.lock"
        self._lock = Lock()
        self._users = 0
        self._file = -1
        self._paths: set[Path] = set()
        self._idle_since = 0.0
        self._sweeper: Thread | None = None

    def hold(self, folders: Sequence[Path], files: Mapping[Path, bytes]) -> None:
        """Create what is missing, and keep it until as many calls of `release`."""
        with self._lock:
            if not self._paths:
                self._take()
            self._users += 1
            self._paths.update(folders, files)
            for path in folders:
                with suppress(OSError):
                    path.mkdir(_MODE)
            for path, content in files.items():
                with suppress(OSError):
                    _write(path, content)

    def release(self) -> None:
        """Release them: they are removed soon after the last child that needed them has ended."""
        with self._lock:
            self._users -= 1
            self._idle_since = time.monotonic()
            if self._users == 0 and self._paths and self._sweeper is None:
                self._sweeper = Thread(target=self._sweep, name="hookline:placeholders", daemon=True)
                self._sweeper.start()

    def close(self) -> None:
        """Remove them now, unless a child of this process still runs."""
        with self._lock:
            if self._users == 0:
                self._remove()
                if self._file >= 0:
                    os.close(self._file)
                    self._file = -1

    def _sweep(self) -> None:
        """Wait until no child has been running for a while: removing folders takes its time."""
        while True:
            time.sleep(IDLE)
            with self._lock:
                if self._users == 0 and time.monotonic() - self._idle_since >= IDLE:
                    self._remove()
                    self._sweeper = None
                    return

    def _remove(self) -> None:
        if self._file < 0 or not self._paths:
            return
        with suppress(OSError):  # another process still needs them, and will remove them
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in self._paths:
                _remove(path)
        self._paths.clear()
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take(self) -> None:
        if self._file < 0:
            scratch.made()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_SH)


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)


def _remove(path: Path) -> None:
    """Remove a placeholder, unless something was put into it."""
    with suppress(OSError):
        info = path.lstat()
        if info.st_mode & 0o222:
            return
        if stat.S_ISDIR(info.st_mode):
            path.rmdir()
        elif stat.S_ISREG(info.st_mode) and info.st_size <= 2:
            path.unlink()
