"""Files: what lies in a folder, without what version control keeps for itself or ignores.

Where git is there and the folder is in its working tree, git says what is ignored; elsewhere only
the folders of version control are left out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import git

_VCS = {".git", ".hg", ".svn", ".jj", ".bzr", "CVS"}


def files_in(folder: Path, sandbox: Any = None) -> list[str]:
    """The files below a folder, sorted, as paths relative to it with `/`; links are not followed.

    git runs in the sandbox, if one is given.
    """
    own, nested = split(folder, sandbox)
    return sorted((*own, *nested))


def split(folder: Path, sandbox: Any = None) -> tuple[list[str], list[str]]:
    """The same in two lists: the folder's own, and those of repositories within its repository."""
    names = git.listed(folder, sandbox)
    if names is None:
        return [*_walk(folder)], []
    own: list[str] = []
    nested: list[str] = []
    for name in names:
        try:
            mode = os.lstat(f"{folder}/{name}").st_mode
        except OSError:  # git also lists deleted files that were not committed
            continue
        if stat.S_ISDIR(mode):
            nested += (f"{name.rstrip('/')}/{inner}" for inner in files_in(folder / name, sandbox))
        else:
            own.append(name)
    return own, nested


def _walk(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _VCS)
        inside = Path(parent).relative_to(folder)
        links = (name for name in folders if (Path(parent) / name).is_symlink())
        yield from ((inside / name).as_posix() for name in (*names, *links))


def image_type(probe: bytes) -> str:
    """What kind of picture begins like this; empty for anything else."""
    if probe.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if probe.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if probe.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if probe.startswith(b"RIFF") and probe[8:12] == b"WEBP":
        return "image/webp"
    return ""
