"""Ask git about the files of a folder, without giving the repository a say in what git does.

The configuration of a repository can name programs for git to start: `core.fsmonitor`, hooks,
filters, remotes of a partial clone, and whatever a later version of git adds. So git never reads it:
it works with the repository's index and objects, but with a git directory of ours, which holds
nothing. A repository that needs more than that (a split index, for one) is treated as a folder
without git.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.errors import SandboxError
from hookline.system.children.environment import environment, program
from hookline.system.children.process import TimeoutExpired, run

from .process import inside

_SECONDS = 30
_OURS = Path(__file__).with_name("gitdir")
_LONGEST = 4096
"""Bytes of a file that leads to a git directory."""
_LARGEST = 1_000_000
"""Bytes of a configuration that is looked at."""
_SAFE = (
    # the user's own configuration counts, unless it leads back into the repository
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "grep.fullName=false",
    "-c", "submodule.recurse=false",
)  # fmt: skip
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
_GREP = ("grep", "-l", "-z", "-a", "-F", "--untracked", "--no-recurse-submodules", "--no-color")
_SHA256 = re.compile(rb"^[ \t]*objectformat[ \t]*=[ \t]*\"?sha256", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a repository keeps what is used of it."""

    root: Path
    index: Path
    objects: Path
    exclude: Path
    format: str

    @classmethod
    def around(cls, folder: Path) -> Repository | None:
        """The repository whose working tree a folder is in."""
        for root in (folder, *folder.parents):
            if os.path.lexists(root / ".git"):
                return cls._at(root, folder)
        return None

    @classmethod
    def _at(cls, root: Path, folder: Path) -> Repository | None:
        own = root / ".git"
        if own.lstat().st_uid not in (os.geteuid(), folder.stat().st_uid):
            return None  # someone else's, such as one in /tmp
        if not own.is_dir():
            text = _text(own, _LONGEST)
            if not text.startswith(b"gitdir:"):
                return None
            own = root / os.fsdecode(text.removeprefix(b"gitdir:").strip())
        common = own / os.fsdecode(_text(own / "commondir", _LONGEST).strip() or b".")
        sha256 = _SHA256.search(_text(common / "config", _LARGEST))
        exclude, index = common / "info" / "exclude", own / "index"
        if index.exists() and not index.is_file():
            return None
        return cls(root, index, common / "objects", exclude, "sha256" if sha256 else "sha1")


def listed(folder: Path, sandbox: Any = None) -> list[str] | None:
    """The files that git tracks or does not ignore; None if the folder is in no repository."""
    return _names(folder, sandbox, *_LIST, done=(0,))


def containing(folder: Path, text: str, *, ignore_case: bool, sandbox: Any = None) -> set[str] | None:
    """Those of them that contain a text, without the repositories within this one."""
    case = ("-i",) if ignore_case else ()
    names = _names(folder, sandbox, *_GREP, *case, "-e", text, done=(0, 1))
    return None if names is None else {*names}


def _names(folder: Path, sandbox: Any, *command: str, done: tuple[int, ...]) -> list[str] | None:
    try:
        repository = Repository.around(folder)
        if repository is None:
            return None
        git = program("git", avoid=(str(folder), str(repository.root)))
        if git is None:
            return None
        ended = run(
            [git, *_SAFE, "-C", str(folder), *_excluding(repository, command)],
            env=_environment(repository),
            timeout=_SECONDS,
            **inside(sandbox, "git", folder),
        )
    except (OSError, ValueError, TimeoutExpired, SandboxError):
        return None
    if ended.returncode not in done:
        return None
    return [os.fsdecode(name) for name in ended.stdout.split(b"\0") if name]


def _excluding(repository: Repository, command: tuple[str, ...]) -> tuple[str, ...]:
    """A command with the repository's own list of what to ignore."""
    if command[0] != "ls-files" or not repository.exclude.is_file():
        return command
    return *command, f"--exclude-from={repository.exclude}"


def _environment(repository: Repository) -> dict[str, str]:
    return environment({
        "GIT_DIR": str(_OURS / repository.format),
        "GIT_WORK_TREE": str(repository.root),
        "GIT_INDEX_FILE": str(repository.index),
        "GIT_OBJECT_DIRECTORY": str(repository.objects),
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    })  # fmt: skip


def _text(path: Path, most: int) -> bytes:
    """The beginning of a file; nothing if it is not a regular file, such as an endless pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(handle, most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)
