"""`AppParts`: the parts of an app, each made when it is first used.

The command line so starts without models, policy or sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.hookspecs import Hooks
from hookline.plugins.loader import Plugins
from hookline.system.private_files import check_home

from .pipeline import Pipeline
from .safeguards import Safeguards

if TYPE_CHECKING:
    import asyncio

    from hookline.agent.engine import Engine
    from hookline.agent.run import Limits
    from hookline.config import Config
    from hookline.models import Models
    from hookline.plugins.trust import Trust
    from hookline.policy import Policy
    from hookline.policy.approvals import Approvals
    from hookline.sandbox import Sandbox
    from hookline.sandbox.settings import SandboxSettings
    from hookline.tape import Entry
    from hookline.tools.registry import Registry
    from hookline.tools.runner import ToolRunner

    from .app import Hookline
    from .subagents import Subagents


SECTIONS = {
    "audit": "hookline.policy.settings:AuditSettings",
    "policy": "hookline.policy.settings:PolicySettings",
    "redaction": "hookline.policy.redaction:RedactionSettings",
    "sandbox": "hookline.sandbox:SandboxSettings",
    "tape": "hookline.tape.settings:TapeSettings",
}
"""The sections of the settings that the runtime itself reads; plugins declare their own."""


class AppParts:
    """The settings of an app and the parts built from them. `Hookline` is the app."""

    home: Path
    workspace: Path
    hooks: Hooks
    plugins: Plugins
    safeguards: Safeguards
    project: bool
    """Whether the workspace's own files count."""
    given_policy: Policy | None
    """The policy, if the settings do not decide on it."""
    _models: Models | None
    _model: str | None
    _limits: Limits | None
    _options: dict[str, Any] | None
    _config: Config | None
    _profile: str | None
    _overrides: Mapping[str, Any] | None
    _trust: Trust | None
    _loop: asyncio.AbstractEventLoop | None

    @property
    def _app(self) -> Hookline:
        """The whole app, for the parts that need it."""
        return cast("Hookline", self)

    @cached_property
    def config(self) -> Config:
        """The settings: files of the user, the profile and the project, environment, command line."""
        config = self._config or self._load_config()
        for name, form in {**SECTIONS, **self.plugins.sections}.items():
            config.declare(name, form)
        return config

    def _load_config(self) -> Config:
        from hookline.config import Config

        check_home(self.home)  # before any setting of it is read
        return Config.load(
            self.home,
            workspace=self.workspace,
            profile=self._profile,
            project=self.project,
            overrides=self._overrides,
            trusts=self._trusts_config,
        )

    def _declare(self, sections: Mapping[str, str]) -> None:
        """Make the sections of plugins known to settings that are read already."""
        for name, form in sections.items() if "config" in self.__dict__ else ():
            self.config.declare(name, form)

    def _plugin_settings(self) -> Config:
        """What the user's files say of plugins, without fixing the settings before they are used."""
        if self._config is not None or "config" in self.__dict__:
            return self.config
        from hookline.config import Config

        check_home(self.home)
        return Config.load(self.home, profile=self._profile, project=False, overrides=self._overrides)

    def _trusts_config(self, path: Path, content: bytes) -> bool:
        """Whether a person trusted the project's settings, and every file that they run."""
        from hookline.plugins.project import config_item
        from hookline.plugins.sources import FileSource

        return self.trust.covers(config_item(FileSource(path, content), path.parent.parent))

    @cached_property
    def models(self) -> Models:
        """The models within reach."""
        from hookline.models import DEFAULT_MODEL, Models

        models = self._models or Models(
            default=self.config.get("model") or DEFAULT_MODEL,
            home=self.home,
            settings=self.config.expanded("providers"),
            progress=self._app.channels.show_progress,
        )
        self.plugins.register_models(models)
        return models

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._model or self.config.get("model") or self.models.default

    @model.setter
    def model(self, name: str) -> None:
        self._model = name

    @property
    def limits(self) -> Limits:
        """The limits of a run: as given, or from the settings."""
        from hookline.agent.run import Limits

        if self._limits is not None:
            return self._limits
        if not any(map(self.config.section, ("limits", "streaming", "compaction"))):
            return Limits()
        from hookline.agent.compactor import Compacting
        from hookline.agent.segments import Streaming
        from hookline.config.schema import CompactionSettings, LimitsSettings, StreamingSettings

        streaming = self.config.settings("streaming", StreamingSettings)
        compaction = self.config.settings("compaction", CompactionSettings)
        return Limits(
            **self.config.settings("limits", LimitsSettings).given(),
            streaming=Streaming(streaming.segment, streaming.overlap),
            compacting=Compacting(**compaction.model_dump(exclude_none=True)),
        )

    @limits.setter
    def limits(self, limits: Limits | None) -> None:
        self._limits = limits

    @property
    def options(self) -> dict[str, Any]:
        """What every model is asked with: as given, or else `thinking` and `[options]`."""
        if self._options is None:
            thinking = self.config.get("thinking")
            chosen = {"thinking": thinking} if thinking else {}
            self._options = {**self.config.section("options"), **chosen}
        return self._options

    @options.setter
    def options(self, options: dict[str, Any]) -> None:
        self._options = options

    @cached_property
    def tools(self) -> Registry:
        """The tools of this app: those that plugins declare or provide, and those added to it."""
        from hookline.tools.registry import Registry

        registry = Registry()
        self.plugins.register_tools(registry)
        return registry

    @property
    def trust(self) -> Trust:
        """The trusted contents of the projects that a person works in."""
        if self._trust is None:
            from hookline.plugins.trust import Trust

            self._trust = Trust(self.home)
        return self._trust

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner of tools."""
        from hookline.tools.runner import ToolRunner

        from .confinement import Confinement

        return ToolRunner(
            self.hooks,
            self.tools,
            judge=Confinement(self._app).judge,
            approve=self.safeguards.approve,
            record=self.safeguards.record,
        )

    @cached_property
    def policy(self) -> Policy:
        """Decides on a tool call if no plugin does; plugins cannot loosen it."""
        return self.given_policy or self._configured_policy()

    def _configured_policy(self) -> Policy:
        from hookline.policy import METERED, Meter, Policy

        async def entries(session_id: str, after: str | None) -> list[Entry]:
            return await self._app.store().entries(session_id, kinds=METERED, after=after)

        return Policy.load(
            self.config.own("policy"),
            self.config.of_project("policy"),
            home=self.home,
            workspace=self.workspace,
            registered=self.plugins.pack_specs,
            spending=Meter(entries).spent,
        )

    @cached_property
    def sandbox(self) -> Sandbox:
        """Confines the children that the agent causes to start, as `[sandbox]` says."""
        from hookline.sandbox import Sandbox

        sandbox = Sandbox(
            workspace=self.workspace,
            home=self.home,
            settings=self._sandbox_settings(),
        )
        if self._loop is not None:
            from .network import NetworkGate

            sandbox.start(NetworkGate(self._app).judge, self._loop)
        return sandbox

    def _sandbox_settings(self) -> SandboxSettings:
        from hookline.sandbox.settings import layered

        return layered(self.config.own("sandbox"), self.config.of_project("sandbox"))

    def reload_gates(self) -> None:
        """Apply changed settings of the policy and the sandbox. If one is invalid, none changes."""
        policy = settings = None
        if "policy" in self.__dict__ and self.given_policy is None:
            policy = self._configured_policy()
        if "sandbox" in self.__dict__:
            settings = self._sandbox_settings()
        if policy is not None:
            self.policy = policy
        if settings is not None:
            self.sandbox.use(settings)
        self.safeguards.reload()

    def _close_sandbox(self) -> None:
        self._loop = None
        if "sandbox" in self.__dict__:
            self.sandbox.close()
            del self.sandbox

    @property
    def approvals(self) -> Approvals:
        """The questions that wait for a person, and what people allowed."""
        return self.safeguards.approvals

    @cached_property
    def subagents(self) -> Subagents:
        """Agents that an agent gives tasks to."""
        from .subagents import Subagents

        return Subagents(self._app)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages of a turn."""
        return Pipeline(self._app)

    @cached_property
    def engine(self) -> Engine:
        """The agent's loop."""
        from hookline.agent.engine import Engine

        return Engine(self.hooks, self.tools, self.runner, lambda name: self.models.get(name))

    async def _close_models(self) -> None:
        if "models" in self.__dict__:
            await self.models.close()
