"""Files: what lies in a folder, without what version control keeps for itself or ignores.

Where git is there and the folder is in its working tree, git says what is ignored; elsewhere only
the folders of version control are left out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

_VCS = {".git", ".hg", ".svn", ".jj", ".bzr", "CVS"}
_GIT_SECONDS = 30
_GIT = (
    "git",
    # a stranger's repository may name programs that git would start here
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate",
)  # fmt: skip


def files_in(folder: Path) -> list[str]:
    """The files below a folder, sorted, as paths relative to it with `/`; links are not followed."""
    return sorted(_files(folder))


def _files(folder: Path) -> Iterator[str]:
    listed = _git_files(folder)
    if listed is None:
        yield from _walk(folder)
        return
    for name in listed:
        path = folder / name
        if path.is_dir() and not path.is_symlink():  # a repository within this one
            yield from (f"{name.rstrip('/')}/{inner}" for inner in _files(path))
        elif os.path.lexists(path):  # git also lists what was deleted and not committed
            yield name


def _git_files(folder: Path) -> list[str] | None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(
            _GIT,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _walk(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _VCS)
        inside = Path(parent).relative_to(folder)
        links = (name for name in folders if (Path(parent) / name).is_symlink())
        yield from ((inside / name).as_posix() for name in (*names, *links))
