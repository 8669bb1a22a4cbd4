"""A snapshot: the files that a trusted command runs from, with their hashes, to be checked again.

A snapshot covers single files, whole folders, and the modules that Python would import from a folder.
It also holds the lists of names, so a file that is added to a covered folder counts as a change.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from hookline.errors import SourceError

from .sources import files_below, read_source, sha256_of

Scope: TypeAlias = Literal["tree", "modules"]

LARGEST = 20_000_000
LARGEST_TOTAL = 64_000_000
"""Bytes of all files of one snapshot."""
MOST = 500
"""Files of one folder."""
SETTLED = 2_000_000_000
"""Nanoseconds after which a file's times show every change: a file system's clock is coarse."""

_MODULES = (".py", ".pyc", ".so", ".pyd")
_Stamp: TypeAlias = tuple[int, int, int, int, int]


@dataclass(slots=True)
class _Covered:
    real: str
    sha256: str
    stamp: _Stamp | None


@dataclass(slots=True)
class Snapshot:
    """Files of a project, as they were when they were hashed."""

    project: Path
    files: dict[Path, _Covered] = field(default_factory=dict[Path, _Covered])
    folders: dict[tuple[Path, Scope], tuple[str, ...]] = field(
        default_factory=dict[tuple[Path, Scope], tuple[str, ...]]
    )
    read: int = 0
    """Bytes of all covered files."""
    unread: str = ""
    """A file that is there and could not be read, so that a change of it would not be seen."""

    def add(self, path: Path, content: bytes | None = None) -> None:
        """Cover a file; with `content`, as these bytes, which the caller has read."""
        if path not in self.files:
            self.files[path] = self._covered(path, content)

    def add_folder(self, folder: Path, scope: Scope = "tree") -> bool:
        """Cover a folder with all its files. Returns False if there are too many."""
        if (folder, scope) in self.folders:
            return True
        try:
            names = listed(folder, scope)
        except SourceError:
            return False
        if len(names) > MOST:
            return False
        self.folders[folder, scope] = names
        for name in names:
            if not name.endswith("/"):
                self.add(folder / name)
        return True

    def lines(self) -> list[str]:
        """The snapshot as text that a hash can be taken of."""
        return [
            *(f"{each.sha256}  {self._name(path)}" for path, each in sorted(self.files.items())),
            *(
                f"{sha256_of(os.fsencode(chr(0).join(names)))}  {scope} {self._name(folder)}"
                for (folder, scope), names in sorted(self.folders.items())
            ),
        ]

    def changed(self) -> str:
        """The first file that is not as it was, relative to the project; nothing while all are."""
        for (folder, scope), names in self.folders.items():
            try:
                same = listed(folder, scope) == names
            except SourceError:
                same = False
            if not same:
                return f"{self._name(folder)}/"
        for path, each in self.files.items():
            if os.path.realpath(path) != each.real:
                return self._name(path)
            stamp = _stamp(path)
            if stamp is not None and stamp == each.stamp:
                continue
            self.read = 0
            now = self._covered(path)
            if now.sha256 != each.sha256:
                return self._name(path)
            each.stamp = now.stamp
        return ""

    def _covered(self, path: Path, content: bytes | None = None) -> _Covered:
        stamp = _stamp(path)
        try:
            if content is None:
                if self.read > LARGEST_TOTAL:
                    raise SourceError("there is more than can be read")
                content = read_source(path, self.project, LARGEST).content
                self.read += len(content)
            sha256 = sha256_of(content)
        except SourceError as error:
            sha256, stamp = f"unreadable: {error}", None
            if os.path.lexists(path):
                self.unread = self._name(path)
        if stamp is not None and stamp != _stamp(path):
            stamp = None  # it changes just now
        if stamp is not None and time.time_ns() - max(stamp[:2]) < SETTLED:
            stamp = None  # it could change again without another time
        return _Covered(os.path.realpath(path), sha256, stamp)

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.project).replace(os.sep, "/")


def listed(folder: Path, scope: Scope) -> tuple[str, ...]:
    """The names in a folder; for `modules`, what Python imports: files, and packages with a `/`."""
    if scope == "tree":
        return tuple(path.relative_to(folder).as_posix() for path in _below(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return ()
    names: list[str] = []
    for entry in entries:
        if entry.name.endswith(_MODULES):
            names.append(entry.name)
        elif os.path.exists(f"{entry.path}/__init__.py"):  # noqa: PTH110
            names.append(f"{entry.name}/")
    return tuple(names)


def _below(folder: Path) -> list[Path]:
    """Every file below a folder, hidden ones too; Python's own caches are never read or written."""
    return files_below(folder, every=True, skipped=("__pycache__",))


def _stamp(path: Path) -> _Stamp | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino, about.st_dev)


def digest(kind: str, content: bytes, snapshots: Iterable[Snapshot]) -> str:
    """One hash for a file and everything that its commands reach."""
    lines = [kind, sha256_of(content), *(line for each in snapshots for line in each.lines())]
    return sha256_of("\n".join(lines).encode("utf-8", "surrogateescape"))
