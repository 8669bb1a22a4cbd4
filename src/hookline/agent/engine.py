"""The engine: one run of the agent, from a prompt to an answer.

The loop runs in a task of its own; `start` returns a stream that the task feeds. The reader may be in
another task. If it stops reading, the run is cancelled.

    start, _run          the whole run
    _prepare             prompt, system prompt, and the beginning of the turn on the tape
    _step                one model call, and the tool calls in its answer
    _goes_on, _let_in    what keeps the agent going after an answer: steered messages, `agent_stop`
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hookline.errors import LimitReached, TooManyCalls
from hookline.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    AgentStopEvent,
    BeforeAgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from hookline.hookspecs import Hooks
from hookline.models import ContextOverflow, ModelRequest
from hookline.tools.context import during
from hookline.tools.registry import Registry
from hookline.tools.runner import Admitted, Requested, ToolCaller, ToolOutcome, ToolRunner
from hookline.turn_context import TurnContext, move_to
from hookline.types import (
    AsyncStreamEvents,
    HookContext,
    Message,
    Prompt,
    StreamEvent,
)

from .compactor import Compactor
from .feed import Feed
from .journal import TapeJournal, plain_envelope, plain_message
from .loops import LoopWatch
from .model_call import Emit, FindModel, ModelAnswer, ModelCall
from .recovery import OpenCalls, text_of
from .retry import Retry
from .run import AgentRun, new_hex

if TYPE_CHECKING:
    pass

Step: TypeAlias = Literal["more", "answered", "ended"]
"""What follows a model call: another one, the end with an answer, or the end that a tool asked for."""


class Engine:
    """Runs agents: model calls through `ModelCall`, tool calls through the tool runner."""

    def __init__(
        self, hooks: Hooks, tools: Registry, runner: ToolRunner, find_model: FindModel
    ) -> None:
        self.tools = tools
        self.runner = runner
        self._hooks = hooks
        self.model_call = ModelCall(hooks, find_model)
        self._retry = Retry(hooks)
        self.compactor = Compactor(hooks, self.model_call)
        self._on_turn_start = hooks["on_turn_start"]
        self._system_prompt = hooks["system_prompt"]
        self._bootstrap_files = hooks["bootstrap_files"]
        self._before_start = hooks[BeforeAgentStartEvent]
        self._start = hooks[AgentStartEvent]
        self._stop = hooks[AgentStopEvent]
        self._end = hooks[AgentEndEvent]
        self._error = hooks[AgentErrorEvent]
        self._turn_start = hooks[TurnStartEvent]
        self._turn_end = hooks[TurnEndEvent]
        self._message_start = hooks[MessageStartEvent]
        self._message_end = hooks[MessageEndEvent]
        self._on_turn_end = hooks["on_turn_end"]

    def start(self, run: AgentRun) -> AsyncStreamEvents:
        """Start a run and return its stream, whose `state` is the run."""
        run.feed, run.journal = Feed(), TapeJournal(run.tape)
        run.task = asyncio.create_task(self._feed(run), name=f"agent {run.ctx.session_id}")
        return AsyncStreamEvents(run.feed.read(run), state=run)

    async def _feed(self, run: AgentRun) -> None:
        """Run the agent; its last event is the end or the error."""
        try:
            with during(None):  # an agent that a tool started is not bound by that tool's permissions
                await self._run(run)
            final = {"text": run.text, "usage": dict(run.usage), "finish_reason": "stop"}
            run.feed.put(StreamEvent("final", final))
        except Exception as error:
            run.error = error
            if self._error.live:
                await self._error.fire(AgentErrorEvent(error), run.ctx)
            run.feed.put(StreamEvent("error", {"error": error, "message": str(error)}))
        finally:
            run.steering.close()
            run.feed.close()

    async def _run(self, run: AgentRun) -> None:
        turn = TurnContext(
            run.ctx.session_id,
            run.resume.turn_id if run.resume else run.turn_id,
            channel=run.ctx.channel,
        )
        move_to(turn)
        await self._prepare(run)
        step: Step = "ended" if await self._take_up(run) else "more"
        if step == "more" and self._answered(run):
            step = "answered"
        index = run.resume.model_turns if run.resume else 0
        watch = LoopWatch(self._hooks)
        while step == "more" or (step == "answered" and await self._goes_on(run)):
            if index >= run.limits.steps:
                raise LimitReached(
                    f"the agent stopped after {run.limits.steps} model turns without an answer"
                )
            await self._let_in(run)
            move_to(TurnContext(turn.session_id, turn.turn_id, index, channel=turn.channel))
            step = await self._step(run, index, watch)
            index += 1
            move_to(turn)
        if self._end.live:
            await self._end.fire(AgentEndEvent(list(run.messages)), run.ctx)
        if self._on_turn_end.live:
            await self._on_turn_end.fire(run.ctx.agent_id, run.text)

    # --- before the loop ----------------------------------------------------------------------

    async def _prepare(self, run: AgentRun) -> None:
        """Do what comes before the first model call; a resumed run has most of it behind it."""
        run.messages = await run.conversation.messages(run.tape, run.tape_context)
        if run.resume is not None:
            run.turn_id, run.system = run.resume.turn_id, run.resume.system
            if run.resume.tools is not None:
                self._narrow(run, run.resume.tools)
            return
        message: Message = {"role": "user", "content": run.prompt}
        tools: list[str] | None = None
        run.messages.append(message)
        if self._on_turn_start.live:
            await self._on_turn_start.fire(run.ctx.agent_id, list(run.messages))
        run.system = await self._system(run)
        if self._before_start.live:
            names = [tool["name"] for tool in self._schemas(run)]
            event = BeforeAgentStartEvent(run.prompt, run.system, names)
            verdict = await self._before_start.fire(event, run.ctx)
            run.system = verdict.event.system_prompt
            if "tools" in verdict.changes:
                tools = self._narrow(run, verdict.event.tools)
        if self._start.live:
            await self._start.fire(AgentStartEvent(), run.ctx)
        await self._show(message, run.ctx)
        await run.journal.begin(
            plain_message(message),
            run.turn_id,
            run.envelope,
            run.system,
            run.identity,
            str(run.workspace),
            tools,
            run.missing,
        )

    def _narrow(self, run: AgentRun, names: Iterable[str]) -> list[str]:
        """Leave the agent only the named tools; return them."""
        kept = frozenset(names)
        run.tools = frozenset(tool["name"] for tool in self._schemas(run) if tool["name"] in kept)
        return sorted(run.tools)

    async def _system(self, run: AgentRun) -> str:
        parts: list[str] = []
        if self._system_prompt.live:
            parts.append(self._system_prompt.fire(run.prompt, run.state))
        if self._bootstrap_files.live:
            for given in await self._bootstrap_files.fire(run.ctx.agent_id):
                parts.extend([given] if isinstance(given, str) else given)
        parts.append(run.instructions)
        return "\n\n".join(part for part in parts if part)

    def _answered(self, run: AgentRun) -> bool:
        """A resumed run may have its answer already."""
        if run.resume is None:
            return False
        last = run.messages[-1] if run.messages else None
        if last is None or last["role"] != "assistant" or last.get("tool_calls"):
            return False
        run.text = str(last["content"])
        return True

    # --- the loop -----------------------------------------------------------------------------

    async def _step(self, run: AgentRun, index: int, watch: LoopWatch) -> Step:
        """Make one model call and the tool calls in its answer."""
        ctx = run.ctx
        if self._turn_start.live:
            await self._turn_start.fire(TurnStartEvent(index, time.time()), ctx)
        try:
            answer = await self._ask(run, index)
        except TooManyCalls as refusal:  # nothing of such an answer runs or stays in the context
            run.unsaved.clear()
            await self._say(run, str(refusal), {"sent_back_by": "limits.tool_calls"})
            return "more"
        run.messages.append(answer.message)
        await run.journal.assistant(answer.message, answer.usage)
        run.unsaved.clear()
        run.count(answer.usage)
        run.check_budget()
        calls = [Requested(c["id"], c["name"], c["arguments"]) for c in answer.tool_calls]
        outcomes = await self._call_tools(run, calls)
        await watch.look(outcomes, ctx)
        if self._turn_end.live:
            results = [outcome.result for outcome in outcomes]
            await self._turn_end.fire(TurnEndEvent(index, answer.message, results), ctx)
        if not answer.tool_calls:
            run.text = answer.text
            return "answered"
        if all(outcome.terminate for outcome in outcomes):
            run.text = answer.text or text_of(outcomes[-1].content)
            return "ended"
        return "more"

    # --- going on -----------------------------------------------------------------------------

    async def _goes_on(self, run: AgentRun) -> bool:
        """Whether to go on after an answer: a message joined, or `agent_stop` sent the agent back."""
        if (wrong := run.wrong_form()) is not None:
            await self._say(run, wrong, {"sent_back_by": "output"})
            return True
        if not run.steering and (refused := await self.refuse_stop(run)) is not None:
            reason, by = refused
            await self._say(run, reason, {"sent_back_by": by})
            return True
        return bool(run.steering)

    async def refuse_stop(self, run: AgentRun) -> tuple[str, str | None] | None:
        """Let `agent_stop` judge the answer; return a refusal, for the model, and who refused."""
        if not self._stop.live or run.sent_back >= run.limits.sent_back:
            return None
        verdict = await self._stop.fire(AgentStopEvent(list(run.messages), run.text), run.ctx)
        if not verdict.denied:
            return None
        run.sent_back += 1
        return verdict.reason or "You are not done yet. Go on.", verdict.decided_by

    async def _let_in(self, run: AgentRun) -> None:
        """Add the messages that joined the run since the last model call."""
        for steered in run.steering.take():
            origin = {
                "steered": True,
                "envelope": plain_envelope(steered.envelope),
                "identity": steered.identity.plain(),
            }
            run.joined_by(steered.identity)
            await self._say(run, steered.prompt, origin)
            run.journal.identity = run.identity
            if not steered.joined.done():
                steered.joined.set_result(True)

    async def _say(self, run: AgentRun, prompt: Prompt, origin: dict[str, Any]) -> None:
        """Add a user message to the run."""
        message: Message = {"role": "user", "content": prompt}
        run.messages.append(message)
        await self._show(message, run.ctx)
        await run.journal.joined(plain_message(message), origin)
        await run.emit(StreamEvent("user", {"content": message["content"]}))

    async def _ask(self, run: AgentRun, index: int) -> ModelAnswer:
        """Ask the model; if the request is too long, compact the context and ask again."""

        def ask(emit: Emit) -> Awaitable[ModelAnswer]:
            request = self._request(run, index)
            limits = run.limits
            return self.model_call.take(
                run.model, request, run.ctx, emit, limits.streaming, limits.tool_calls
            )

        if self.compactor.is_due(run.model, run.messages, run.limits.compacting):
            await self._compact(run, "near the context limit")
        try:
            return await self._retry.ask(ask, run.emit, run.ctx, run.limits.retry)
        except ContextOverflow:
            if not await self._compact(run, "context overflow"):
                raise
            return await self._retry.ask(ask, run.emit, run.ctx, run.limits.retry)

    async def _compact(self, run: AgentRun, why: str) -> bool:
        """Compact the context; return whether that made room."""
        run.on_phase("compaction")
        try:
            made = await self.compactor.make_room(
                run.tape, run.model, run.ctx, run.limits.compacting, why
            )
        finally:
            run.on_phase("turn")
        if made is not None:
            run.messages = await run.conversation.messages(run.tape, run.tape_context)
        return made is not None

    def _request(self, run: AgentRun, index: int) -> ModelRequest:
        """Build the request; a forced tool call is forced once."""
        return ModelRequest(
            model=run.model.name,
            messages=run.messages,
            system=run.system,
            tools=self._schemas(run),
            tool_choice=run.tool_choice if index == 0 else "auto",
            request_id=new_hex(),
            session_id=run.ctx.session_id,
            options=run.options,
            thinking=run.thinking,
            output=None if run.output is None else run.output.schema,
            encoded=run.conversation.encoded,
        )

    def _schemas(self, run: AgentRun) -> list[dict[str, Any]]:
        if run.tools is None:
            return self.tools.schemas()
        return self.tools.schemas([name for name in self.tools.names() if name in run.tools])

    # --- tools --------------------------------------------------------------------------------

    async def _call_tools(self, run: AgentRun, requests: list[Requested]) -> list[ToolOutcome]:
        """Admit the calls one after another, run them concurrently, return the outcomes in order."""
        if not requests:
            return []
        caller = run.caller()
        admitted = [await self.runner.admit(request, caller) for request in requests]
        if len(admitted) == 1:
            outcomes = [await self.runner.execute(admitted[0], caller)]
        else:
            outcomes = await self._together(admitted, caller, run.limits.parallel_tools)
        for outcome in outcomes:
            await self._answer_call(run, outcome)
        return outcomes

    async def _together(
        self, admitted: list[Admitted], caller: ToolCaller, at_once: int
    ) -> list[ToolOutcome]:
        places = asyncio.Semaphore(at_once)

        async def one(call: Admitted) -> ToolOutcome:
            async with places:
                return await self.runner.execute(call, caller)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(call)) for call in admitted]
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None  # the others were cancelled for its sake
        return [task.result() for task in tasks]

    async def _answer_call(self, run: AgentRun, outcome: ToolOutcome) -> None:
        message: Message = {
            "role": "tool",
            "tool_call_id": outcome.call.id,
            "name": outcome.call.name,
            "content": outcome.content,
        }
        if outcome.is_error:
            message["is_error"] = True
        run.messages.append(message)
        await self._show(message, run.ctx)
        call, content = outcome.call, outcome.content
        data = {"id": call.id, "name": call.name, "content": content, "is_error": outcome.is_error}
        await run.emit(StreamEvent("tool_result", data))

    async def _show(self, message: Message, ctx: HookContext) -> None:
        if self._message_start.live:
            await self._message_start.fire(MessageStartEvent(message), ctx)
        if self._message_end.live:
            await self._message_end.fire(MessageEndEvent(message), ctx)

    async def _take_up(self, run: AgentRun) -> bool:
        """Finish the tool calls of an interrupted turn; return whether the run ends with them."""
        calls = OpenCalls.of(run, self.tools)
        if calls is None:
            return False
        for outcome in calls.interrupted:
            await run.journal.tool_result(outcome.result, ran=True, terminate=False, rulings=[])
            await self._answer_call(run, outcome)
        await self._call_tools(run, calls.again)
        return await calls.end(run)
