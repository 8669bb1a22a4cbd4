"""The engine: one run of the agent, from a prompt to an answer.

The loop runs in a task of its own, under an explicit session key; the stream that `start` gives is fed
from it. Whoever reads the stream may be in another task, may stop reading (then the run is cancelled),
and never runs the loop itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hookline.errors import Cancelled, LimitReached, OutputInvalid, TooManyCalls
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
from hookline.specs import SideEffects
from hookline.tools.arguments import ArgumentLimits
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
    ToolResultContent,
)

from .compactor import Compactor
from .feed import Feed
from .journal import TapeJournal, plain_content, plain_envelope
from .loops import LoopWatch
from .model_call import Emit, FindModel, ModelAnswer, ModelCall
from .retry import Retry
from .run import AgentRun, new_hex

if TYPE_CHECKING:
    from .output import OutputForm

INTERRUPTED = (
    "this call was interrupted before its result was known; it may or may not have taken effect. "
    "Check before you try again."
)


Step: TypeAlias = Literal["more", "answered", "ended"]
"""What a model turn leads to: another one, an answer, or an end that a tool asked for."""


class Engine:
    """Runs agents: model turns through `ModelCall`, tool calls through the one runner."""

    def __init__(
        self, hooks: Hooks, tools: Registry, runner: ToolRunner, find_model: FindModel
    ) -> None:
        self.tools = tools
        self.runner = runner
        self._hooks = hooks
        self._model_turn = ModelCall(hooks, find_model)
        self._retry = Retry(hooks)
        self.compactor = Compactor(hooks, self._model_turn)
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
        """Begin a run and give its stream; the run itself is the stream's state."""
        feed = Feed()
        run.task = asyncio.create_task(self._feed(run, feed), name=f"agent {run.ctx.session_id}")
        return AsyncStreamEvents(read(feed, run), state=run)

    async def _feed(self, run: AgentRun, feed: Feed) -> None:
        async def emit(event: StreamEvent) -> None:
            if event.kind == "text":
                run.unsaved.append(event.data["delta"])
            feed.put(event)

        try:
            with during(None):  # an agent that a tool started is not bound by that tool's permissions
                await self._run(run, emit)
            final = {"text": run.text, "usage": dict(run.usage), "finish_reason": "stop"}
            feed.put(StreamEvent("final", final))
        except Exception as error:
            run.error = error
            if self._error.live:
                await self._error.fire(AgentErrorEvent(error), run.ctx)
            feed.put(StreamEvent("error", {"error": error, "message": str(error)}))
        finally:
            run.steering.close()
            feed.close()

    async def _run(self, run: AgentRun, emit: Emit) -> None:
        journal = TapeJournal(run.tape)
        turn = TurnContext(
            run.ctx.session_id,
            run.resume.turn_id if run.resume else run.turn_id,
            channel=run.ctx.channel,
        )
        move_to(turn)
        await self._prepare(run, journal)
        step: Step = "ended" if await self._take_up(run, journal, emit) else "more"
        if step == "more" and self._answered(run):
            step = "answered"
        index = run.resume.model_turns if run.resume else 0
        watch = LoopWatch(self._hooks)
        while step == "more" or (step == "answered" and await self._goes_on(run, journal, emit)):
            if index >= run.limits.steps:
                raise LimitReached(
                    f"the agent stopped after {run.limits.steps} model turns without an answer"
                )
            await self._let_in(run, journal, emit)
            move_to(TurnContext(turn.session_id, turn.turn_id, index, channel=turn.channel))
            step = await self._step(run, journal, emit, index, watch)
            index += 1
            move_to(turn)
        if self._end.live:
            await self._end.fire(AgentEndEvent(list(run.messages)), run.ctx)
        if self._on_turn_end.live:
            await self._on_turn_end.fire(run.ctx.agent_id, run.text)

    # --- before the loop ----------------------------------------------------------------------

    async def _prepare(self, run: AgentRun, journal: TapeJournal) -> None:
        """Everything before the first model turn; a resumed run has most of it behind it."""
        run.messages = run.tape_context.messages(await run.tape.context_entries())
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
        await journal.begin(
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
        """Leave the agent only those of its tools that are named; gives them."""
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

    async def _step(
        self, run: AgentRun, journal: TapeJournal, emit: Emit, index: int, watch: LoopWatch
    ) -> Step:
        """One model turn and its tools."""
        ctx = run.ctx
        if self._turn_start.live:
            await self._turn_start.fire(TurnStartEvent(index, time.time()), ctx)
        try:
            answer = await self._ask(run, emit, index)
        except TooManyCalls as refusal:  # nothing of such an answer runs, or stays in the context
            run.unsaved.clear()
            await self._say(run, journal, emit, str(refusal), {"sent_back_by": "limits.tool_calls"})
            return "more"
        run.messages.append(answer.message)
        await journal.assistant(answer.message, answer.usage)
        run.unsaved.clear()
        run.count(answer.usage)
        run.check_budget()
        outcomes = await self._call_tools(run, journal, emit, requests_of(answer))
        await watch.look(outcomes, ctx)
        if self._turn_end.live:
            results = [outcome.result for outcome in outcomes]
            await self._turn_end.fire(TurnEndEvent(index, answer.message, results), ctx)
        if not answer.tool_calls:
            run.text = answer.text
            return "answered"
        if finished(outcomes):
            run.text = answer.text or text_of_content(outcomes[-1].content)
            return "ended"
        return "more"

    # --- going on -----------------------------------------------------------------------------

    async def _goes_on(self, run: AgentRun, journal: TapeJournal, emit: Emit) -> bool:
        """Whether there is more to do after an answer: somebody joined, or `agent_stop` says so."""
        if run.output is not None and not await self._has_form(run, run.output, journal, emit):
            return True
        if not run.steering and self._stop.live and run.sent_back < run.limits.sent_back:
            event = AgentStopEvent(list(run.messages), run.text)
            verdict = await self._stop.fire(event, run.ctx)
            if verdict.denied:
                run.sent_back += 1
                reason = verdict.reason or "You are not done yet. Go on."
                await self._say(run, journal, emit, reason, {"sent_back_by": verdict.decided_by})
                return True
        return bool(run.steering)

    async def _has_form(
        self, run: AgentRun, output: OutputForm[Any], journal: TapeJournal, emit: Emit
    ) -> bool:
        """Whether an answer has its form; if not, tell the model what is wrong, a few times."""
        try:
            output.read(run.text)
        except OutputInvalid as error:
            run.misread += 1
            if run.misread > run.limits.output_retries:
                raise OutputInvalid(
                    f"the model gave {run.misread} answers that are no {output.schema.name}: {error}"
                ) from None
            told = f"Your answer does not have the form that was asked for: {error}. Answer again."
            await self._say(run, journal, emit, told, {"sent_back_by": "output"})
            return False
        return True

    async def _let_in(self, run: AgentRun, journal: TapeJournal, emit: Emit) -> None:
        """Take in the messages that joined since the last model call."""
        for steered in run.steering.take():
            origin = {
                "steered": True,
                "envelope": plain_envelope(steered.envelope),
                "identity": steered.identity.plain(),
            }
            run.joined_by(steered.identity)
            await self._say(run, journal, emit, steered.prompt, origin)
            journal.identity = run.identity
            if not steered.joined.done():
                steered.joined.set_result(True)

    async def _say(
        self, run: AgentRun, journal: TapeJournal, emit: Emit, prompt: Prompt, origin: dict[str, Any]
    ) -> None:
        """Add a user's message to a run that is under way."""
        message: Message = {"role": "user", "content": prompt}
        run.messages.append(message)
        await self._show(message, run.ctx)
        await journal.joined(plain_message(message), origin)
        await emit(StreamEvent("user", {"content": message["content"]}))

    async def _ask(self, run: AgentRun, emit: Emit, index: int) -> ModelAnswer:
        """One answer; a request that is too long is made once more with less context."""

        def ask(emit: Emit) -> Awaitable[ModelAnswer]:
            request = self._request(run, index)
            limits = run.limits
            return self._model_turn.take(
                run.model, request, run.ctx, emit, limits.streaming, limits.tool_calls
            )

        if self.compactor.is_due(run.model, run.messages, run.limits.compacting):
            await self._compact(run, "near the context limit")
        try:
            return await self._retry.ask(ask, emit, run.ctx, run.limits.retry)
        except ContextOverflow:
            if not await self._compact(run, "context overflow"):
                raise
            return await self._retry.ask(ask, emit, run.ctx, run.limits.retry)

    async def _compact(self, run: AgentRun, why: str) -> bool:
        """Make room in the context; whether there is more of it now."""
        run.on_phase("compaction")
        try:
            made = await self.compactor.make_room(
                run.tape, run.model, run.ctx, run.limits.compacting, why
            )
        finally:
            run.on_phase("turn")
        if made is not None:
            run.messages = run.tape_context.messages(await run.tape.context_entries())
        return made is not None

    def _request(self, run: AgentRun, index: int) -> ModelRequest:
        """What the model is asked; a forced tool call is forced once."""
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
        )

    def _schemas(self, run: AgentRun) -> list[dict[str, Any]]:
        if run.tools is None:
            return self.tools.schemas()
        return self.tools.schemas([name for name in self.tools.names() if name in run.tools])

    # --- tools --------------------------------------------------------------------------------

    async def _call_tools(
        self, run: AgentRun, journal: TapeJournal, emit: Emit, requests: list[Requested]
    ) -> list[ToolOutcome]:
        """Admit the calls one after the other, run them together, answer in their order."""
        if not requests:
            return []
        caller = ToolCaller(
            run.ctx,
            journal,
            run.workspace,
            run.state,
            run.limits.tool_seconds,
            allowed=run.tools,
            identity=run.identity,
            limits=ArgumentLimits(run.limits.argument_size, run.limits.argument_depth),
            message=run.envelope,
        )
        admitted = [await self.runner.admit(request, caller) for request in requests]
        if len(admitted) == 1:
            outcomes = [await self.runner.execute(admitted[0], caller)]
        else:
            outcomes = await self._together(admitted, caller, run.limits.parallel_tools)
        for outcome in outcomes:
            await self._answer_call(run, outcome, emit)
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

    async def _answer_call(self, run: AgentRun, outcome: ToolOutcome, emit: Emit) -> None:
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
        data = {
            "id": outcome.call.id,
            "name": outcome.call.name,
            "content": outcome.content,
            "is_error": outcome.is_error,
        }
        await emit(StreamEvent("tool_result", data))

    async def _show(self, message: Message, ctx: HookContext) -> None:
        if self._message_start.live:
            await self._message_start.fire(MessageStartEvent(message), ctx)
        if self._message_end.live:
            await self._message_end.fire(MessageEndEvent(message), ctx)

    # --- after a crash ------------------------------------------------------------------------

    async def _take_up(self, run: AgentRun, journal: TapeJournal, emit: Emit) -> bool:
        """Finish the tool calls that a crash left open; whether the run is done with them.

        A call that had not started is made now. One that may have run is made again only where that
        does no harm; otherwise the model is told that it was interrupted.
        """
        cut = run.resume
        last = cut.last_message if cut else None
        if cut is None or last is None or last["role"] != "assistant" or not last.get("tool_calls"):
            return False
        open_calls = [c for c in last["tool_calls"] if c["id"] not in cut.results]
        run.messages = [
            m for m in run.messages if m.get("tool_call_id") not in {c["id"] for c in open_calls}
        ]
        again: list[Requested] = []
        for call in open_calls:
            started = call["id"] in cut.started_calls and not self._harmless(call["name"])
            if started or call.get("redacted"):  # its real arguments were not kept
                await self._interrupted(run, journal, call, emit)
            else:
                again.append(Requested(call["id"], call["name"], call["arguments"]))
        await self._call_tools(run, journal, emit, again)
        ids = {call["id"] for call in last["tool_calls"]}
        entries = await run.tape.context_entries()
        results = [
            e.payload for e in entries if e.payload.get("tool_call_id") in ids and "ran" in e.payload
        ]
        if not all(result["terminate"] for result in results):
            return False
        run.text = str(last["content"]) or text_of_content(results[-1]["content"])
        return True

    def _harmless(self, name: str) -> bool:
        """Whether a tool may run twice: it only reads, or it knows its own repetitions."""
        if name not in self.tools:
            return False
        spec = self.tools.get(name).spec
        return spec.side_effects in (SideEffects.none, SideEffects.read) or bool(spec.idempotency_key)

    async def _interrupted(
        self, run: AgentRun, journal: TapeJournal, call: dict[str, Any], emit: Emit
    ) -> None:
        result = ToolResultContent(call["id"], call["name"], INTERRUPTED, is_error=True)
        await journal.tool_result(result, ran=True, terminate=False, rulings=[])
        message: Message = {
            "role": "tool", "tool_call_id": call["id"], "name": call["name"], "content": INTERRUPTED,
            "is_error": True,
        }  # fmt: skip
        run.messages.append(message)
        await self._show(message, run.ctx)
        data = {"id": call["id"], "name": call["name"], "content": INTERRUPTED, "is_error": True}
        await emit(StreamEvent("tool_result", data))


async def read(feed: Feed, run: AgentRun) -> AsyncIterator[StreamEvent]:
    """What the run's task has put in the feed; leaving early cancels the run."""
    task = run.task
    assert task is not None
    try:
        while events := await feed.take():
            for event in events:
                yield event
        try:
            await task
        except asyncio.CancelledError:
            if run.cancelled:
                raise Cancelled("parked" if run.parked else "cancelled") from None
            raise
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def requests_of(answer: ModelAnswer) -> list[Requested]:
    """The tool calls of an answer."""
    return [Requested(c["id"], c["name"], c["arguments"]) for c in answer.tool_calls]


def finished(outcomes: list[ToolOutcome]) -> bool:
    """Whether every result of a batch says that no further model call is wanted."""
    return bool(outcomes) and all(outcome.terminate for outcome in outcomes)


def plain_message(message: Message) -> Message:
    """A message as JSON, for the tape."""
    content = message["content"]
    if isinstance(content, str) or all(isinstance(part, dict) for part in content):
        return message
    return {**message, "content": plain_content(content)}


def text_of_content(content: Any) -> str:
    """The text of a result, whatever it is made of."""
    if isinstance(content, str):
        return content
    return "\n".join(str(getattr(part, "text", "")) for part in content)
