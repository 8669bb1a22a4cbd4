"""`HomeBridge`: a bridge with the hook files, plugins, policy, approvals and tape of a home."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hookline.bridges.bridge import Bridge
from hookline.bridges.host import HostModel, HostRuntime, no_answer
from hookline.hooks import hookimpl
from hookline.runtime.agent_app import AgentParts
from hookline.runtime.builtin import BuiltinPlugin
from hookline.types import Envelope, Prompt, content_of

if TYPE_CHECKING:
    from hookline.plugins.watcher import Stamps
    from hookline.policy import Policy

PLUGINS = ("command-hooks", "interceptors", "stores", "trace")
"""The plugins of Hookline that have a say in another agent; the others bring tools and channels."""


class HomeBridge(Bridge):
    """The hooks of a home, for the agents of one host in one workspace."""

    def __init__(self, host: str, *, home: Path | None = None, workspace: Path | None = None) -> None:
        super().__init__(host=host)
        self._home, self._workspace = home, workspace

    @cached_property
    def _parts(self) -> AgentParts:
        model = HostModel(self.host, no_answer)
        return AgentParts("", model, "", (), self.hooks, lambda _: self.app)

    @cached_property
    def app(self) -> HomeBridgeApp:
        """The app of the home."""
        return HomeBridgeApp(self._parts, self._home, self._workspace)

    async def opened(self) -> HomeBridgeApp:
        """The running app. Raises if something that should guard the agent cannot be loaded."""
        await self._app()
        return self.app


class HomeBridgeApp(HostRuntime):
    """The app of a home whose agent another host runs."""

    foreign_hooks: ClassVar[bool] = False
    """The host runs its own command hooks."""

    def __init__(self, parts: AgentParts, home: Path | None, workspace: Path | None) -> None:
        from hookline.models import Models

        model = parts.model
        assert isinstance(model, HostModel)
        models = Models(default=model.name)
        models.add(model)
        super().__init__(
            home=home,
            workspace=workspace,
            model=model.name,
            models=models,
            hooks=parts.hooks,
            options={},
        )
        self.take(parts)
        self.plugins.add("builtin", HostPlugin(self))
        self.plugins.load(own=PLUGINS)
        self.hook_files.wanted = True
        self.loaded = self.stamps()
        """How the files were that this app was loaded from."""

    @cached_property
    def policy(self) -> Policy:
        """The policy of the settings; if they name no default, the host's own rules are the default."""
        policy = super().policy
        if "default" not in {**self.config.own("policy"), **self.config.of_project("policy")}:
            policy.default = "allow"
        return policy

    def stamps(self) -> Stamps:
        """How the files are now that decide what is loaded: hook files and settings."""
        from hookline.plugins.watcher import stamps

        kept = [self.home / name for name in ("config.toml", "plugins.lock", "trust.json")]
        kept += [self.config.profiled.config_file, self.workspace / ".hookline" / "config.toml"]
        packs = [pack.folder for pack in self.policy.packs]
        return {**stamps([*self.hook_files.places(), *kept]), **stamps(packs, ".cedar")}


class HostPlugin(BuiltinPlugin):
    """The builtin plugin of a host: it adds nothing to what the host's agent says."""

    @hookimpl
    def build_prompt(self, message: Envelope) -> Prompt:
        """The prompt as it is: the host reads the files that it mentions."""
        return content_of(message)

    @hookimpl
    def system_prompt(self) -> str:
        """Nothing: the host has its own."""
        return ""
