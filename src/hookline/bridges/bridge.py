"""`Bridge`: the hooks of Hookline around an agent that another framework runs.

    bridge = Bridge([no_sudo], host="my framework")
    run = await bridge.start("Tidy up.")                      # `input`, `before_agent_start`, …
    call = await run.admit("shell", {"command": "rm -r tmp"})  # every gate of a tool call
    if call.refusal is None:
        result = await run.finish(call, my_shell(call.arguments))
    text = await run.end("Done.")                             # `output`, `agent_end`, …

The host keeps its own loop, model and tools. The stages, gates, policy, approvals and tape are those of
every Hookline app: a run of a bridge is a turn whose answer comes from the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import urandom
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.channel import NOWHERE, Channel
from hookline.errors import Blocked, BridgeError, Cancelled
from hookline.hooks import HooklineError
from hookline.models.model import content_text
from hookline.runtime.agent_loops import LoopScope, background
from hookline.runtime.agent_parts import plain_policy
from hookline.types import StreamEvent

from .host import BridgePlugin, HostModel, HostRuntime, host_parts

if TYPE_CHECKING:
    from hookline.agent.engine import Engine
    from hookline.agent.run import AgentRun
    from hookline.hooks.implementation import Implementation
    from hookline.hookspecs import Hooks
    from hookline.models import ModelRequest
    from hookline.policy import Policy
    from hookline.runtime.agent_app import AgentParts
    from hookline.runtime.agent_parts import PolicyDefault
    from hookline.runtime.turn import TurnResult
    from hookline.tape import TapeStore
    from hookline.tools.calls import Admitted, ToolCaller

T = TypeVar("T")


@dataclass(slots=True)
class HostCall:
    """A tool call of a host that the gates have judged."""

    id: str
    name: str
    arguments: dict[str, Any]
    """The arguments to run it with; handlers may have changed them."""
    refusal: str | None
    """Why it must not run. Give this text to the model as the result."""
    admitted: Admitted = field(repr=False)


@dataclass(slots=True)
class HostRequest:
    """A request that a host is about to send to its model."""

    messages: list[dict[str, Any]]
    """Each with `role` and `content`; an assistant's may have `tool_calls`."""
    model: str = ""
    system: str = ""
    tools: Sequence[dict[str, Any]] = ()


@dataclass(slots=True)
class HostAnswer:
    """The answer of a host's model."""

    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Each with `id`, `name` and `arguments`."""
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    finish_reason: str = "stop"


Ask = Callable[[HostRequest], Awaitable[HostAnswer]]
"""Sends a request to the host's model."""


class Bridge:
    """Hookline's hooks for the agents of one host."""

    def __init__(
        self,
        hooks: Hooks | Iterable[Any] = (),
        *,
        host: str,
        plugins: Iterable[object] = (),
        policy: PolicyDefault | Policy | Mapping[str, Any] | None = None,
        tape: TapeStore | None = None,
        name: str = "",
        channel: Channel = NOWHERE,
        unreachable: Mapping[str, str] | None = None,
        partial: bool = False,
    ) -> None:
        """Make a bridge.

        `hooks` is a `Hooks`, or handlers whose first parameter is annotated with an event. `plugins`
        are objects or modules with `@hookimpl` functions. `channel` is where questions are asked.
        `unreachable` names the hooks that the host cannot carry, each with the reason: handlers of
        them are refused unless `partial` is set.
        """
        from hookline.hookspecs import Hooks as ShippedHooks
        from hookline.runtime.agent_parts import hook_plugins, register_handlers

        self.host, self.name, self.channel = host, name or host, channel
        self.hooks = ShippedHooks(on_gate_error="deny")
        self._given = hooks if isinstance(hooks, ShippedHooks) else None
        self._attached: dict[int, Implementation] = {}
        if isinstance(hooks, ShippedHooks):
            self._attach_given()
        else:
            register_handlers(self.hooks, hooks)
        self._plugins = hook_plugins(plugins)
        for plugin in self._plugins:
            self.hooks.add(plugin)
        self._policy: PolicyDefault | Policy | Mapping[str, Any] | None = policy
        self._tape = tape
        self._scopes: dict[asyncio.AbstractEventLoop, LoopScope] = {}
        if not partial:
            self._refuse_unreachable(unreachable or {})

    def _attach_given(self) -> None:
        """Take over the handlers of the given `Hooks`, which others may use and change as well."""
        if self._given is None:
            return
        given = self._given
        used = [given[name] for name in given.catalog if given[name].count()]
        found = {id(impl): impl for hook in used for impl in hook.run_order()}
        if found.keys() == self._attached.keys():
            return
        gone = self._attached.keys() - found.keys()
        self.hooks.detach(lambda impl: id(impl) not in gone)
        self.hooks.attach(impl for key, impl in found.items() if key not in self._attached)
        self._attached = found

    def _refuse_unreachable(self, unreachable: Mapping[str, str]) -> None:
        """A handler that would never run must not look as if it guarded something."""
        used = [name for name in unreachable if self.hooks[name].count()]
        if used:
            why = "; ".join(f"{name}: {unreachable[name]}" for name in used)
            raise BridgeError(
                f"{self.host} cannot carry these hooks, which have handlers: {why}. "
                "Remove the handlers, or pass partial=True to run without them"
            )

    @cached_property
    def policy(self) -> Policy:
        """What decides on tool calls besides handlers; by default every tool of the host may run."""
        return plain_policy(self._policy)

    async def start(
        self,
        prompt: str = "",
        *,
        session: str | None = None,
        system: str = "",
        user: str = "",
        channel: Channel | None = None,
    ) -> BridgeRun:
        """Begin a run. Raises `Blocked` if a handler of `input` blocks the prompt."""
        self._attach_given()
        app = await self._app()
        name = session or f"{self.host}-{urandom(8).hex()}"
        run = BridgeRun(app, name)
        run.system = system
        message: dict[str, Any] = {"content": prompt, "channel": self.host, "chat_id": name}
        if user:
            message["sender_id"] = user
        task = app.process(message, channel or self.channel, session_id=name)
        if not await run.begin(task):
            raise Blocked("the prompt", (await run.turn).stopped, None)
        return run

    async def resume(self, session: str, *, channel: Channel | None = None) -> BridgeRun | None:
        """Continue a run that another process began and parked; None if there is none."""
        self._attach_given()
        app = await self._app()
        run = BridgeRun(app, session)
        return run if await run.begin(app.resume(session, channel or self.channel)) else None

    def start_sync(
        self, prompt: str = "", *, session: str | None = None, system: str = "", user: str = ""
    ) -> BridgeRun:
        """Begin a run from synchronous code."""
        return background().call(self.start(prompt, session=session, system=system, user=user))

    async def close(self) -> None:
        """Close the tape and the sessions of all runs."""
        for scope in [*self._scopes.values()]:
            await scope.close()

    @cached_property
    def _parts(self) -> AgentParts:
        from hookline.tape.memory import MemoryTapeStore

        store = MemoryTapeStore() if self._tape is None else self._tape
        parts = host_parts(self.name, self.host, self.hooks, self.policy, store)
        self.hooks.add(BridgePlugin(parts), name="builtin")
        return parts

    async def _app(self) -> HostRuntime:
        """The running app of the bridge in this event loop."""
        for loop in [each for each, scope in self._scopes.items() if scope.ended]:
            del self._scopes[loop]
        loop = asyncio.get_running_loop()
        scope = self._scopes.get(loop)
        if scope is None:
            scope = self._scopes[loop] = LoopScope(self._parts)
        app = await scope.opened()
        assert isinstance(app, HostRuntime)
        return app


class BridgeRun:
    """One run of a host's agent."""

    def __init__(self, app: HostRuntime, session: str) -> None:
        self.app, self.session = app, session
        self.loop = asyncio.get_running_loop()
        self.system = ""
        """The system prompt, as handlers of `before_agent_start` left it."""
        self.ready: asyncio.Future[None] = self.loop.create_future()
        self.ended: asyncio.Future[str] = self.loop.create_future()
        self.turn: asyncio.Task[Any]
        self._run: AgentRun
        self._engine: Engine
        self._caller: ToolCaller
        self._asked: tuple[asyncio.Future[HostAnswer], asyncio.Task[HostAnswer]] | None = None

    async def begin(self, turn: Coroutine[Any, Any, TurnResult | None]) -> bool:
        """Start the turn of the run; return whether it reached the agent. Raises if a stage failed."""
        self.app.expected[self.session] = self
        self.turn = asyncio.create_task(turn)
        await asyncio.wait([self.turn, self.ready], return_when=asyncio.FIRST_COMPLETED)
        if self.ready.done():
            return True
        self.app.expected.pop(self.session, None)
        await self.turn
        return False

    def attach(self, engine: Engine, run: AgentRun) -> None:
        """Connect to the turn of the app, which waits until the host ends the run."""
        self._engine, self._run = engine, run
        self._caller = run.caller()
        self.system = run.system
        if run.resume is not None:
            run.sent_back = sum("sent_back_by" in entry.meta for entry in run.resume.entries)
        self.ready.set_result(None)

    @property
    def prompt(self) -> str:
        """The prompt, as handlers of `input` and `build_prompt` left it."""
        return content_text(self._run.prompt)

    async def _here(self, coroutine: Any) -> Any:
        """Run a coroutine in the event loop of the run, whichever loop the host calls from."""
        if asyncio.get_running_loop() is self.loop:
            return await coroutine
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.loop))

    def sync(self, coroutine: Any) -> Any:
        """Run one of the methods from synchronous code, in any thread but the loop's own."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def in_thread(self, function: Callable[[Any], T]) -> Callable[[Any], Awaitable[T]]:
        """A synchronous function of the host as one that can be awaited, with its context variables."""
        context = copy_context()

        async def run(argument: Any) -> T:
            return await self.loop.run_in_executor(None, lambda: context.run(function, argument))

        return run

    # --- tools --------------------------------------------------------------------------------

    async def admit(
        self, name: str, arguments: Mapping[str, Any] | str, call_id: str | None = None
    ) -> HostCall:
        """Pass a tool call through every gate: handlers, policy, approval."""
        from hookline.tools.calls import Requested

        requested = Requested(call_id or f"call_{urandom(6).hex()}", name, arguments)
        admitted = await self._here(self._engine.runner.admit(requested, self._caller))
        values = {**admitted.call.arguments}
        return HostCall(admitted.call.id, name, values, admitted.refusal, admitted)

    async def admitted(self, name: str, arguments: Mapping[str, Any], call_id: str) -> HostCall:
        """A call that the host ran, where no admission of it is at hand.

        Another process may have admitted it; otherwise it is recorded now, as let through by the host.
        Without an id, the latest open call of this tool with these arguments is meant.
        """
        return await self._here(self._admitted(name, arguments, call_id))

    async def _admitted(self, name: str, arguments: Mapping[str, Any], call_id: str) -> HostCall:
        from hookline.hooks import Ruling
        from hookline.tape.entry import TOOL_CALL
        from hookline.tools.calls import Admitted, Requested
        from hookline.types import ToolCall

        ctx, values = self._caller.ctx, dict(arguments)
        turn = self._run.resume
        entries = [e.payload for e in turn.entries if e.kind == TOOL_CALL] if turn is not None else []
        if call_id:
            kept = [each for each in entries if each["id"] == call_id]
        else:
            answered = turn.results if turn is not None else {}
            kept = [e for e in entries if (e["name"], e["arguments"]) == (name, values)]
            kept = [each for each in kept if each["id"] not in answered]
            call_id = kept[-1]["id"] if kept else f"call_{urandom(6).hex()}"
        if kept:
            values = dict(kept[-1]["arguments"])
        call = ToolCall(call_id, name, values, ctx.agent_id, ctx.session_id)
        found = Admitted(call, Requested(call_id, name, values), self.app.tools.get(name), values)
        if not kept:
            found.rulings.append(Ruling(reason="the host let it run", by="host"))
            await self._caller.journal.tool_call(call, values, found.rulings)
        return HostCall(call_id, name, values, None, found)

    async def finish(self, call: HostCall, value: Any = None, error: Exception | None = None) -> Any:
        """Pass the result of a call through the gates; returns what the model may see.

        `value` is returned as it is if no handler changed or withheld it.
        """

        async def given(_: dict[str, Any]) -> Any:
            if error is not None:
                raise error
            return value

        return await self._here(self._execute(call, given))

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        invoke: Callable[[dict[str, Any]], Awaitable[Any]],
        call_id: str | None = None,
    ) -> Any:
        """Judge a call, run it with `invoke` if it may run, and judge its result."""
        call = await self.admit(name, arguments, call_id)
        return await self._here(self._execute(call, invoke))

    async def _execute(self, call: HostCall, invoke: Callable[[dict[str, Any]], Awaitable[Any]]) -> Any:
        returned: list[Any] = []

        async def run(arguments: dict[str, Any]) -> Any:
            returned[:] = [await invoke(arguments)]
            return plain(returned[0])

        self.app.executors[call.id] = run
        try:
            outcome = await self._engine.runner.execute(call.admitted, self._caller)
        finally:
            self.app.executors.pop(call.id, None)
        if returned and not outcome.is_error and outcome.content == shown(plain(returned[0])):
            return returned[0]
        return ToolAnswer(content_text(outcome.content), is_error=outcome.is_error, ran=outcome.ran)

    # --- the model ----------------------------------------------------------------------------

    async def call_model(self, request: HostRequest, ask: Ask) -> HostAnswer:
        """Send a request through `context`, `around_model_call`, `model_call` and `model_result`.

        Raises `Blocked` if a handler withholds the request or the answer.
        """
        return await self._here(self._call_model(request, ask))

    async def before_model(self, request: HostRequest) -> HostRequest:
        """The first half of `call_model`, for a host that reports before and after its model call.

        Call `after_model` with the answer, or `fail` if there is none.
        """
        return await self._here(self._before_model(request))

    async def _before_model(self, request: HostRequest) -> HostRequest:
        asked: asyncio.Future[HostRequest] = self.loop.create_future()
        answered: asyncio.Future[HostAnswer] = self.loop.create_future()

        async def ask(changed: HostRequest) -> HostAnswer:
            asked.set_result(changed)
            return await answered

        task = asyncio.create_task(self._call_model(request, ask))
        self._asked = (answered, task)
        await asyncio.wait([asked, task], return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            await task  # raises: a handler withheld the request
            raise BridgeError("a handler of around_model_call answered in place of the host's model")
        return asked.result()

    async def after_model(self, answer: HostAnswer) -> HostAnswer:
        """The second half of `call_model`."""
        return await self._here(self._after_model(answer))

    async def _after_model(self, answer: HostAnswer) -> HostAnswer:
        assert self._asked is not None
        answered, task = self._asked
        self._asked = None
        answered.set_result(answer)
        return await task

    async def forget_model(self) -> None:
        """Drop a model call whose answer never came."""
        if self._asked is not None:
            self._asked[1].cancel()
            await asyncio.wait([self._asked[1]])
            self._asked = None

    async def _call_model(self, request: HostRequest, ask: Ask) -> HostAnswer:
        from hookline.models import ModelRequest

        async def stream(changed: ModelRequest) -> AsyncIterator[StreamEvent]:
            asked = replace(request, messages=changed.messages, system=changed.system)
            answer = await ask(asked)
            if answer.text:
                yield StreamEvent("text", {"delta": answer.text})
            for call in answer.tool_calls:
                yield StreamEvent("tool_call", dict(call))
            if answer.usage:
                yield StreamEvent("usage", answer.usage)
            yield StreamEvent("final", {"finish_reason": answer.finish_reason})

        asked = ModelRequest(
            model=request.model,
            messages=[*request.messages],
            system=request.system,
            tools=[*request.tools],
            request_id=urandom(8).hex(),
            session_id=self.session,
        )
        model = HostModel(request.model, stream)
        answer = await self._engine.model_call.take(model, asked, self._run.ctx, ignore)
        await self._run.journal.assistant(answer.message, answer.usage)
        self._run.messages.append(answer.message)
        self._run.count(answer.usage)
        return HostAnswer(answer.text, answer.tool_calls, answer.usage, answer.finish_reason)

    # --- the end ------------------------------------------------------------------------------

    async def refuses_to_stop(self, text: str) -> str | None:
        """Ask `agent_stop` whether the agent may stop; returns what to tell the model if not."""
        self._run.text = text
        refused = await self._here(self._engine.refuse_stop(self._run))
        return None if refused is None else refused[0]

    async def end(self, text: str) -> str:
        """End the run and return its answer, as handlers of `output` left it.

        Raises `Blocked` if a handler withholds the answer.
        """
        return await self._here(self._end(text))

    async def _end(self, text: str) -> str:
        if not self.ended.done():
            self.ended.set_result(text)
        result = await self.turn
        if result.outcome == "cancelled":
            raise Cancelled(result.stopped or "cancelled")
        return result.model_output

    async def said(self, text: str) -> None:
        """Record an answer of a model that the host calls without reporting it."""
        message = {"role": "assistant", "content": text}
        self._run.messages.append(message)
        await self._run.journal.assistant(message, {})

    async def sent_back(self, reason: str) -> None:
        """Record that the host sends the model on with this message, since it may not stop yet."""
        message = {"role": "user", "content": reason}
        self._run.messages.append(message)
        await self._run.journal.joined(message, {"sent_back_by": "agent_stop"})

    async def park(self) -> None:
        """Leave the run to another process, which continues it with `Bridge.resume`."""
        await self._here(self.forget_model())
        await self._here(self.app.park(self.session))
        with suppress(Exception, asyncio.CancelledError):
            await self.turn

    async def fail(self, error: BaseException) -> None:
        """End the run with an error of the host; `agent_error` and `on_error` see it."""
        await self._here(self._fail(error))

    async def _fail(self, error: BaseException) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
        with suppress(Exception, asyncio.CancelledError):
            await self.turn


class ToolAnswer(str):
    """The text that the model sees in place of a tool's own result."""

    is_error: bool
    ran: bool

    def __new__(cls, text: str, *, is_error: bool, ran: bool) -> ToolAnswer:
        """Make one."""
        answer = super().__new__(cls, text)
        answer.is_error, answer.ran = is_error, ran
        return answer


def plain(value: Any) -> Any:
    """A result in a form that handlers can read: text, JSON or content parts."""
    from hookline.tools.output import model_content

    try:
        model_content(value)
    except HooklineError:
        return str(value)
    return value


def shown(value: Any) -> Any:
    """A result as the model would see it."""
    from hookline.tools.output import model_content

    return model_content(value)


def replaced(
    originals: Sequence[T],
    before: Sequence[dict[str, Any]],
    after: Sequence[dict[str, Any]],
    build: Callable[[dict[str, Any]], T],
) -> list[T]:
    """The host's messages after handlers saw them: unchanged ones as they were, others made anew.

    `before` are the originals as handlers saw them, `after` what they left.
    """
    kept: list[T] = []
    start = 0
    for message in after:
        place = next((i for i in range(start, len(before)) if before[i] == message), None)
        if place is None:
            kept.append(build(message))
        else:
            kept.append(originals[place])
            start = place + 1
    return kept


async def ignore(_: StreamEvent) -> None:
    """Drop a piece of an answer: the host shows it itself."""
