"""`Agent`: a model with instructions, tools and hooks, in a few lines.

    from hookline import Agent

    agent = Agent("openai:gpt-5", instructions="Be brief.", tools=[weather])
    print(agent.run_sync("What is the weather in Rome?").text)

An agent is embedded in your program: it reads no settings, loads no plugins, writes nothing to disk and
has no tools but those that you give it. Every run is a new conversation unless you pass `session=`.
`Agent.from_home()` makes one with everything that you configured for the command line.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import urandom
from time import time
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, cast, overload
from weakref import finalize

from hookline.channel import NOWHERE, Channel
from hookline.errors import AgentUsage, Blocked, Cancelled
from hookline.hookspecs import Hooks
from hookline.types import Part, text_of

from .agent_app import AgentApp, AgentParts
from .agent_loops import LoopScope, background, stop_all
from .agent_parts import (
    CONFIGURED,
    PolicyDefault,
    check_model,
    hook_plugins,
    output_form,
    plain_policy,
    read_tools,
    register_handlers,
)
from .agent_setup import embed, one_app, run_command, settle
from .agent_stream import AgentStream
from .embedded import EmbeddedApp
from .parent import Parent
from .run_record import RunRecord, RunResult, current_record, note_gates, recording, tool_calls_of

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from hookline.agent.run import Limits
    from hookline.decorators import HookDecorators
    from hookline.models import Model
    from hookline.policy import Policy
    from hookline.tape import TapeStore
    from hookline.tools import Tool

    from .evals import Case, EvalReport
    from .turn import TurnResult

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

REMEMBERED = 100
"""How many conversations without a name an agent keeps in memory; the oldest go first."""


class AgentOptions(TypedDict, total=False):
    """The options of `Agent`."""

    instructions: str | None
    """The system prompt."""
    tools: Iterable[Any]
    """Functions with annotations, `Tool`s, and other agents."""
    hooks: Iterable[Any]
    """Handlers: functions whose first parameter is annotated with an event, or (hook, function)."""
    plugins: Iterable[object]
    """Objects or modules whose methods are marked with `@hookimpl`."""
    policy: Policy | PolicyDefault | Mapping[str, Any] | None
    """Which tool calls run: `allow` (the default), `auto`, `ask`, `deny`, or a whole policy."""
    tape: TapeStore | None
    """Where conversations are kept; in memory by default."""
    limits: Limits | None
    options: Mapping[str, Any] | None
    """Options of the model, such as `thinking`, `temperature` and `max_tokens`."""
    name: str | None
    """The name of the agent in hooks, and as a tool of another agent."""


class Agent(Generic[T]):
    """A model with instructions, tools and hooks. See the module for an example."""

    @overload
    def __init__(self: Agent[str], model: str | Model, **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(
        self, model: str | Model, *, output: type[T], **options: Unpack[AgentOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any], model: str | Model, *, output: Any, **options: Unpack[AgentOptions]
    ) -> None: ...
    def __init__(
        self,
        model: str | Model,
        *,
        instructions: str | None = None,
        tools: Iterable[Any] = (),
        hooks: Iterable[Any] = (),
        plugins: Iterable[object] = (),
        output: Any = str,
        policy: Policy | PolicyDefault | Mapping[str, Any] | None = None,
        tape: TapeStore | None = None,
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or ""
        self.model = check_model(model)
        self.instructions = instructions or ""
        self.output_type = output
        self._tools = read_tools(tools)
        self._form = output_form(output)
        self._given_hooks, self._given_plugins = tuple(hooks), hook_plugins(plugins)
        self._policy = None if policy is None else plain_policy(policy)
        self._tape, self._limits, self._options = tape, limits, dict(options or {})
        self._scopes: dict[asyncio.AbstractEventLoop, LoopScope] = {}
        self._unnamed: deque[str] = deque()
        self._lock = threading.RLock()
        self._closed = False
        self._home: Callable[[AgentParts], AgentApp] | None = None
        """Makes the app of an agent that `from_home` made."""
        if self._given_hooks:
            self.hooks  # noqa: B018  # a handler that does not fit is an error now
        finalize(self, stop_all, self._scopes)

    @staticmethod
    def from_home(
        model: str | Model | None = None,
        *,
        home: Path | None = None,
        workspace: Path | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[str]:
        """An agent with the settings, plugins, tools and tape that the command line has.

        It works in one event loop at a time. Everything else is as with an embedded agent.
        """
        return Agent(model or CONFIGURED, **options)._settled(home=home, workspace=workspace)

    def _settled(self, **app_options: Any) -> Agent[T]:
        """Give an agent a home."""
        self._home = one_app(**app_options)
        self._parts  # noqa: B018  # the plugins stand before the handlers that follow
        return self

    # --- parts: made when first used, so that an idle agent is small ----------------------------

    @cached_property
    def hooks(self) -> Hooks:
        """The agent's registry of handlers and plugins. An exception in a gate's handler is a deny."""
        with self._lock:
            if "hooks" in self.__dict__:  # another thread was faster
                return self.__dict__["hooks"]
            hooks = self.__dict__["hooks"] = Hooks(on_gate_error="deny")
            register_handlers(hooks, self._given_hooks)
            return hooks

    @cached_property
    def _parts(self) -> AgentParts:
        parts = AgentParts(
            self.name,
            self.model,
            self.instructions,
            self._tools,
            self.hooks,
            self._home or EmbeddedApp,
            self._policy,
            self._limits,
            self._tape,
            self._form,
            self._options,
        )
        embed(parts) if self._home is None else settle(parts)
        for plugin in self._given_plugins:
            self.hooks.add(plugin)
        note_gates(self.hooks)
        return parts

    @property
    def on(self) -> HookDecorators:
        """Attach handlers: `@agent.on.tool_call(when="shell")`."""
        return self.hooks.on

    # --- running --------------------------------------------------------------------------------

    async def run(self, prompt: str | Sequence[Part], *, session: str | None = None) -> RunResult[T]:
        """Run the agent on a prompt and return its result.

        `session` names the conversation to continue or start; without it the run is a new one.
        """
        return await self._run(prompt, session, NOWHERE)

    def run_sync(self, prompt: str | Sequence[Part], *, session: str | None = None) -> RunResult[T]:
        """Run the agent from synchronous code, also inside a running event loop, as in a notebook."""
        loop = background()
        if threading.current_thread() is loop.thread or self._is_running_here():
            raise AgentUsage(
                "run_sync() would wait for the event loop that called it; make the handler or tool "
                "async and use `await agent.run(...)`"
            )
        return loop.call(self.run(prompt, session=session))

    def _is_running_here(self) -> bool:
        """Whether this code is called by a run of this agent, on the event loop of that run."""
        record = current_record()
        if record is None or record.agent is not self:
            return False
        try:
            return asyncio.get_running_loop() in self._scopes
        except RuntimeError:
            return False

    def stream(self, prompt: str | Sequence[Part], *, session: str | None = None) -> AgentStream[T]:
        """Run the agent and show its answer as it comes.

        async with agent.stream("Tell me a story.") as stream:
            async for event in stream:
                ...
            result = await stream.result()
        """
        return AgentStream(self, prompt, session)

    # --- evaluation -----------------------------------------------------------------------------

    async def evaluate(
        self, cases: Iterable[Case[T]], *, runs: int = 1, concurrency: int = 4, at_least: float = 1.0
    ) -> EvalReport:
        """Run the agent on every case, `runs` times, and report pass rates, cost and time.

        `at_least` is the share of all runs that must pass for `report.ok`.
        """
        from .evals import evaluate

        options: Any = {"runs": runs, "concurrency": concurrency, "at_least": at_least}
        return await evaluate(self, cases, **options)

    def evaluate_sync(
        self, cases: Iterable[Case[T]], *, runs: int = 1, concurrency: int = 4, at_least: float = 1.0
    ) -> EvalReport:
        """Evaluate the agent from synchronous code."""
        options: Any = {"runs": runs, "concurrency": concurrency, "at_least": at_least}
        return background().call(self.evaluate(cases, **options))

    async def _run(
        self, prompt: str | Sequence[Part], session: str | None, channel: Channel
    ) -> RunResult[T]:
        if not isinstance(prompt, str) and isinstance(prompt, Mapping | bytes):
            raise AgentUsage(f"a prompt is text or a list of parts, not {type(prompt).__name__}")
        parent = Parent.current()
        app = await self._app()
        name = session or (f"{parent.session_id}/" if parent else "") + f"run-{urandom(8).hex()}"
        record = RunRecord(self, current_record() if parent else None)
        if parent is not None and channel is NOWHERE:
            channel = parent.channel
        try:
            async with app.under(parent, name):
                with recording(record):
                    turn = await app.process(envelope(prompt, name, parent), channel, session_id=name)
                result = self._result(turn, record, prompt)
        finally:
            if session is None:
                await self._end(app, name)
        if parent is not None:
            parent.count(result.usage)
        return result

    def _result(self, turn: TurnResult, record: RunRecord, prompt: Any) -> RunResult[T]:
        if turn.outcome in ("blocked", "rejected", "dropped"):
            by = next((d.by for d in record.decisions if d.decision == "deny"), None)
            raise Blocked("the prompt", turn.stopped, by)
        if turn.outcome == "cancelled":
            raise Cancelled(turn.stopped or "cancelled")
        text = turn.model_output or turn.stopped or ""
        output = text if self._form is None else self._form.read(text)
        if record.run is not None:
            messages, usage = list(record.run.messages), dict(record.run.usage)
        else:
            messages, usage = [{"role": "user", "content": prompt}], {}
            messages.append({"role": "assistant", "content": text})
        return RunResult(
            text,
            cast("T", output),
            turn.session_id,
            messages,
            tool_calls_of(messages, record.calls),
            usage,
            list(record.decisions),
            record.steps,
            time() - record.began,
        )

    async def _end(self, app: AgentApp, name: str) -> None:
        """Close a conversation without a name; the newest stay in memory, to be continued."""
        await app.forget(name)
        self._unnamed.append(name)
        forget = getattr(self._parts.store, "forget", None)
        while len(self._unnamed) > REMEMBERED:
            oldest = self._unnamed.popleft()
            if forget is not None:
                forget(oldest)

    async def _app(self) -> AgentApp:
        """The agent's app in the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            for ended in [each for each, scope in self._scopes.items() if scope.ended]:
                del self._scopes[ended]
            scope = self._scopes.get(loop)
            if scope is None:
                scope = self._scopes[loop] = LoopScope(self._parts)
        return await scope.opened()

    def _check_open(self) -> None:
        if self._closed:
            raise AgentUsage("this agent is closed; make a new one")

    # --- the end --------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the connections and sessions of the agent now. Otherwise they close with the loop."""
        with self._lock:
            self._closed = True
            scopes, self._scopes = [*self._scopes.values()], {}
        for scope in scopes:
            await scope.close()

    async def __aenter__(self) -> Agent[T]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # --- composition ----------------------------------------------------------------------------

    def as_tool(self, *, name: str | None = None, description: str | None = None) -> Tool:
        """The agent as a tool with one argument, `prompt`, for another agent.

        The guards and the policy of the agent that calls it hold in every run of it.
        """
        from hookline.tools.tool import tool

        called = name or self.name
        if not called:
            raise AgentUsage("an agent needs a name to be a tool: Agent(..., name='researcher')")

        async def ask(prompt: str) -> str:
            return (await self.run(prompt)).text

        about = description or self.instructions.strip().partition("\n")[0]
        return tool(ask, name=called, description=about or f"Ask the agent {called}.")

    # --- from here on ---------------------------------------------------------------------------

    def chat(self, *, session: str | None = None) -> None:
        """Talk to the agent in the terminal."""
        self._check_open()
        run_command(self._parts, "chat", session=session)

    def serve(
        self, *, host: str | None = None, port: int | None = None, token: str | None = None
    ) -> None:
        """Serve the agent: a web page, an HTTP API and an OpenAI-compatible endpoint.

        It listens on this machine alone unless `host` says otherwise, and prints its address. It ends
        with Ctrl-C or SIGTERM.
        """
        self._check_open()
        run_command(self._parts, "gateway", host=host, port=port, token=token)

    def __repr__(self) -> str:
        model = self.model if isinstance(self.model, str) else self.model.name
        return f"Agent({model!r}{f', name={self.name!r}' if self.name else ''})"


def envelope(prompt: str | Sequence[Part], session: str, parent: Parent | None) -> dict[str, Any]:
    """The prompt as an inbound message, on behalf of the user whom the calling agent works for."""
    message: dict[str, Any] = {"content": prompt, "channel": "agent", "chat_id": session}
    if parent is not None:
        message = parent.call.identity.stamped(message)
    if not isinstance(prompt, str):
        message["content"], message["parts"] = text_of(prompt), list(prompt)
    return message
