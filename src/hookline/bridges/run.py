"""`BridgeRun`: one run of a host's agent, and what a host reports about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from os import urandom
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.errors import BridgeError, Cancelled
from hookline.events import SessionBeforeCompactEvent, SubagentEndEvent, SubagentStartEvent
from hookline.models.model import content_text
from hookline.types import StreamEvent

from .host import HostModel, HostRuntime
from .reports import HostAnswer, HostRequest
from .run_tools import RunTools

if TYPE_CHECKING:
    from hookline.agent.engine import Engine
    from hookline.agent.run import AgentRun
    from hookline.events import SubagentStatus
    from hookline.hookspecs import Hooks
    from hookline.models import ModelRequest
    from hookline.runtime.turn import TurnResult
    from hookline.tools.calls import ToolCaller

T = TypeVar("T")
Ask = Callable[[HostRequest], Awaitable[HostAnswer]]
"""Sends a request to the host's model."""


class BridgeRun(RunTools):
    """One run of a host's agent."""

    def __init__(self, app: HostRuntime, session: str) -> None:
        self.app, self.session = app, session
        self.loop = asyncio.get_running_loop()
        self.system = ""
        """The system prompt that the host gave, with what handlers of `before_agent_start` added."""
        self._added = ""
        """What to add to the system prompt of each request, if the host gave none at the start."""
        self.ready: asyncio.Future[None] = self.loop.create_future()
        self.ended: asyncio.Future[str] = self.loop.create_future()
        self.turn: asyncio.Task[Any]
        self._run: AgentRun
        self._engine: Engine
        self._caller: ToolCaller
        self._asked: tuple[asyncio.Future[HostAnswer], asyncio.Task[HostAnswer]] | None = None
        self._open: set[asyncio.Task[Any]] = set()
        """Calls of tools and of the model that the host has begun and not finished."""

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
        self._added = "" if self.system else run.system
        self.system = run.system
        if run.resume is not None:
            run.sent_back = sum("sent_back_by" in entry.meta for entry in run.resume.entries)
        self.ready.set_result(None)

    @property
    def prompt(self) -> str:
        """The prompt, as handlers of `input` and `build_prompt` left it."""
        return content_text(self._run.prompt)

    def sync(self, coroutine: Any) -> Any:
        """Run one of the methods from synchronous code, in any thread but the loop's own."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def in_thread(self, function: Callable[[Any], T]) -> Callable[[Any], Awaitable[T]]:
        """A synchronous function of the host as one that can be awaited, with its context variables."""
        context = copy_context()

        async def run(argument: Any) -> T:
            return await self.loop.run_in_executor(None, lambda: context.run(function, argument))

        return run

    # --- the model ----------------------------------------------------------------------------

    async def call_model(self, request: HostRequest, ask: Ask) -> HostAnswer:
        """Send a request through `context`, `around_model_call`, `model_call` and `model_result`.

        Raises `Blocked` if a handler withholds the request or the answer.
        """
        return await self._here(self._call_model(request, self._back(ask)))

    async def stream_model(
        self,
        request: HostRequest,
        source: Callable[[HostRequest], AsyncIterator[Any]],
        answer_of: Callable[[list[Any]], HostAnswer],
    ) -> AsyncIterator[Any]:
        """`call_model` for a host that streams; `source` gives the events of the host's model.

        Yields the events as they come, unless handlers judge the answer, and at last the `HostAnswer`
        that the gates left.
        """
        events: asyncio.Queue[Any] = asyncio.Queue()
        over, live = object(), not self.judges

        async def ask(changed: HostRequest) -> HostAnswer:
            given: list[Any] = []
            async for event in source(changed):
                given.append(event)
                if live:
                    events.put_nowait(event)
            return answer_of(given)

        task = asyncio.create_task(self.call_model(request, ask))
        task.add_done_callback(lambda _: events.put_nowait(over))
        try:
            while (event := await events.get()) is not over:
                yield event
            yield await task
        finally:
            task.cancel()

    @property
    def judges(self) -> list[str]:
        """The hooks with handlers that judge what the model says."""
        return judges(self.app.hooks)

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
        self._open.add(task)
        task.add_done_callback(self._open.discard)
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
            system="\n\n".join(text for text in (request.system, self._added) if text),
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

    # --- subagents and compaction ---------------------------------------------------------------

    async def subagent_starts(self, task_id: str, label: str = "", task: str = "") -> None:
        """Report that a subagent of the host takes up a task."""
        event = SubagentStartEvent(task_id, label, task)
        await self._here(self.app.hooks[SubagentStartEvent].fire(event, self._run.ctx))

    async def subagent_ends(
        self, task_id: str, label: str = "", status: SubagentStatus = "completed", result: Any = None
    ) -> None:
        """Report that a subagent of the host ended."""
        event = SubagentEndEvent(task_id, label, status, result)
        await self._here(self.app.hooks[SubagentEndEvent].fire(event, self._run.ctx))

    async def refuses_to_compact(self, instructions: str | None = None) -> str | None:
        """Ask `session_before_compact` whether the host may summarise; returns why not."""
        event = SessionBeforeCompactEvent(custom_instructions=instructions)
        verdict = await self._here(self.app.hooks[SessionBeforeCompactEvent].fire(event, self._run.ctx))
        return (verdict.reason or "refused") if verdict.denied else None

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

    def _drop_open(self) -> None:
        for task in self._open:
            task.cancel()

    async def _end(self, text: str) -> str:
        self._drop_open()
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

    def abandon(self, error: BaseException) -> None:
        """`fail` without waiting for the handlers, in the event loop of the run."""
        self._drop_open()
        if not self.ended.done():
            self.ended.set_exception(error)

    async def _fail(self, error: BaseException) -> None:
        self.abandon(error)
        with suppress(Exception, asyncio.CancelledError):
            await self.turn


def judges(hooks: Hooks) -> list[str]:
    """The hooks with handlers that judge what a model says, which must not be shown before."""
    return [name for name in ("model_result", "output", "agent_stop") if hooks[name].count()]


async def ignore(_: StreamEvent) -> None:
    """Drop a piece of an answer: the host shows it itself."""
