"""Instructions: the `AGENTS.md` and `CLAUDE.md` files from the top of the repository to the workspace.

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
from .imports import DEEPEST, TEXTS, imports_of

log = logging.getLogger("hookline")

FILE = "AGENTS.md"
FILES = (FILE, "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
"""The files of each folder, in the order in which they are shown."""
OF_USER = ".claude/CLAUDE.md"
LIMIT = 32_000
"""Characters of one file that are shown."""
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Instruction:
    """The contents of one file."""

    path: Path
    text: str


def instructions(workspace: Path, home: Path | None = None, limit: int = LIMIT) -> list[Instruction]:
    """What the files say that hold for a workspace; the nearest comes last, and imports follow theirs.

    They are looked for from the workspace up to the root of its repository; outside of one, up to
    the home or else the root of the file system. A file above the workspace that belongs to somebody
    else is left out, so that nobody else on the machine can put words in. A link counts only if it
    leads to a Markdown file in these folders that is not hidden, so that it cannot name `.env`.
    """
    # Every turn looks, and most find nothing: names are text until a file is there.
    nearest = _real(str(workspace))
    reading = _Reading(limit)
    own = os.path.join(home or _home() or "", OF_USER)  # noqa: PTH118
    if _exists(own):
        reading.read(Path(own), Path(own).resolve().parent.parent, links=True)
    if not any(map(_exists, _candidates(nearest))):
        return reading.found
    folders, repository = _folders(nearest, home)
    for folder in reversed(folders):
        for file in FILES:
            name = os.path.join(folder, file)  # noqa: PTH118
            try:
                about = os.stat(name)  # noqa: PTH116
            except OSError:
                continue
            path = Path(name)
            if folder != nearest and not _trusted(about.st_uid, nearest):
                log.warning("instructions.left_out %s: it belongs to another user", path)
                continue
            reading.read(path, Path(repository or folder))
    return reading.found


class _Reading:
    """Reads files and what they import; a file that was shown already is not shown again."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._above: list[Path] = []
        """The real places of the files that are being read, outermost first."""
        self._seen: set[Path] = set()
        self.found: list[Instruction] = []

    def read(self, path: Path, top: Path, *, links: bool = False) -> None:
        """Read a file in `top`, which nothing that it imports may leave."""
        try:
            real = inside(path, top)
            if not links:
                _check_link(path, real, top)
            if real in self._seen:
                return  # CLAUDE.md is often a link to AGENTS.md
            text = read_text(path, top, _LARGEST)
        except SkillError as error:
            log.warning("instructions.left_out %s", error)
            return
        self._seen.add(real)
        if shown := text.strip():
            self.found.append(Instruction(path, _cut(shown, self._limit)))
        if path.name == FILE or "@" not in text:
            return
        self._above.append(real)
        for line, named in imports_of(text, path):
            if why := self._refusal(named, top):
                log.warning("instructions.left_out %s:%s: @%s %s", path, line, named, why)
            else:
                self.read(named, top, links=True)
        self._above.pop()

    def _refusal(self, path: Path, top: Path) -> str:
        try:
            real = inside(path, top)
        except SkillError as error:
            return f"is not imported: {error}"
        if real in self._above:
            return "imports itself in a circle"
        if len(self._above) >= DEEPEST:
            return f"is not imported: more than {DEEPEST} files import one another"
        hidden = [part for part in real.relative_to(top.resolve()).parts if part.startswith(".")]
        if real.suffix.lower() not in TEXTS or any(part != ".claude" for part in hidden):
            return f"is not imported: only visible files that end in {', '.join(TEXTS)} are"
        return ""


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
    return [
        f"Instructions for {each.path.parent}, from {each.path.name}:\n\n{each.text}" for each in found
    ]


def _exists(name: str) -> bool:
    return os.access(name, os.F_OK)  # half of what asking for its attributes costs


@lru_cache(maxsize=16)
def _candidates(folder: str) -> tuple[str, ...]:
    return tuple(os.path.join(each, file) for each in _upward(folder) for file in FILES)  # noqa: PTH118


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
