"""`AgentApp`: the runtime of an `Agent`, which fills its results and holds the guards of its callers.

`EmbeddedApp` is one without a home; `HomeApp` is one with everything that the user configured.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Lock
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from hookline.errors import AgentUsage
from hookline.types import AsyncStreamEvents, Prompt, State

from .app import Hookline
from .parent import Parent
from .pipeline import Pipeline
from .run_record import current_record

if TYPE_CHECKING:
    from hookline.agent.output import OutputForm
    from hookline.agent.run import Limits
    from hookline.channel import Channel
    from hookline.hooks import Ruling
    from hookline.hookspecs import Hooks
    from hookline.models import Model
    from hookline.policy import Policy
    from hookline.tape import TapeStore
    from hookline.tools.calls import Resolve
    from hookline.tools.registry import Registry
    from hookline.tools.runner import ToolRunner
    from hookline.tools.tool import Tool
    from hookline.types import HookContext, Identity

    from .confinement import Confinement


@dataclass(slots=True)
class AgentParts:
    """The arguments of an agent."""

    name: str
    model: str | Model
    instructions: str
    tools: Sequence[Tool]
    hooks: Hooks
    make: Callable[[AgentParts], AgentApp]
    """Makes the app that runs in an event loop."""
    policy: Policy | None = None
    limits: Limits | None = None
    store: TapeStore | None = None
    output: OutputForm[Any] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    apps: dict[AbstractEventLoop | None, AgentApp] = field(
        default_factory=dict["AbstractEventLoop | None", "AgentApp"]
    )
    """The running apps of the agent, one for each event loop that it is used in; under None, the one
    of a command that runs a loop of its own."""


class AgentApp(Hookline):
    """The app of one agent in one event loop."""

    parts: AgentParts

    def take(self, parts: AgentParts) -> None:
        """Become the app of an agent."""
        self.parts = parts
        self.parents: dict[str, Parent] = {}
        """The agents whose guards hold in a session, because it runs inside one of their tool calls."""
        self._under: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self.output = parts.output
        self.pipeline = RecordingPipeline(self)

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner of tools, which also notes its decisions in the result."""
        from hookline.tools.runner import ToolRunner

        return ToolRunner(
            self.hooks,
            self.tools,
            judge=self.judge,
            approve=self._approve,
            record=self._record,
        )

    async def _approve(self, request: dict[str, Any], resolve: Resolve | None) -> Ruling:
        return await self.safeguards.approve(request, resolve)

    async def _record(self, action: dict[str, Any], rulings: Sequence[Ruling], outcome: str) -> None:
        notes = current_record()
        if notes is not None:
            notes.decided_on_call(action, rulings)
        audit = self.safeguards.record
        if audit is not None:
            await audit(action, rulings, outcome)

    async def judge_alone(self, action: dict[str, Any]) -> list[Ruling]:
        """The rulings of the agent's own policy."""
        return await self.policy.judge(action)

    async def judge(self, action: dict[str, Any]) -> list[Ruling]:
        """The rulings of the agent's policy, and of the agents that it works for."""
        rulings = await self.judge_alone(action)
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

    @asynccontextmanager
    async def under(self, parent: Parent | None, session_id: str) -> AsyncGenerator[None]:
        """Let the guards of a parent hold in a session; another parent waits until it is free."""
        if parent is None:
            yield
            return
        if parent.waits_for(self, session_id):
            raise AgentUsage(
                f"session {session_id!r} waits for the tool call that would continue it: use another "
                "session, or none"
            )
        async with self._under.setdefault(session_id, Lock()):
            self.parents[session_id] = parent
            try:
                with parent.guarding(self.hooks, session_id):
                    yield
            finally:
                del self.parents[session_id]

    async def forget(self, session_id: str) -> None:
        """Close a session that is not continued."""
        await self.sessions.close(session_id)


class RecordingPipeline(Pipeline):
    """The pipeline of an agent, which keeps each run for the result."""

    async def start_run(self, prompt: Prompt, session_id: str, state: State) -> AsyncStreamEvents:
        """Start the run of a turn."""
        stream = await super().start_run(prompt, session_id, state)
        notes = current_record()
        if notes is not None:
            from .timeline import TimedJournal

            run = notes.run = stream.state
            run.journal = TimedJournal(run.tape, notes, run.model.name)
        return stream


class HomeApp(AgentApp):
    """An app with the settings, plugins and tools of the user, and what the agent was given."""

    @cached_property
    def tools(self) -> Registry:
        """The tools of the plugins, and those given to the agent."""
        from hookline.tools.registry import Registry

        registry = Registry()
        self.plugins.register_tools(registry)
        for tool in self.parts.tools:
            registry.add(tool)
        return registry

    @cached_property
    def _confinement(self) -> Confinement:
        from .confinement import Confinement

        return Confinement(self)

    async def judge_alone(self, action: dict[str, Any]) -> list[Ruling]:
        """The rulings of the policy and the sandbox."""
        return await self._confinement.judge(action)
