"""The skills plugin: skills and instructions, on the same hooks as anyone else's plugin."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.hooks import hookimpl

if TYPE_CHECKING:
    from typing import Protocol

    from hookline.plugins.trust import Trust
    from hookline.specs import SkillSpec
    from hookline.tools.tool import Tool

    from .skills import Skills

    T = TypeVar("T")

    class SkillsPlugins(Protocol):
        """What the plugin needs of the plugins."""

        def gather(
            self,
            hook: str,
            read: Callable[[Any], T],
            key: Callable[[T], str],
            what: str,
            undo: Callable[[T], object] | None = None,
        ) -> list[T]:
            """What plugins give a registration hook."""
            ...

    class SkillsApp(Protocol):
        """What the plugin needs of the app."""

        workspace: Path
        project: bool

        @property
        def trust(self) -> Trust:
            """What may run of the project."""
            ...

        @property
        def plugins(self) -> SkillsPlugins:
            """The other plugins."""
            ...


log = logging.getLogger("hookline")


class SkillsPlugin:
    """Tell the model which skills there are and what the project asks for; load on demand."""

    def __init__(
        self,
        app: SkillsApp,
        *,
        home: Path | None = None,
        profile: Path | Callable[[], Path] | None = None,
    ) -> None:
        self.app = app
        self.home = home
        """The user's home; by default the one of whoever runs this."""
        self._profile = profile
        self.paths: list[Path] = []
        """Further folders of skills, from `resources_discover`."""

    @property
    def profile(self) -> Path | None:
        """The folder of the profile in use, which may be known only when it is needed."""
        return self._profile() if callable(self._profile) else self._profile

    def refresh(self, paths: list[Path]) -> None:
        """Look again, also in these further folders; tools that have the skills see what is found."""
        self.paths = paths
        if "skills" in self.__dict__:
            self.skills.become(self._found())

    @cached_property
    def skills(self) -> Skills:
        """The skills there are, looked for when they are first needed."""
        return self._found()

    def _found(self) -> Skills:
        from .skills import Skills

        app = self.app
        skills = Skills.discover(
            app.workspace,
            self._home(),
            self._given(),
            self.profile,
            paths=self.paths,
            project=app.project,
            trust=app.trust,
        )
        for problem in skills.problems:
            log.warning("skill.left_out %s", problem)
        return skills

    def _home(self) -> Path | None:
        try:
            return self.home or Path.home()
        except RuntimeError:  # a user without a home
            return None

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
        """A line for each skill that the agent may use, where there are any."""
        return self.skills.brief(only=state.get("skills")) or None

    @hookimpl
    def bootstrap_files(self) -> list[str]:
        """What the `AGENTS.md` files say, as they are now."""
        from .instructions import instructions, of_profile, render

        own = of_profile(self.profile) if self.profile else []
        if not self.app.project:
            return own
        return [*own, *render(instructions(self.app.workspace, self.home))]

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """Load a skill and read its files, where there are any."""
        if not len(self.skills):
            return []
        from .tools import skill_tools

        return skill_tools(self.skills)
