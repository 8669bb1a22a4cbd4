"""Skills and instructions: folders with a `SKILL.md`, and the `AGENTS.md` files of a workspace.

    from hookline.ext.skills import Skills

    skills = Skills.discover(workspace, home)
    skills.brief()          # a line for each, for the system prompt
    skills.load("review")   # one of them whole

`hookline.ext.skills.instructions` has what is to be done with `AGENTS.md`.
Nothing that lies in a skill's folder is run, by discovery or by loading.
"""

from typing import TYPE_CHECKING

from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .errors import SkillError, UnknownSkill
    from .skill import Skill, SkillProblem
    from .skills import Skills
    from .tools import skill_tools
else:
    __getattr__ = lazy_names(__name__, "errors skill skills tools")

__all__ = [
    "Skill",
    "SkillError",
    "SkillProblem",
    "Skills",
    "UnknownSkill",
    "skill_tools",
]
