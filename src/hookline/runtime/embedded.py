"""`EmbeddedApp`: the runtime of an `Agent`, without a home, settings, plugins or tools.

The stages, hooks and gates are those of `Hookline`. It uses only what it is given, reads and writes
nothing on disk, and keeps the tape in memory unless it is given another one.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import Counter
from collections.abc import AsyncIterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from hookline.config import Config
from hookline.hooks import hookimpl
from hookline.system.home import home
from hookline.system.recent import Recent
from hookline.types import Envelope, Prompt, State, content_of, field_of

from .agent_app import AgentApp, AgentParts
from .agent_parts import plain_policy
from .builtin import BuiltinPlugin
from .safeguards import Safeguards

if TYPE_CHECKING:
    from hookline.models import Model, ModelRequest
    from hookline.policy import Policy
    from hookline.policy.approvals import Approvals
    from hookline.tape import TapeStore
    from hookline.tools.registry import Registry
    from hookline.tools.tool import Tool
    from hookline.types import StreamEvent


class EmbeddedApp(AgentApp):
    """An app with the parts of an agent and nothing else."""

    embedded: ClassVar[bool] = True

    def __init__(self, parts: AgentParts) -> None:
        from hookline.models import Models

        place = home()
        model = parts.model if isinstance(parts.model, str) else parts.model.name
        models = Models(default=model)
        if not isinstance(parts.model, str):
            models.add(SharedModel(parts.model))
        super().__init__(
            home=place,
            model=model,
            models=models,
            hooks=parts.hooks,
            limits=parts.limits,
            config=Config.fixed(place),
            project=False,
            options=parts.options,
            policy=parts.policy,
        )
        self.take(parts)
        self.passive = True
        self.safeguards = EmbeddedSafeguards(self)

    @cached_property
    def policy(self) -> Policy:
        """The policy that the agent was given; by default every tool that it has may be called."""
        return self.parts.policy or plain_policy(None)

    @cached_property
    def tools(self) -> Registry:
        """The tools that the agent was given, and those of its plugins."""
        from hookline.tools.registry import Registry

        registry = Registry(self.parts.tools)
        self.plugins.register_tools(registry)
        return registry

    async def forget(self, session_id: str) -> None:
        """Close a session that is not continued, and drop what tools remember of it."""
        await super().forget(session_id)
        plugin = self.hooks.pm.get_plugin("builtin")
        if isinstance(plugin, EmbeddedPlugin):
            plugin.forget(session_id)


class EmbeddedSafeguards(Safeguards):
    """Safeguards that keep approvals in memory."""

    @cached_property
    def approvals(self) -> Approvals:
        """The questions that wait for a person, and what people allowed."""
        from hookline.policy.approval_storage import MemoryApprovals
        from hookline.policy.approvals import SECONDS, Approvals

        return Approvals(MemoryApprovals(), seconds=self._app.policy.seconds or SECONDS)

    def _budgets(self) -> bool:
        return False  # the agent has the gate of its budgets once, for all its apps


class SharedModel:
    """A model object that agents were given. It is closed when the last scope that uses it ends."""

    _users: ClassVar[Counter[int]] = Counter()

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name
        self.context_window = model.context_window
        self.native_output = getattr(model, "native_output", False)
        self._used = False

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Answer, piece by piece."""
        if not self._used:
            self._used = True
            self._users[id(self._model)] += 1
        return self._model.stream(request)

    async def close(self) -> None:
        """Close the model, unless another agent uses it."""
        if self._used:
            self._used = False
            self._users[id(self._model)] -= 1
            if not self._users[id(self._model)]:
                del self._users[id(self._model)]
                await self._model.close()


class EmbeddedPlugin(BuiltinPlugin):
    """The builtin plugin without files, tools or a prompt of its own."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._kept: Recent[str, State] = Recent()

    @property
    def app(self) -> AgentApp:
        """The agent's app in the current event loop."""
        apps = self._parts.apps
        try:
            return apps.get(get_running_loop()) or apps[None]
        except RuntimeError:  # no loop runs yet
            return apps[None]

    def forget(self, session_id: str) -> None:
        """Drop what tools remember of a session."""
        self._kept.pop(session_id, None)

    @hookimpl
    def build_prompt(self, message: Envelope) -> Prompt:
        """The message as it is: a mention of a file is text."""
        return field_of(message, "parts") or content_of(message)

    @hookimpl
    def system_prompt(self) -> str:
        """The instructions of the agent."""
        return self._parts.instructions

    @hookimpl
    def provide_tape_store(self) -> TapeStore | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The store that the agent was given, or the one in memory."""
        return self._parts.store

    @hookimpl
    async def hookline_shutdown(self) -> None:
        """Nothing: background commands belong to other apps of the process."""

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """None: an agent has the tools that it is given."""
        return []
