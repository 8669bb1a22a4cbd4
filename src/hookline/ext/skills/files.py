"""The files of a folder and their text; a link that leads out of the folder is never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from .errors import SkillError

_SKIPPED = {".git", "__pycache__", "node_modules"}
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


def inside(path: Path, folder: Path) -> Path:
    """The real place of a path, which must lie in the folder with all links followed."""
    try:
        real, home = path.resolve(), folder.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a NUL character
        raise SkillError(f"{path} cannot be followed: {error}") from error
    if not real.is_relative_to(home):
        raise SkillError(f"{path} leads out of {folder} to {real}; links must stay in the folder")
    return real


def read_text(path: Path, folder: Path, largest: int) -> str:
    """The text of a regular file in a folder, its lines ended alike and without a BOM."""
    data = _read(inside(path, folder), path, largest)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillError(f"{path} is not UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise SkillError(f"{path} is not text: it contains NUL characters")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read(real: Path, path: Path, largest: int) -> bytes:
    try:
        # open exactly what was checked, and do not block on a pipe
        handle = os.open(real, os.O_RDONLY | _NO_LINK | _NO_WAIT)
        try:
            about = os.fstat(handle)
            if stat.S_ISDIR(about.st_mode):
                raise SkillError(f"{path} is a folder")
            if not stat.S_ISREG(about.st_mode):
                raise SkillError(f"{path} is not a regular file")
            if about.st_size > largest:
                raise SkillError(f"{path} has {about.st_size:,} bytes; {largest:,} are allowed")
            return os.read(handle, largest)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise SkillError(f"{path} does not exist") from None
    except OSError as error:
        raise SkillError(f"{path} cannot be read: {error.strerror}") from error


def files_in(folder: Path, most: int) -> list[str]:
    """The files below a folder, sorted, as relative paths with `/`, up to a limit.

    Links that lead out of the folder are left out, and linked folders are not entered.
    """
    found = sorted(_walk(folder))
    return found[:most]


def _walk(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = Path(parent, name)
            if path.is_symlink() and not _stays(path, folder):
                continue
            yield path.relative_to(folder).as_posix()


def _stays(path: Path, folder: Path) -> bool:
    try:
        return inside(path, folder).is_file()
    except SkillError:
        return False
