"""The one runner: every tool call, whoever makes it, goes through `ToolRunner` and nowhere else.

    tool_execution_start, arguments parsed
    before_tool_call, tool_call (gate), schema check, authorize_action, judgement, approval
    on the tape, durable
    around_tool_call, the tool (tool_execution_update)
    after_tool_call, tool_result (gate), tool_execution_failure, tool_execution_end
    tool_result_persist, on the tape

The first half is `admit`, the second `execute`; several calls of one model turn are admitted one
after the other and executed together. A call that is refused or invalid skips the tool and
`after_tool_call`; everything from `tool_result` on happens all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from hookline.catalog.calls import ToolCall, ToolResultContent
from hookline.catalog.context import HookContext
from hookline.catalog.events.tool import (
    ToolCallEvent,
    ToolExecutionEndEvent,
    ToolExecutionFailureEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResultEvent,
)
from hookline.catalog.parts import Content
from hookline.catalog.place import at
from hookline.catalog.place import call as call_place
from hookline.hooks import Decision, HooklineError, Hooks, Ruling, Verdict
from hookline.hooks.errors import error_text

from .action import about, copied, describe, parse
from .context import ToolContext, during, nobody_watches
from .output import model_content
from .progress import Progress
from .registry import Registry
from .spool import fit
from .tool import Tool


class ToolRefused(HooklineError):
    """A call that a gate denied; the message is what the model is told."""


class Journal(Protocol):
    """Where calls and results are kept; each is durable when its coroutine returns."""

    async def tool_call(self, call: ToolCall, requested: Any, rulings: list[Ruling]) -> None:
        """Keep a call that is about to run: final arguments, the asked-for ones, who decided."""
        ...

    async def tool_result(
        self, result: ToolResultContent, *, ran: bool, terminate: bool, rulings: list[Ruling]
    ) -> None:
        """Keep a result, as `tool_result_persist` left it."""
        ...


Judge = Callable[[dict[str, Any]], Awaitable[Sequence[Ruling]]]
"""Policy that is not a plugin's: the default, packs and the operator's floor, after `authorize_action`.

It is given the action with `authorized`, the plugins' answer; every ruling goes on the tape."""

Resolve = Callable[[dict[str, Any]], Awaitable[Any]]
"""Puts a request to `resolve_approval`."""

Approve = Callable[[dict[str, Any], Resolve | None], Awaitable[Ruling]]
"""Decides on a question, by what was granted before or by whoever answers; None: nobody is there."""

Record = Callable[[dict[str, Any], Sequence[Ruling], str], Awaitable[None]]
"""Writes a decision down: the call, who ruled what, and what came of it. A failure denies the call."""


@dataclass(slots=True)
class Caller:
    """On whose behalf calls are run."""

    ctx: HookContext
    journal: Journal
    workspace: Path
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    timeout: float | None = None
    """Seconds that a tool may run which sets no limit of its own."""
    source: str = "model"
    """Who asks: model, command, shell, trigger, replay."""
    allowed: frozenset[str] | None = None
    """The tools within reach; None: all."""


@dataclass(slots=True)
class Requested:
    """A call as it was asked for; a model's arguments are text."""

    id: str
    name: str
    arguments: str | Mapping[str, Any]


@dataclass(slots=True)
class Admitted:
    """A call that passed the gates, or why it did not."""

    call: ToolCall
    requested: Requested
    tool: Tool | None = None
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    refusal: str | None = None
    rulings: list[Ruling] = field(default_factory=list[Ruling])


@dataclass(slots=True)
class ToolOutcome:
    """What a call came to, as the model sees it."""

    call: ToolCall
    content: Content
    is_error: bool = False
    ran: bool = False
    terminate: bool = False

    @property
    def result(self) -> ToolResultContent:
        """The same as the record that events carry."""
        return ToolResultContent(self.call.id, self.call.name, self.content, self.is_error)


class ToolRunner:
    """Runs tools of a registry, through every hook that has a say."""

    def __init__(
        self,
        hooks: Hooks,
        registry: Registry,
        *,
        judge: Judge | None = None,
        approve: Approve | None = None,
        record: Record | None = None,
    ) -> None:
        self.registry = registry
        self.judge = judge
        self.approve = approve or ask_alone
        self.record = record
        self._line_of = hooks.line_of
        self._start = hooks["tool_execution_start"]
        self._before = hooks["before_tool_call"]
        self._gate = hooks["tool_call"]
        self._authorize = hooks["authorize_action"]
        self._approve = hooks["resolve_approval"]
        self._around = hooks["around_tool_call"]
        self._update = hooks["tool_execution_update"]
        self._after = hooks["after_tool_call"]
        self._result = hooks["tool_result"]
        self._failure = hooks["tool_execution_failure"]
        self._end = hooks["tool_execution_end"]
        self._persist = hooks["tool_result_persist"]

    async def run(self, requested: Requested, caller: Caller) -> ToolOutcome:
        """One call from beginning to end."""
        return await self.execute(await self.admit(requested, caller), caller)

    # --- admission: everything that may rewrite or refuse --------------------------------------

    async def admit(self, requested: Requested, caller: Caller) -> Admitted:
        """Pass a call through the gates; one that is let through is on the tape afterwards."""
        with at(call_place(caller.ctx.session_id, requested.id)):
            return await self._admit(requested, caller)

    async def _admit(self, requested: Requested, caller: Caller) -> Admitted:
        ctx = caller.ctx
        arguments, fault = parse(requested.arguments)
        call = ToolCall(requested.id, requested.name, arguments, ctx.agent_id, ctx.session_id)
        admitted = Admitted(call, requested)
        if self._start.live:
            await self._start.fire(ToolExecutionStartEvent(call), ctx)
        try:
            if fault is not None:
                raise ToolRefused(fault)
            admitted.tool = self.registry.get(requested.name)
            if caller.allowed is not None and requested.name not in caller.allowed:
                raise ToolRefused(f"{requested.name} is not among the tools of {ctx.agent_id}")
            await self._rewrite(admitted, ctx)
            asked = await self._ask_gate(admitted, ctx)
            admitted.values = admitted.tool.validate(dict(admitted.call.arguments))
            await self._authorise(admitted, caller, asked)
        except HooklineError as refusal:
            admitted.refusal = str(refusal)
        except (Exception, asyncio.CancelledError) as error:  # whatever breaks at a gate is a no
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            admitted.refusal = f"{requested.name} could not be judged: {error_text(error)}"
            admitted.rulings.append(Ruling(Decision.DENY, admitted.refusal, by="runner"))
        await self._write_down(admitted, caller)
        if admitted.refusal is None:
            await caller.journal.tool_call(admitted.call, requested.arguments, admitted.rulings)
        return admitted

    async def _write_down(self, admitted: Admitted, caller: Caller) -> None:
        """Record the decision; one that cannot be recorded is a no."""
        if self.record is None:
            return
        outcome = "allowed" if admitted.refusal is None else "denied"
        action = about(admitted, caller)
        action["requested"] = parse(admitted.requested.arguments)[0]
        try:
            await self.record(action, admitted.rulings, outcome)
        except Exception as error:
            why = f"{admitted.call.name} was not run, since that could not be recorded: {told(error)}"
            admitted.rulings.append(Ruling(Decision.DENY, told(error), by="audit"))
            admitted.refusal = admitted.refusal or why

    async def _rewrite(self, admitted: Admitted, ctx: HookContext) -> None:
        if not self._before.live:
            return
        call = admitted.call
        given = deepcopy(dict(call.arguments))
        arguments = await self._before.fire(
            replace(call, arguments=given), call.name, given, ctx.agent_id, ctx.session_id
        )
        if not isinstance(arguments, dict):  # a failed guard withheld them
            raise ToolRefused(str(arguments))
        admitted.call = replace(call, arguments=deepcopy(cast("dict[str, Any]", arguments)))

    async def _ask_gate(self, admitted: Admitted, ctx: HookContext) -> str | None:
        """Let `tool_call` judge; give the question where something wants approval."""
        if not self._gate.live:
            return None
        verdict = await self._judged(admitted, ctx)
        if verdict.event.input != admitted.call.arguments:  # changed in place: who saw it before?
            why = "a handler changed the arguments in place; all were asked again"
            admitted.rulings.append(Ruling(reason=why, by="tool_call"))
            admitted.call = replace(admitted.call, arguments=deepcopy(verdict.event.input))
            verdict = await self._judged(admitted, ctx)
            if verdict.event.input != admitted.call.arguments:
                raise ToolRefused(f"{admitted.call.name} was not run: its arguments do not settle")
        if setters := verdict.conflicts.get("input"):
            why = f"{' and '.join(setters)} rewrote the arguments differently; the last one counts"
            admitted.rulings.append(Ruling(reason=why, by="tool_call"))
        return (verdict.reason or f"run {admitted.call.name}?") if verdict.asked else None

    async def _judged(self, admitted: Admitted, ctx: HookContext) -> Verdict[ToolCallEvent]:
        """Fire `tool_call`, and take over the rewrite that results ask for."""
        call = admitted.call
        event = ToolCallEvent(call.id, call.name, copied(call.arguments))
        verdict = await self._gate.fire(event, ctx)
        admitted.rulings.extend(verdict.trail)
        if verdict.denied:
            raise ToolRefused(verdict.reason or f"{verdict.decided_by} blocked {call.name}")
        rewritten = verdict.changes.get("input")
        if rewritten is not None:
            if not isinstance(rewritten, Mapping):
                raise ToolRefused(f"{call.name} was not run: its rewritten arguments are no table")
            rewritten = cast("Mapping[str, Any]", rewritten)
            admitted.call = replace(call, arguments=deepcopy(rewritten))
        return verdict

    async def _authorise(self, admitted: Admitted, caller: Caller, asked: str | None) -> None:
        """Judge the final arguments: plugins, then policy, then a person where somebody asked."""
        authorized = None
        if self._authorize.live:
            action = describe(admitted, caller)
            several = self._authorize.count() > 1  # asked first: one may leave in the middle
            authorized = await self._authorize.fire(action)
            if several and action != describe(admitted, caller):
                why = "a plugin changed the action that others judge"
                raise ToolRefused(f"{admitted.call.name} was not run: {why}")
        if authorized is False:
            admitted.rulings.append(Ruling(Decision.DENY, by="authorize_action"))
            raise ToolRefused(f"{admitted.call.name} was not authorised")
        questions: list[str | None] = [] if asked is None else [asked]
        if self.judge is not None:
            rulings = await self.judge({**describe(admitted, caller), "authorized": authorized})
            admitted.rulings.extend(rulings)
            for ruling in rulings:
                if ruling.decision is Decision.DENY:
                    raise ToolRefused(ruling.reason or f"{ruling.by} denies {admitted.call.name}")
                if ruling.decision is Decision.ASK:
                    questions.append(ruling.reason)
        elif authorized is True:
            admitted.rulings.append(Ruling(by="authorize_action"))
        if questions:
            question = "; ".join(each for each in questions if each)
            await self._get_approval(admitted, caller, question or f"run {admitted.call.name}?")

    async def _get_approval(self, admitted: Admitted, caller: Caller, question: str) -> None:
        assert admitted.tool is not None
        request = {
            **describe(admitted, caller),
            "question": question,
            "lineage": [str(key) for key in self._line_of(caller.ctx.session_id)],
            "diff": await admitted.tool.preview_of(
                deepcopy(admitted.values), self._context(admitted, caller)
            ),
        }
        ruling = await self.approve(request, self._resolve if self._approve.live else None)
        admitted.rulings.append(ruling)
        if ruling.decision is not Decision.ALLOW:
            raise ToolRefused(f"{admitted.call.name} {ruling.reason}")

    async def _resolve(self, request: dict[str, Any]) -> Any:
        """Put a question to whoever answers; what is answered counts for exactly this question."""
        asked, alone = deepcopy(request), self._approve.count() < 2
        answer = await self._approve.fire(request)
        if answer is None or (type(answer) is str and (alone or request == asked)):
            return answer
        return "reject"

    # --- execution: the tool, and what becomes of its result ------------------------------------

    async def execute(self, admitted: Admitted, caller: Caller) -> ToolOutcome:
        """Run an admitted call, or tell why it does not run, and keep what came of it."""
        with at(call_place(caller.ctx.session_id, admitted.call.id)):
            return await self._execute(admitted, caller)

    async def _execute(self, admitted: Admitted, caller: Caller) -> ToolOutcome:
        ctx, call = caller.ctx, admitted.call
        error: Exception | None = None
        ran = admitted.refusal is None
        value: Any = admitted.refusal
        if ran:
            try:
                value = await self._call_tool(admitted, caller)
            except ToolRefused as refusal:
                value, error = str(refusal), None
                ran = False
            except Exception as raised:
                value, error = told(raised), raised
            if ran and self._after.live:
                value = await self._after.fire(
                    call, call.name, deepcopy(dict(call.arguments)), value, ctx.agent_id, ctx.session_id
                )
        outcome = ToolOutcome(call, "", is_error=error is not None or not ran, ran=ran)
        try:
            outcome.content = fit(model_content(value), self._context(admitted, caller))
        except HooklineError as unusable:
            outcome.content, outcome.is_error = str(unusable), True
        await self._judge_result(outcome, admitted, caller)
        if error is not None and self._failure.live:
            failure = ToolExecutionFailureEvent(call.name, call.id, dict(call.arguments), error)
            await self._failure.fire(failure, ctx)
        if self._end.live:
            await self._end.fire(ToolExecutionEndEvent(outcome.result), ctx)
        await self._keep(outcome, admitted, caller)
        return outcome

    async def _call_tool(self, admitted: Admitted, caller: Caller) -> Any:
        call, tool = admitted.call, admitted.tool
        assert tool is not None
        runs = 0

        async def run_tool() -> Any:
            nonlocal runs
            runs += 1
            if runs > 1:  # a second run is a call like any other
                await self._authorise(admitted, caller, None)
                await self._write_down(admitted, caller)
                if admitted.refusal is not None:
                    raise ToolRefused(admitted.refusal)
                await caller.journal.tool_call(call, admitted.requested.arguments, admitted.rulings)
            # a tool may change what it is given, and another run must get what was authorised
            values = deepcopy(admitted.values) if self._around.live else admitted.values
            return await self._invoke(tool, values, admitted, caller)

        if self._around.live:
            given = replace(call, arguments=deepcopy(dict(call.arguments)))
            return await self._around.fire(given, run_tool)
        return await run_tool()

    async def _invoke(
        self, tool: Tool, values: dict[str, Any], admitted: Admitted, caller: Caller
    ) -> Any:
        """Reach the tool's function: the only place that does."""
        ctx, call = caller.ctx, admitted.call

        async def show(value: Any) -> None:
            if self._update.live:
                partial = ToolResultContent(call.id, call.name, shown(value))
                await self._update.fire(ToolExecutionUpdateEvent(partial), ctx)

        progress = Progress(show)
        context = self._context(admitted, caller, progress.report)
        limit = tool.timeout or caller.timeout
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                with during(context):
                    return await tool._invoke(values, context, progress.report)  # pyright: ignore[reportPrivateUsage]
        except TimeoutError:
            if deadline.expired():
                raise TimeoutError(f"{call.name} did not finish within {limit:g} s") from None
            raise
        finally:
            await progress.done()

    def _context(
        self, admitted: Admitted, caller: Caller, report: Callable[[Any], None] = nobody_watches
    ) -> ToolContext:
        ctx = caller.ctx
        return ToolContext(
            call_id=admitted.call.id,
            session_id=ctx.session_id,
            agent_id=ctx.agent_id,
            depth=ctx.depth,
            workspace=caller.workspace,
            state=caller.state,
            report=report,
            app=ctx.app,
            tool=admitted.call.name,
            permissions=tuple(admitted.tool.spec.permissions) if admitted.tool else (),
            tape=getattr(caller.journal, "tape", None),
        )

    async def _judge_result(self, outcome: ToolOutcome, admitted: Admitted, caller: Caller) -> None:
        if not self._result.live:
            return
        call = outcome.call
        event = ToolResultEvent(
            call.id,
            call.name,
            deepcopy(dict(call.arguments)),
            outcome.content,
            outcome.is_error,
            outcome.ran,
        )
        verdict = await self._result.fire(event, caller.ctx)
        admitted.rulings.extend(verdict.trail)
        outcome.terminate = bool(verdict.supplied.get("terminate"))
        if verdict.denied:
            outcome.content = f"[withheld: {verdict.reason or verdict.decided_by}]"
            outcome.is_error = True
        else:
            outcome.content = verdict.event.content
            outcome.is_error = verdict.event.is_error
        await self._write_down_result(outcome, verdict, admitted, caller)

    async def _write_down_result(
        self, outcome: ToolOutcome, verdict: Verdict[Any], admitted: Admitted, caller: Caller
    ) -> None:
        """Record that a result was withheld or rewritten; what cannot be recorded is withheld."""
        rulings = [each for each in verdict.trail if each.changes or each.decision is Decision.DENY]
        if self.record is None or not rulings:
            return
        became = "withheld" if verdict.denied else "rewritten"
        try:
            await self.record(about(admitted, caller), rulings, became)
        except Exception as error:
            outcome.content = (
                f"[withheld, since what became of it could not be recorded: {told(error)}]"
            )
            outcome.is_error = True

    async def _keep(self, outcome: ToolOutcome, admitted: Admitted, caller: Caller) -> None:
        kept = outcome.content
        if self._persist.live:
            ctx = caller.ctx
            kept = shown(
                await self._persist.fire(outcome.call.name, kept, ctx.agent_id, ctx.session_id)
            )
        await caller.journal.tool_result(
            replace(outcome.result, content=kept),
            ran=outcome.ran,
            terminate=outcome.terminate,
            rulings=admitted.rulings,
        )


def told(error: Exception) -> str:
    """An error as a model is told of it."""
    return str(error) if isinstance(error, HooklineError) else error_text(error)


def is_cancelled() -> bool:
    """Whether somebody cancelled this task; what a gate awaits may be cancelled for itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def shown(value: Any) -> Content:
    """What a hook or a running tool gave, in the form a model reads, or why it has none."""
    try:
        return model_content(value)
    except HooklineError as unusable:
        return str(unusable)


async def ask_alone(request: dict[str, Any], resolve: Resolve | None) -> Ruling:
    """Approval where nothing is kept: whoever answers decides on this one call."""
    question, by = request["question"], "resolve_approval"
    answer = await resolve(request) if resolve is not None else None
    if answer == "approve":
        return Ruling(reason=question, by=by)
    why = "was rejected" if answer == "reject" else "needs approval and nobody answered"
    return Ruling(Decision.DENY, f"{why}: {question}", by=by)
