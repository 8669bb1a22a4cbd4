"""Source files: read once, whole and never by a link that leads out of their folder.

What is judged by its hash and what is run are the same bytes, because there is no second reading.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hookline.errors import SourceError
from hookline.text.errors import NotRegular, TooLarge
from hookline.text.untrusted import read_regular_file

LARGEST = 1_000_000
"""Bytes of one file."""

LARGEST_FOLDER = 16_000_000
"""Bytes of all files that are read from one folder."""

MOST = 20_000
"""Files and folders below one folder; a larger one is refused."""

_SKIPPED = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class FileSource:
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


def read_source(path: Path, root: Path | None = None, largest: int = LARGEST) -> FileSource:
    """Read a regular file. With a root, it must be inside it after following all links."""
    real = real_path(path, root)
    try:
        # open what was checked: the resolved path, without following another link
        return FileSource(path, read_regular_file(real, largest, follow=False))
    except TooLarge:
        raise SourceError(f"{path} has more than {largest:,} bytes") from None
    except NotRegular:
        raise SourceError(f"{path} is not a regular file") from None
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error


def read_sources(
    paths: Iterable[Path], root: Path | None
) -> Iterator[tuple[Path, FileSource | SourceError]]:
    """Read the files of one folder; a file or a total that is too large is an error."""
    room = LARGEST_FOLDER
    for path in paths:
        try:
            if room <= 0:
                raise SourceError(
                    f"{path} is not read: its folder has more than {LARGEST_FOLDER:,} bytes"
                )
            source = read_source(path, root)
        except SourceError as error:
            yield path, error
        else:
            room -= len(source.content)
            yield path, source


def real_path(path: Path, root: Path | None) -> Path:
    """The target of a path; refused if it is outside the root."""
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


def files_below(folder: Path, *, every: bool = False, skipped: Container[str] = ()) -> list[Path]:
    """The files below a folder, sorted; no folder is entered by a link, which counts as a file.

    Hidden ones and caches are left out, unless every file is asked for; folders named in `skipped`
    are never entered. A folder with more than `MOST` entries is an error: nobody could judge it.
    """
    found: list[Path] = []
    looked = 0
    for parent, folders, names in os.walk(folder):
        looked += len(folders) + len(names)
        if looked > MOST:
            raise SourceError(f"{folder} has more than {MOST:,} files and folders")
        # `Path.is_symlink` raises for a path that is too long
        linked = [name for name in folders if os.path.islink(os.path.join(parent, name))]  # noqa: PTH114, PTH118
        seen = [name for name in (*names, *linked) if every or not name.startswith(".")]
        found.extend(Path(parent, name) for name in seen)
        folders[:] = [n for n in folders if n not in skipped]
        if not every:
            folders[:] = [n for n in folders if n not in _SKIPPED and not n.startswith(".")]
    return sorted(found)
