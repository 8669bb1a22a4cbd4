"""The tools of skills: load one, and read one of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.tools.context import ToolContext

from .errors import SkillError
from .files import read_text

if TYPE_CHECKING:
    from hookline.tools.tool import Tool

    from .skill import Skill
    from .skills import Skills

_LARGEST = 10_000_000
_ROOM = 40_000
"""Characters of a file in one answer; a result may have somewhat more."""


def skill_tools(skills: Skills) -> list[Tool]:
    """`load_skill` and `read_skill_file`, for these skills. Both only read."""
    from hookline.errors import ToolError
    from hookline.tools.tool import tool

    @tool(side_effects="read", registry=None)
    def load_skill(context: ToolContext, name: str) -> str:
        """Load the instructions of a skill, with the folder and the files that belong to it.

        name: The name of the skill, from the list of skills.

        """
        try:
            within_reach(context, name)
            return skills.load(name)
        except SkillError as error:
            raise ToolError(str(error)) from error

    @tool(side_effects="read", registry=None)
    def read_skill_file(context: ToolContext, name: str, path: str, start: int = 1) -> str:
        """Read a text file that belongs to a skill.

        name: The name of the skill.
        path: The file, relative to the folder of the skill.
        start: The first line, counted from 1.

        """
        try:
            within_reach(context, name)
            return _page(_text(skills.get(name), path), max(start, 1))
        except SkillError as error:
            raise ToolError(str(error)) from error

    return [load_skill, read_skill_file]


def within_reach(context: ToolContext, name: str) -> None:
    """Refuse a skill that a subagent was not given."""
    given = context.state.get("skills")
    if given is not None and name not in given:
        raise SkillError(f"the skill {name!r} is not among those of {context.agent_id}")


def _text(skill: Skill, path: str) -> str:
    from hookline.hooks.errors import suggestion

    place = skill.file(path)
    if not place.exists():
        raise SkillError(
            f"the skill {skill.name!r} has no file {path!r}{suggestion(path, skill.files)}"
        )
    return read_text(place, place.parent, _LARGEST)


def _page(text: str, start: int) -> str:
    """As many lines as fit, and where to continue."""
    lines = text.splitlines(keepends=True)
    if start > max(len(lines), 1):
        raise SkillError(f"the file has {len(lines):,} lines; start is {start:,}")
    taken: list[str] = []
    room = _ROOM
    for line in lines[start - 1 :]:
        room -= len(line)
        if room < 0:
            break
        taken.append(line)
    shown = len(taken)
    if start - 1 + shown == len(lines):
        return "".join(taken)
    if not taken:
        taken, shown = [lines[start - 1][:_ROOM] + "…\n"], 1
    return "".join(taken) + f"[there is more: go on with start={start + shown}]"
