"""The skills plugin: skills and instructions, on the same hooks as anyone else's plugin."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from typing import Protocol

    from hookline.catalog import Hooks
    from hookline.hooks import Outcome
    from hookline.specs import SkillSpec
    from hookline.tools.tool import Tool

    from .skill import Problem
    from .skills import Skills

    class App(Protocol):
        """What the plugin needs of the app."""

        hooks: Hooks
        workspace: Path


log = logging.getLogger("hookline")


class SkillsPlugin:
    """Tell the model which skills there are and what the project asks for; load on demand."""

    def __init__(self, app: App, *, home: Path | None = None, profile: Path | None = None) -> None:
        self.app = app
        self.home = home
        """The user's home; by default the one of whoever runs this."""
        self.profile = profile
        """The folder of the profile in use."""

    @cached_property
    def skills(self) -> Skills:
        """The skills there are, looked for when they are first needed."""
        from .skills import Skills

        specs, problems = self._given()
        skills = Skills.discover(self.app.workspace, self._home(), specs, self.profile)
        skills.problems.extend(problems)
        for problem in skills.problems:
            log.warning("skill.left_out %s", problem)
        return skills

    def _home(self) -> Path | None:
        try:
            return self.home or Path.home()
        except RuntimeError:  # a user without a home
            return None

    def _given(self) -> tuple[list[SkillSpec], list[Problem]]:
        """The skills that plugins describe; one that is wrong does not take the others with it."""
        from hookline.hooks.errors import error_text

        from .skill import Problem

        specs: list[SkillSpec] = []
        problems: list[Problem] = []
        for outcome in self.app.hooks.call_sync("register_skills"):
            for given in _items(outcome):
                try:
                    specs.append(_spec(given))
                except Exception as error:
                    reason = f"register_skills: {error_text(error)}"
                    problems.append(Problem("plugin", outcome.plugin_name, reason))
        return specs, problems

    @hookimpl
    def system_prompt(self) -> str | None:
        """A line for each skill, where there are any."""
        return self.skills.brief() or None

    @hookimpl
    def bootstrap_files(self) -> list[str]:
        """What the `AGENTS.md` files say, as they are now."""
        from .instructions import instructions, render

        return render(instructions(self.app.workspace, self.home))

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """Load a skill and read its files, where there are any."""
        if not len(self.skills):
            return []
        from .tools import skill_tools

        return skill_tools(self.skills)


def _items(outcome: Outcome) -> Iterable[Any]:
    """What a plugin gave, or the error in its place."""
    if not outcome.success:
        return [outcome.error]
    given: Any = outcome.result
    if given is None:
        return []
    if isinstance(given, list | tuple):
        return [*cast("Iterable[Any]", given)]
    return [given]


def _spec(given: Any) -> SkillSpec:
    from hookline.specs import SkillSpec

    if isinstance(given, Exception):
        raise given
    return given if isinstance(given, SkillSpec) else SkillSpec.model_validate(given)
