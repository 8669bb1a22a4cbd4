"""The plugin `claude`: makes the subagent files of the user and the project known as roles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hookline.hooks import hookimpl
from hookline.system.home import user_home

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

_FOLDER = Path(".claude", "agents")


class ClaudePlugin:
    """The roles of `.claude/agents`; where there is no such folder, nothing else is imported."""

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self.roles: dict[str, Path] = {}
        """The file of each role that comes from one."""

    @hookimpl
    def resources_discover(self) -> None:
        """Read the files, at the start and at every reload."""
        for name in self.roles:
            self.app.subagents.roles.pop(name, None)
        self.roles = {}
        home = self.app.user_home or user_home()
        places = [home] if home is not None else []
        if self.app.project and self.app.workspace not in places:
            places.append(self.app.workspace)
        for place in places:
            if (place / _FOLDER).is_dir():
                self._read(place)

    @hookimpl
    def system_prompt(self) -> str | None:
        """A line for each role, where the agent can delegate."""
        if not self.roles or "delegate" not in self.app.tools:
            return None
        known = self.app.subagents.roles
        lines = [f"- {name}: {known[name].description}" for name in self.roles if name in known]
        return "\n".join(["Agents that delegate can give tasks to, by `role`:", "", *lines])

    def _read(self, place: Path) -> None:
        """Define the roles of one folder; a name that is taken keeps its meaning."""
        from hookline.ext.skills.errors import SkillError
        from hookline.runtime.user_commands import configured_models

        from .agents import FOLDER, agent_files, read_agent

        app, models = self.app, configured_models(self.app)
        for path in agent_files(place / FOLDER):
            try:
                role, unused = read_agent(path, place, models)
            except SkillError as error:
                self._warn(f"{path} is left out: {error}")
                continue
            if role.name in app.subagents.roles:
                other = self.roles.get(role.name, "the configuration")
                self._warn(f"{path} is left out: {other} has an agent named {role.name!r}")
                continue
            for text in unused:
                self._warn(f"{path}: {text}")
            app.subagents.define(role)
            self.roles[role.name] = path

    def _warn(self, text: str) -> None:
        if text not in self.app.plugins.warnings:
            self.app.plugins.warn(text)
