"""Skills and instructions: folders with a `SKILL.md`, and the `AGENTS.md` files of a workspace.

    from hookline.ext.skills import Skills

    skills = Skills.discover(workspace, home)
    skills.brief()          # a line for each, for the system prompt
    skills.load("review")   # one of them whole

`hookline.ext.skills.instructions` has what is to be done with `AGENTS.md`.
Nothing that lies in a skill's folder is run, by discovery or by loading.
"""

TYPE_CHECKING = False  # as in `typing`, which is too much to load for one constant

if TYPE_CHECKING:
    from .errors import SkillError, UnknownSkill
    from .skill import Skill, SkillProblem
    from .skills import Skills
    from .tools import skill_tools
else:
    _HOMES = {
        "SkillProblem": "skill",
        "Skill": "skill",
        "SkillError": "errors",
        "Skills": "skills",
        "UnknownSkill": "errors",
        "skill_tools": "tools",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'hookline.ext.skills' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"hookline.ext.skills.{_HOMES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "Skill",
    "SkillError",
    "SkillProblem",
    "Skills",
    "UnknownSkill",
    "skill_tools",
]
