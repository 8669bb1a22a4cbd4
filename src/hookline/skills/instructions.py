"""Instructions: the `AGENTS.md` files from the top of the repository down to the workspace.

from hookline.skills.instructions import instructions, render

render(instructions(workspace))    # for the system prompt; the nearest file has the last word
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .errors import SkillError
from .files import read_text

log = logging.getLogger("hookline")

FILE = "AGENTS.md"
LIMIT = 32_000
"""Characters of one file that are shown."""
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Instruction:
    """What one file says."""

    path: Path
    text: str


def instructions(workspace: Path, home: Path | None = None, limit: int = LIMIT) -> list[Instruction]:
    """What the `AGENTS.md` files say that hold for a workspace; the nearest comes last.

    They are looked for from the workspace up to the root of its repository; outside of one, up to
    the home or else the root of the file system. A file above the workspace that belongs to somebody
    else is left out, so that nobody else on the machine can put words in, and so is a link that
    leads out of these folders.
    """
    workspace = workspace.resolve()
    folders, repository = _folders(workspace, home or _home())
    owners = _owners(workspace)
    found: list[Instruction] = []
    for folder in reversed(folders):
        path = folder / FILE
        try:
            about = os.stat(path)  # noqa: PTH116  # once for each folder and turn
        except OSError:
            continue
        if owners and folder != workspace and about.st_uid not in owners:
            log.warning("instructions.left_out %s: it belongs to another user", path)
            continue
        try:
            text = read_text(path, repository or folder, _LARGEST).strip()
        except SkillError as error:
            log.warning("instructions.left_out %s", error)
            continue
        if text:
            found.append(Instruction(path, _cut(text, limit)))
    return found


def render(found: Iterable[Instruction]) -> list[str]:
    """The texts for the system prompt, each with the folder that it holds for."""
    return [f"Instructions for {each.path.parent}, from {FILE}:\n\n{each.text}" for each in found]


def _folders(workspace: Path, home: Path | None) -> tuple[list[Path], Path | None]:
    """The folders to look in, nearest first, and the root of the repository if there is one."""
    every = [workspace, *workspace.parents]
    for at, folder in enumerate(every):
        if os.path.lexists(f"{folder}/.git"):
            return every[: at + 1], folder
    if home in every:
        return every[: every.index(home) + 1], None
    return every, None


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None


def _owners(workspace: Path) -> set[int]:
    """Whose files are taken: the user's, root's, and those of whoever owns the workspace."""
    if not hasattr(os, "getuid"):
        return set()
    try:
        return {os.getuid(), 0, workspace.stat().st_uid}
    except OSError:
        return {os.getuid(), 0}


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {len(text) - limit:,} more characters in the file]"
