"""Find skills: the folders to search, and the skills in each. Nothing there is executed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hookline.plugins.project import SKILLS

from .errors import SkillError
from .files import inside
from .skill import FILE, Skill, SkillProblem, Source, UntrustedSkill

if TYPE_CHECKING:
    from hookline.plugins.trust import Trust

Found = Skill | SkillProblem

MOST = 100
"""Skills that a project can bring."""


def judged(skill: Skill, workspace: Path, trust: Trust) -> Skill | UntrustedSkill:
    """A skill, or why it is inert: a project's skill with more than documents needs trust."""
    from hookline.plugins.project import belongs, skill_item, stays

    if skill.path is None or not belongs(skill.path, workspace):
        return skill
    if not stays(skill.path, workspace):
        return UntrustedSkill(
            skill.source, str(skill.path), "leads out of the project; put a copy in its place"
        )
    item = skill_item(skill.path, workspace)
    if item is None or trust.has(item.path, item.sha256):
        return skill
    scripts = ", ".join(item.runs[:3]) + (", …" if len(item.runs) > 3 else "")
    return UntrustedSkill(
        skill.source,
        str(skill.path),
        f"has files that could run ({scripts}) and is not trusted; `hookline trust` shows them",
    )


def in_project(workspace: Path) -> Iterator[Found]:
    """The skills that a project brings; its folders may not be links to somewhere else."""
    for place in SKILLS:
        yield from _in_project(workspace / place, workspace)


def in_home(home: Path) -> Iterator[Found]:
    """The user's own skills."""
    for place in SKILLS:
        yield from in_folder(home / place, "user")


def _in_project(folder: Path, workspace: Path) -> Iterator[Found]:
    try:
        inside(folder, workspace)
    except SkillError as error:
        yield SkillProblem("project", str(folder), str(error))
        return
    found = in_folder(folder, "project")
    yield from islice(found, MOST)
    if next(found, None) is not None:
        yield SkillProblem(
            "project", str(folder), f"has more than {MOST} skills; the others are left out"
        )


def in_packages(entries: Iterable[str] | None, workspace: Path) -> Iterator[Found]:
    """The skills of installed packages: `skills/` in each entry of `sys.path`.

    The workspace and the current folder can be on `sys.path` by accident of how Python was started; a
    `skills/` folder there belongs to no package.
    """
    here = {workspace.resolve(), Path.cwd()}
    seen: set[Path] = set()
    for entry in sys.path if entries is None else entries:
        if not entry or not Path(entry).is_dir():  # archives, and entries that do not exist
            continue
        place = Path(entry).resolve()
        if place in here or place in seen:
            continue
        seen.add(place)
        yield from in_folder(place / "skills", "package")


def in_folder(folder: Path, source: Source) -> Iterator[Found]:
    """The contents of a skills folder, by name: a skill, or the reason why it is not one."""
    try:
        children = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield SkillProblem(source, str(folder), f"cannot be listed: {error.strerror}")
        return
    for child in children:
        try:
            found = _skill(child, folder, source)
        except SkillError as error:
            yield SkillProblem(source, str(child / FILE), str(error))
        else:
            if found is not None:
                yield found


def _skill(child: Path, folder: Path, source: Source) -> Skill | None:
    try:
        if not child.is_dir() or not ((child / FILE).exists() or (child / FILE).is_symlink()):
            return None
    except OSError as error:
        raise SkillError(f"cannot be read: {error.strerror}") from error
    inside(child, folder)
    return Skill.from_folder(child, source)
