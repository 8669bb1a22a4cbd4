"""Instructions: the `AGENTS.md` files from the top of the repository down to the workspace.

from hookline.ext.skills.instructions import instructions, render

render(instructions(workspace))    # for the system prompt; the nearest file has the last word
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISLNK

from .errors import SkillError
from .files import inside, read_text

log = logging.getLogger("hookline")

FILE = "AGENTS.md"
LIMIT = 32_000
"""Characters of one file that are shown."""
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Instruction:
    """The contents of one file."""

    path: Path
    text: str


def instructions(workspace: Path, home: Path | None = None, limit: int = LIMIT) -> list[Instruction]:
    """What the `AGENTS.md` files say that hold for a workspace; the nearest comes last.

    They are looked for from the workspace up to the root of its repository; outside of one, up to
    the home or else the root of the file system. A file above the workspace that belongs to somebody
    else is left out, so that nobody else on the machine can put words in. A link counts only if it
    leads to a Markdown file in these folders that is not hidden, so that it cannot name `.env`.
    """
    # Every turn looks, and most find nothing: names are text until a file is there.
    nearest = _real(str(workspace))
    if not any(map(_exists, _candidates(nearest))):
        return []
    folders, repository = _folders(nearest, home)
    found: list[Instruction] = []
    for folder in reversed(folders):
        name = os.path.join(folder, FILE)  # noqa: PTH118
        try:
            about = os.stat(name)  # noqa: PTH116
        except OSError:
            continue
        path = Path(name)
        if folder != nearest and not _trusted(about.st_uid, nearest):
            log.warning("instructions.left_out %s: it belongs to another user", path)
            continue
        try:
            top = Path(repository or folder)
            _check_link(path, inside(path, top), top)
            text = read_text(path, top, _LARGEST).strip()
        except SkillError as error:
            log.warning("instructions.left_out %s", error)
            continue
        if text:
            found.append(Instruction(path, _cut(text, limit)))
    return found


def _check_link(path: Path, real: Path, top: Path) -> None:
    """Refuse a link that leads to something that is not meant to be read aloud."""
    if real == path:
        return
    hidden = any(part.startswith(".") for part in real.relative_to(top).parts)
    if hidden or real.suffix.lower() not in (".md", ".mdc", ".markdown"):
        raise SkillError(f"{path} leads to {real}; a link must lead to a visible Markdown file")


def of_profile(folder: Path, limit: int = LIMIT) -> list[str]:
    """What the profile's `AGENTS.md` asks for, whatever the workspace; it comes before the others."""
    name = os.path.join(folder, FILE)  # noqa: PTH118
    if not os.path.lexists(name):
        return []
    path = Path(name)
    try:
        text = read_text(path, path.resolve().parent, _LARGEST).strip()  # a link is the user's own
    except (OSError, SkillError) as error:
        log.warning("instructions.left_out %s", error)
        return []
    asked = f"Instructions of the user, from the profile's {FILE}:\n\n{_cut(text, limit)}"
    return [asked] if text else []


def render(found: Iterable[Instruction]) -> list[str]:
    """The texts for the system prompt, each with the folder that it holds for."""
    return [f"Instructions for {each.path.parent}, from {FILE}:\n\n{each.text}" for each in found]


def _exists(name: str) -> bool:
    return os.access(name, os.F_OK)  # half of what asking for its attributes costs


@lru_cache(maxsize=16)
def _candidates(folder: str) -> tuple[str, ...]:
    return tuple(os.path.join(each, FILE) for each in _upward(folder))  # noqa: PTH118


def _folders(workspace: str, home: Path | None) -> tuple[tuple[str, ...], str | None]:
    """The folders to look in, nearest first, and the root of the repository if there is one."""
    every = _upward(workspace)
    for at, folder in enumerate(every):
        if os.path.lexists(os.path.join(folder, ".git")):  # noqa: PTH118
            return every[: at + 1], folder
    end = str(home) if home else _home()
    if end in every:
        return every[: every.index(end) + 1], None
    return every, None


@lru_cache(maxsize=16)
def _upward(folder: str) -> tuple[str, ...]:
    return folder, *map(str, Path(folder).parents)


def _home() -> str | None:
    home = os.path.expanduser("~")  # noqa: PTH111
    return None if home == "~" else _real(home)


def _real(path: str) -> str:
    """The path with its links resolved; the path itself if it has none."""
    if not os.path.isabs(path):  # noqa: PTH117
        return os.path.realpath(path)
    try:
        for folder in _upward(path)[:-1]:
            if S_ISLNK(os.lstat(folder).st_mode):
                return os.path.realpath(path)
    except OSError:
        return os.path.realpath(path)
    return os.path.normpath(path)


def _trusted(owner: int, workspace: str) -> bool:
    """The trusted owners of files: the user, root, and the owner of the workspace."""
    if not hasattr(os, "getuid") or owner in (os.getuid(), 0):
        return True
    try:
        return owner == os.stat(workspace).st_uid  # noqa: PTH116
    except OSError:
        return False


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {len(text) - limit:,} more characters in the file]"
