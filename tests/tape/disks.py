"""Disks that are small enough to be filled: each a file system of its own, in memory."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A small disk, and the file that takes its room."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no byte."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def leave(self, room: int) -> None:
        """Leave this many bytes."""
        self.fill()
        with self._filler.open("r+b") as file:
            file.truncate(max(0, self._filler.stat().st_size - room))

    def make_room(self) -> None:
        """Let go of what fills it."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def mounted(path: Path, size: str) -> Iterator[Disk]:
    """A disk at a folder; without the right to mount one, the test is skipped."""
    path.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "hookline", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        problem = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError as error:
        problem = str(error)
    if problem:
        pytest.skip(f"a full disk needs the right to mount one (root on Linux): {problem}")
    try:
        yield Disk(path)
    finally:
        # Lazily: a test that failed may have files open, which must not keep the disk.
        subprocess.run(["umount", "--lazy", str(path)], check=True, timeout=30)
