"""The skills plugin: skills and instructions, on the same hooks as anyone else's plugin."""

from __future__ import annotations

import logging
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.hooks import hookimpl
from hookline.system.home import user_home

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.specs import SkillSpec
    from hookline.tools.tool import Tool

    from .skills import Skills

log = logging.getLogger("hookline")


class SkillsPlugin:
    """Tell the model which skills there are and what the project asks for; load on demand."""

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self.paths: list[Path] = []
        """Further folders of skills, from `resources_discover`."""

    @property
    def profile(self) -> Path:
        """The folder of the profile in use."""
        return self.app.config.profile_dir

    @hookimpl
    def resources_loaded(self, skill_paths: list[Path], reason: str) -> None:
        """Search again, also in these additional folders; tools that hold the skills see the result."""
        if not skill_paths and not self.paths and reason == "startup":
            return
        self.paths = skill_paths
        if "skills" in self.__dict__:
            self.skills.become(self._found())
        if "tools" in self.app.__dict__:
            for tool in self.register_tools():
                if tool.name not in self.app.tools:
                    self.app.tools.add(tool)

    @cached_property
    def skills(self) -> Skills:
        """The skills there are, looked for when they are first needed."""
        return self._found()

    def _found(self) -> Skills:
        from .skills import Skills

        app = self.app
        skills = Skills.discover(
            app.workspace,
            self.app.user_home or user_home(),
            self._given(),
            self.profile,
            paths=self.paths,
            project=app.project,
            trust=app.trust,
        )
        for problem in skills.problems:
            log.warning("skill.left_out %s", problem)
        for skill in skills.list():
            for warning in skill.warnings:
                log.warning("skill.format %s: %s", skill.path, warning)
        return skills

    def _given(self) -> list[SkillSpec]:
        """The skills that plugins describe."""
        from hookline.specs import SkillSpec

        return self.app.plugins.gather(
            "register_skills",
            SkillSpec.model_validate,
            lambda spec: spec.name,
            "skill",
            lambda spec: self.skills.remove(spec.name, "plugin"),
        )

    @hookimpl
    def system_prompt(self, state: dict[str, Any]) -> str | None:
        """A line for each skill that the agent may use, if there are any."""
        return self.skills.brief(only=state.get("skills")) or None

    @hookimpl
    def bootstrap_files(self) -> list[str]:
        """What the `AGENTS.md` files say, as they are now."""
        from .instructions import instructions, of_profile, render

        own = of_profile(self.profile)
        if not self.app.project:
            return own
        return [*own, *render(instructions(self.app.workspace, self.app.user_home))]

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """The tools that load a skill and read its files, if there are skills."""
        if not len(self.skills):
            return []
        from .tools import skill_tools

        return skill_tools(self.skills)
