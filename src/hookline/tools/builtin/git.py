"""git, asked about a folder; a stranger's repository may not start programs through it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SECONDS = 30
_GIT = (
    "git",
    # a stranger's repository may name programs that git would start here
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "grep.fullName=false",
)  # fmt: skip
_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
_GREP = ("grep", "-l", "-z", "-a", "-F", "--untracked", "--no-recurse-submodules", "--no-color")


def listed(folder: Path) -> list[str] | None:
    """The files that git knows or does not ignore; None where there is no git to ask."""
    return _names(folder, *_LIST, done=(0,))


def containing(folder: Path, text: str, *, ignore_case: bool) -> set[str] | None:
    """Those of them with a text in them, without repositories within this one."""
    case = ("-i",) if ignore_case else ()
    names = _names(folder, *_GREP, *case, "-e", text, done=(0, 1))
    return None if names is None else {*names}


def _names(folder: Path, *command: str, done: tuple[int, ...]) -> list[str] | None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        ended = subprocess.run(
            [*_GIT, *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ended.returncode not in done:
        return None
    return [os.fsdecode(name) for name in ended.stdout.split(b"\0") if name]
