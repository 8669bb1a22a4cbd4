"""`Skills`: the skills there are, by name: listed briefly, loaded one at a time."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from .discovery import Found, in_folder, in_home, in_packages, in_project, judged
from .errors import SkillError, UnknownSkill
from .skill import MOST_FILES, Skill, SkillProblem, Source, UntrustedSkill

if TYPE_CHECKING:
    from hookline.plugins.trust import Trust
    from hookline.specs import SkillSpec

Judge = Callable[[Skill], Skill | UntrustedSkill]

BRIEF = 12_000
"""Characters that the brief list may take of a system prompt."""

_INTRODUCTION = (
    "These skills hold instructions for particular kinds of work. When a task fits one of them, "
    "call load_skill with its name before you start, and follow what it says."
)
_WIDTHS = (1024, 400, 160, 60, 0)
"""How much of each description is shown: the first with which the list fits."""


class Skills:
    """Skills in the order of their precedence: of two with one name the first counts."""

    def __init__(self, found: Iterable[Found] = ()) -> None:
        self._skills: dict[str, Skill] = {}
        self.shadowed: list[tuple[Skill, Skill]] = []
        """Each skill that does not count, with the one of its name that does."""
        self.problems: list[SkillProblem] = []
        """The skills that were left out, and why."""
        self.inert: list[UntrustedSkill] = []
        """The skills that wait to be trusted."""
        self._judge: Judge | None = None
        for each in found:
            if isinstance(each, UntrustedSkill):
                self.inert.append(each)
            elif isinstance(each, SkillProblem):
                self.problems.append(each)
            elif each.name in self._skills:
                self.shadowed.append((each, self._skills[each.name]))
            else:
                self._skills[each.name] = each

    @classmethod
    def discover(
        cls,
        workspace: Path,
        home: Path | None,
        specs: Iterable[SkillSpec] = (),
        profile: Path | None = None,
        packages: Iterable[str] | None = None,
        *,
        paths: Iterable[Path] = (),
        project: bool = True,
        trust: Trust | None = None,
    ) -> Skills:
        """Find skills: the project's, the user's, the profile's, those of plugins, of packages.

        `home` is the user's home, `profile` the folder of the profile; `packages` are the folders
        where packages are installed, by default the entries of `sys.path`. `paths` are further folders
        of skills that plugins name. With a `trust`, skills in the workspace that have scripts are inert
        until they are trusted; without one that is the caller's to decide.
        """
        if home is not None and home.resolve() == workspace.resolve():
            home = None  # its folders are the project's
        found: Iterable[Found] = chain(
            in_project(workspace) if project else (),
            in_home(home) if home else (),
            in_folder(profile / "skills", "profile") if profile else (),
            map(Skill.from_spec, specs),
            chain.from_iterable(in_folder(path, "plugin") for path in paths),
            in_packages(packages, workspace),
        )
        if trust is None:
            return cls(found)

        def judge(skill: Skill) -> Skill | UntrustedSkill:
            return judged(skill, workspace, trust)

        skills = cls(judge(each) if isinstance(each, Skill) else each for each in found)
        skills._judge = judge
        return skills

    def become(self, other: Skills) -> None:
        """Take over another object's skills; holders of this one see them."""
        self.__dict__.update(other.__dict__)

    def remove(self, name: str, source: Source) -> None:
        """Take away the skill of that name from that source; the next in precedence takes its place."""
        self.shadowed = [s for s in self.shadowed if (s[0].name, s[0].source) != (name, source)]
        present = self._skills.get(name)
        if present is None or present.source != source:
            return
        del self._skills[name]
        below = next((pair for pair in self.shadowed if pair[0].name == name), None)
        if below is not None:
            self.shadowed.remove(below)
            self._skills[name] = below[0]

    def get(self, name: str) -> Skill:
        """The skill of that name; an unknown one raises `UnknownSkill` with the nearest names."""
        if name not in self._skills:
            raise UnknownSkill(name, self._skills)
        return self._skills[name]

    def load(self, name: str) -> str:
        """A skill as the model reads it: its location, its files, and its instructions."""
        skill = self.get(name)
        if self._judge is not None and isinstance(inert := self._judge(skill), UntrustedSkill):
            raise SkillError(str(inert))  # it changed since it was found
        parts = [f"# Skill: {skill.name}"]
        if skill.path is not None:
            parts.append(f"Folder: {skill.path}")
        if skill.compatibility:
            parts.append(f"Compatibility: {skill.compatibility}")
        if skill.source == "plugin" and skill.allowed_tools:
            parts.append(f"Tools: {', '.join(skill.allowed_tools)}")
        if files := skill.files:
            parts.append("Files, for read_skill_file, relative to the folder:")
            parts.extend(f"- {name}" for name in files[:MOST_FILES])
            if len(files) > MOST_FILES:
                parts.append("- …")
        return "\n".join(parts) + f"\n\n{skill.body or skill.description}"

    def brief(self, limit: int = BRIEF, *, only: Iterable[str] | None = None) -> str:
        """A line for each skill, or each of those named, for the system prompt; nothing for none.

        Descriptions are shortened, and then skills left out, to stay within the limit.
        """
        shown = [s for s in self._skills.values() if only is None or s.name in only]
        if not shown:
            return ""
        room = limit - len(_INTRODUCTION) - 2
        lines: builtins.list[str] = []
        for width in _WIDTHS:
            lines = [_line(skill, width) for skill in shown]
            if sum(map(len, lines)) + len(lines) <= room:
                return "\n".join([_INTRODUCTION, "", *lines])
        return "\n".join([_INTRODUCTION, "", *_fitting(lines, room)])

    def list(self) -> builtins.list[Skill]:
        """Every skill that counts, highest precedence first."""
        return [*self._skills.values()]

    def __len__(self) -> int:
        return len(self._skills)

    def __contains__(self, name: object) -> bool:
        return name in self._skills


def _line(skill: Skill, width: int) -> str:
    text = " ".join(skill.description.split())
    if len(text) > width:
        text = f"{text[: width - 1].rstrip()}…" if width else ""
    return f"- {skill.name}: {text}" if text else f"- {skill.name}"


def _fitting(lines: builtins.list[str], room: int) -> builtins.list[str]:
    last = f"… and {len(lines):,} more"
    room -= len(last)
    taken: builtins.list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        taken.append(line)
    return [*taken, f"… and {len(lines) - len(taken):,} more"]
