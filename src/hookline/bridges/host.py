"""The app behind a bridge: a turn whose agent is run by the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cached_property
from sys import maxsize
from typing import TYPE_CHECKING, Any

from hookline.agent.engine import Engine
from hookline.agent.run import Limits
from hookline.events import AgentEndEvent
from hookline.hooks import hookimpl
from hookline.runtime.agent_app import AgentApp, AgentParts
from hookline.runtime.embedded import EmbeddedApp, EmbeddedPlugin
from hookline.specs import SideEffects, ToolSpec
from hookline.tools.context import ToolContext
from hookline.tools.registry import Registry
from hookline.tools.tool import Tool
from hookline.turn_context import TurnContext, move_to

if TYPE_CHECKING:
    from hookline.agent.run import AgentRun
    from hookline.hookspecs import Hooks
    from hookline.models import ModelRequest
    from hookline.policy import Policy
    from hookline.tape import TapeStore
    from hookline.types import StreamEvent

    from .run import BridgeRun

Executor = Callable[[dict[str, Any]], Awaitable[Any]]
"""Runs a tool of the host with these arguments."""


class HostModel:
    """The model of the host, for one request."""

    def __init__(
        self, name: str, answers: Callable[[ModelRequest], AsyncIterator[StreamEvent]]
    ) -> None:
        self.name = name
        self.context_window: int | None = None
        self._answers = answers

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Ask the host."""
        return self._answers(request)

    async def close(self) -> None:
        """Nothing: the model belongs to the host."""


async def no_answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    """Refuse: only the host asks its model."""
    raise RuntimeError("the host asks its own model")
    yield  # pragma: no cover


class HostTools(Registry):
    """The tools of the host. One that was not described takes any arguments."""

    def __init__(self, executors: dict[tuple[str, str], Executor]) -> None:
        super().__init__()
        self._executors = executors

    def get(self, name: str) -> Tool:
        """Return the tool of this name; every name is one, since the host decides what it has."""
        if name not in self:
            self.add(self._stand_in(name))
        return super().get(name)

    def _stand_in(self, name: str) -> Tool:
        executors = self._executors

        async def run(context: ToolContext, /, **arguments: Any) -> Any:
            return await executors[context.session_id, context.call_id](arguments)

        spec = ToolSpec(name=name, input_schema={"type": "object"}, side_effects=SideEffects.external)
        return Tool(spec, run, place="the host")


class HostEngine(Engine):
    """Prepares and ends runs as every engine does; in between, the host runs its agent."""

    app: HostRuntime

    async def _run(self, run: AgentRun) -> None:
        move_to(TurnContext(run.ctx.session_id, run.turn_id, channel=run.ctx.channel))
        host = self.app.expected.pop(run.ctx.session_id)
        run.instructions = host.system
        await self._prepare(run)
        host.attach(self, run)
        run.text = await host.ended
        if self._end.live:
            await self._end.fire(AgentEndEvent(list(run.messages)), run.ctx)
        if self._on_turn_end.live:
            await self._on_turn_end.fire(run.ctx.agent_id, run.text)


class HostRuntime(AgentApp):
    """An app whose agent and tools belong to a host."""

    def take(self, parts: AgentParts) -> None:
        """Become the app of a host."""
        super().take(parts)
        self.expected: dict[str, BridgeRun] = {}
        """Runs whose turn has not reached the agent yet, by session."""
        self.executors: dict[tuple[str, str], Executor] = {}
        """What runs the calls in progress, by session and id."""

    @cached_property
    def tools(self) -> Registry:
        """The tools of the host."""
        return HostTools(self.executors)

    @cached_property
    def engine(self) -> HostEngine:
        """The engine that leaves the loop to the host."""
        self.runner.longest = maxsize  # the host has its own way with long results
        engine = HostEngine(self.hooks, self.tools, self.runner, self.models.get)
        engine.app = self
        return engine


class BridgeApp(HostRuntime, EmbeddedApp):
    """The app of one bridge in one event loop."""


def host_parts(
    name: str, host: str, hooks: Hooks, policy: Policy | None, store: TapeStore | None
) -> AgentParts:
    """The parts of an agent whose model and tools belong to a host."""
    return AgentParts(
        name,
        HostModel(host, no_answer),
        "",
        (),
        hooks,
        BridgeApp,
        policy=policy,
        limits=Limits(),
        store=store,
    )


class BridgePlugin(EmbeddedPlugin):
    """The builtin plugin of a bridge."""

    @hookimpl
    def system_prompt(self) -> str:
        """Nothing: the host has its own."""
        return ""
