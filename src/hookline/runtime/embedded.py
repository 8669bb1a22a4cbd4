"""`EmbeddedApp`: the runtime of an `Agent`, without a home, settings, plugins or tools of its own.

The stages, hooks and gates are those of `Hookline`. Only what it is given is there: nothing is read
from or written to disk, and the tape is in memory unless another one is given.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from collections import Counter
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from hookline.config import Config
from hookline.hooks import hookimpl
from hookline.system.home import home
from hookline.types import AsyncStreamEvents, Envelope, Prompt, State, content_of, field_of

from .app import Hookline
from .builtin import BuiltinPlugin
from .parent import Parent
from .run_record import current_record

if TYPE_CHECKING:
    from hookline.agent.output import OutputForm
    from hookline.agent.run import Limits
    from hookline.channel import Channel
    from hookline.hooks import Ruling
    from hookline.hookspecs import Hooks
    from hookline.models import Model, ModelRequest
    from hookline.policy import Policy
    from hookline.tape import TapeStore
    from hookline.tools.registry import Registry
    from hookline.tools.runner import ToolRunner
    from hookline.tools.tool import Tool
    from hookline.types import HookContext, Identity, StreamEvent


@dataclass(slots=True)
class AgentParts:
    """What an agent is made of."""

    name: str
    model: str | Model
    instructions: str
    tools: Sequence[Tool]
    hooks: Hooks
    policy: Policy
    limits: Limits
    store: TapeStore
    output: OutputForm[Any] | None = None
    apps: dict[AbstractEventLoop, EmbeddedApp] = field(
        default_factory=dict[AbstractEventLoop, "EmbeddedApp"]
    )
    """The running apps of the agent, one for each event loop that it is used in."""


class EmbeddedApp(Hookline):
    """The app of one agent in one event loop."""

    embedded: ClassVar[bool] = True

    def __init__(self, parts: AgentParts) -> None:
        from hookline.models import Models
        from hookline.policy.approval_storage import MemoryApprovals
        from hookline.policy.approvals import SECONDS, Approvals

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
            options={},
            policy=parts.policy,
        )
        self.parts = parts
        self.parents: dict[str, Parent] = {}
        """The agents whose guards hold in a session, because it runs inside one of their tool calls."""
        self.output = parts.output
        self.tracing.wanted = False
        self.safeguards.approvals = Approvals(
            MemoryApprovals(), seconds=parts.policy.seconds or SECONDS
        )

    @cached_property
    def tools(self) -> Registry:
        """The tools that the agent was given, and those of its plugins."""
        from hookline.tools.registry import Registry

        registry = Registry(self.parts.tools)
        self.plugins.register_tools(registry)
        return registry

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner of tools, which also notes its decisions in the result."""
        from hookline.tools.runner import ToolRunner

        return ToolRunner(
            self.hooks, self.tools, judge=self.judge, approve=self.safeguards.approve, record=record
        )

    async def judge(self, action: dict[str, Any]) -> list[Ruling]:
        """The rulings of the agent's policy, and of the agents that it works for."""
        rulings = await self.policy.judge(action)
        parent = self.parents.get(action["session_id"])
        return rulings if parent is None else [*rulings, *await parent.judge(action)]

    def context(
        self, session_id: str, identity: Identity | None = None, channel: Channel | None = None
    ) -> HookContext:
        """What handlers get as `ctx` in a session."""
        ctx = super().context(session_id, identity, channel)
        parent = self.parents.get(session_id)
        if parent is not None:
            ctx = replace(ctx, depth=parent.depth + 1, parent_session_id=parent.session_id)
        return replace(ctx, agent_id=self.parts.name) if self.parts.name else ctx

    @contextmanager
    def under(self, parent: Parent | None, session_id: str) -> Generator[None]:
        """Let the guards of a parent hold in a session."""
        if parent is None:
            yield
            return
        self.parents[session_id] = parent
        try:
            with parent.guarding(self.hooks, session_id):
                yield
        finally:
            del self.parents[session_id]

    async def forget(self, session_id: str) -> None:
        """Close a session that is not continued."""
        await self.sessions.close(session_id)
        plugin = self.hooks.pm.get_plugin("builtin")
        if isinstance(plugin, EmbeddedPlugin):
            plugin.forget(session_id)


async def record(action: dict[str, Any], rulings: Sequence[Ruling], outcome: str) -> None:
    """Note in the result of the current run what was decided on a tool call."""
    notes = current_record()
    if notes is not None:
        notes.decided_on_call(action, rulings)


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
        self._kept: dict[str, State] = {}

    @property
    def app(self) -> EmbeddedApp:
        """The agent's app in the current event loop."""
        return self._parts.apps[get_running_loop()]

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
    async def run_model_stream(
        self, prompt: Prompt, session_id: str, state: State
    ) -> AsyncStreamEvents:
        """Run the agent, and keep its run for the result."""
        stream = await super().run_model_stream(prompt, session_id, state)
        notes = current_record()
        if notes is not None:
            notes.run = self.app.sessions.runs[session_id]
        return stream

    @hookimpl
    def provide_tape_store(self) -> TapeStore:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The store that the agent was given, or the one in memory."""
        return self._parts.store

    @hookimpl
    async def hookline_shutdown(self) -> None:
        """Nothing: background commands belong to other apps of the process."""

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """None: an agent has the tools that it is given."""
        return []
