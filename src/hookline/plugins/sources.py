"""Source files: read once, whole and never by a link that leads out of their folder.

What is judged by its hash and what is run are the same bytes, because there is no second reading.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hookline.hooks.errors import HooklineError

LARGEST = 1_000_000
"""Bytes of one file."""

_SKIPPED = {"__pycache__", "node_modules"}
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


class SourceError(HooklineError):
    """A file that cannot be read, or may not be."""


@dataclass(frozen=True)
class Source:
    """The bytes of a file, as they were when it was read."""

    path: Path
    content: bytes

    @cached_property
    def sha256(self) -> str:
        """The hash by which it is trusted."""
        return sha256_of(self.content)


def sha256_of(content: bytes) -> str:
    """The SHA-256 of some bytes, as text."""
    from hashlib import sha256

    return sha256(content).hexdigest()


def read_source(path: Path, root: Path | None = None, largest: int = LARGEST) -> Source:
    """Read a regular file; where a root is given, it must lie there with all links followed."""
    real = real_path(path, root)
    try:
        # what was checked is what is opened, and a pipe does not hold up the reader
        handle = os.open(real, os.O_RDONLY | _NO_LINK | _NO_WAIT)
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise SourceError(f"{path} is not a regular file")
            if about.st_size > largest:
                raise SourceError(f"{path} has {about.st_size:,} bytes; {largest:,} are allowed")
            with os.fdopen(os.dup(handle), "rb") as file:
                return Source(path, file.read(largest))
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error


def real_path(path: Path, root: Path | None) -> Path:
    """Where a path leads; refused where that is outside the root."""
    try:
        real = path.resolve()
        home = root.resolve() if root is not None else None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL character
        raise SourceError(f"{path} cannot be followed: {error}") from error
    if home is not None and not real.is_relative_to(home):
        raise SourceError(
            f"{path} leads out of the project to {real}; put a copy there, links must stay inside"
        )
    return real


def files_below(folder: Path, *, every: bool = False) -> list[Path]:
    """The files below a folder, sorted; no folder is entered by a link, which counts as a file.

    Hidden ones and caches are left out, unless every file is asked for.
    """
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(parent, name).is_symlink()]
        seen = [name for name in (*names, *linked) if every or not name.startswith(".")]
        found.extend(Path(parent, name) for name in seen)
        if not every:
            folders[:] = [n for n in folders if n not in _SKIPPED and not n.startswith(".")]
    return sorted(found)
