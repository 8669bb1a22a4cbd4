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

What is judged is what runs: the arguments become plain values once (`arguments.read`), the runner keeps
them to itself, and everyone else gets a copy. One approval is one execution: each further `call_next()`
is judged, and asked about, as a call of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from hookline.catalog.calls import ToolCall, ToolResultContent
from hookline.catalog.events.tool import (
    ToolCallEvent,
    ToolExecutionEndEvent,
    ToolExecutionFailureEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResultEvent,
)
from hookline.catalog.identity import Identity
from hookline.catalog.parts import Content
from hookline.catalog.place import at
from hookline.catalog.place import call as call_place
from hookline.hooks import Decision, HooklineError, Hooks, Ruling, Verdict
from hookline.hooks.errors import error_text

from .action import about, describe
from .arguments import copied, parse, read
from .calls import (
    Admitted,
    Approve,
    Caller,
    Judge,
    Record,
    Requested,
    Resolve,
    ToolOutcome,
    ToolRefused,
)
from .context import ToolContext, during, nobody_watches
from .output import model_content
from .progress import Progress
from .registry import Registry
from .spool import fit
from .tool import Tool

LONGEST_NAME = 256


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
        arguments, fault = parse(requested.arguments, caller.limits)
        if len(requested.name) > LONGEST_NAME:  # no registered tool has such a name
            fault = f"there is no tool with a name of {len(requested.name):,} characters"
            requested = replace(requested, name=requested.name[:LONGEST_NAME])
        if not isinstance(requested.arguments, str):  # whoever made the mapping may still change it
            requested = replace(requested, arguments=copied(arguments))
        call = ToolCall(requested.id, requested.name, arguments, ctx.agent_id, ctx.session_id)
        admitted = Admitted(call, requested)
        if self._start.live:
            await self._start.fire(ToolExecutionStartEvent(admitted.copy()), ctx)
        try:
            if fault is not None:
                raise ToolRefused(fault)
            admitted.tool = self.registry.get(requested.name)
            if caller.allowed is not None and requested.name not in caller.allowed:
                raise ToolRefused(f"{requested.name} is not among the tools of {ctx.agent_id}")
            await self._rewrite(admitted, caller)
            asked = await self._ask_gate(admitted, caller)
            admitted.values = admitted.tool.validate(copied(admitted.call.arguments))
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
        action["requested"] = parse(admitted.requested.arguments, caller.limits)[0]
        try:
            await self.record(action, admitted.rulings, outcome)
        except Exception as error:
            why = f"{admitted.call.name} was not run, since that could not be recorded: {told(error)}"
            admitted.rulings.append(Ruling(Decision.DENY, told(error), by="audit"))
            admitted.refusal = admitted.refusal or why

    async def _rewrite(self, admitted: Admitted, caller: Caller) -> None:
        if not self._before.live:
            return
        ctx, given = caller.ctx, admitted.copy()
        arguments = await self._before.fire(
            given, given.name, given.arguments, ctx.agent_id, ctx.session_id
        )
        if not isinstance(arguments, dict):  # a failed guard withheld them
            raise ToolRefused(str(arguments))
        admitted.call = replace(admitted.call, arguments=read(arguments, caller.limits))

    async def _ask_gate(self, admitted: Admitted, caller: Caller) -> str | None:
        """Let `tool_call` judge; give the question where something wants approval."""
        if not self._gate.live:
            return None
        verdict, left = await self._judged(admitted, caller)
        if left != admitted.call.arguments:  # changed in place: who saw it before?
            why = "a handler changed the arguments in place; all were asked again"
            admitted.rulings.append(Ruling(reason=why, by="tool_call"))
            admitted.call = replace(admitted.call, arguments=left)
            verdict, left = await self._judged(admitted, caller)
            if left != admitted.call.arguments:
                raise ToolRefused(f"{admitted.call.name} was not run: its arguments do not settle")
        if setters := verdict.conflicts.get("input"):
            why = f"{' and '.join(setters)} rewrote the arguments differently; the last one counts"
            admitted.rulings.append(Ruling(reason=why, by="tool_call"))
        return (verdict.reason or f"run {admitted.call.name}?") if verdict.asked else None

    async def _judged(
        self, admitted: Admitted, caller: Caller
    ) -> tuple[Verdict[ToolCallEvent], dict[str, Any]]:
        """Fire `tool_call` and take over the rewrite that results ask for.

        Gives the verdict, and the arguments as the last handler left them, as plain values.
        """
        call = admitted.call
        event = ToolCallEvent(call.id, call.name, copied(call.arguments))
        verdict = await self._gate.fire(event, caller.ctx)
        admitted.rulings.extend(replace(ruling) for ruling in verdict.trail)
        if verdict.denied:
            raise ToolRefused(verdict.reason or f"{verdict.decided_by} blocked {call.name}")
        rewritten = verdict.changes.get("input")
        if rewritten is not None:
            admitted.call = replace(call, arguments=read(rewritten, caller.limits))
        return verdict, read(verdict.event.input, caller.limits)

    async def _authorise(self, admitted: Admitted, caller: Caller, asked: str | None) -> None:
        """Judge the final arguments: plugins, then policy, then a person if anyone asks for one.

        A turn that several users steer is judged once for each of them; the strictest counts.
        """
        questions: list[str | None] = [] if asked is None else [asked]
        for identity in caller.identity.everyone:
            questions += await self._weigh(admitted, caller, identity)
        if questions:
            question = "; ".join(dict.fromkeys(each for each in questions if each))
            await self._get_approval(admitted, caller, question or f"run {admitted.call.name}?")

    async def _weigh(self, admitted: Admitted, caller: Caller, identity: Identity) -> list[str | None]:
        """The questions that plugins and policy have about a call on behalf of one user."""
        authorized = None
        if self._authorize.live:
            action = describe(admitted, caller, identity)
            several = self._authorize.count() > 1  # asked first: one may leave in the middle
            authorized = await self._authorize.fire(action)
            if several and action != describe(admitted, caller, identity):
                why = "a plugin changed the action that others judge"
                raise ToolRefused(f"{admitted.call.name} was not run: {why}")
        if authorized is False:
            admitted.rulings.append(Ruling(Decision.DENY, by="authorize_action"))
            raise ToolRefused(f"{admitted.call.name} was not authorised")
        questions: list[str | None] = []
        if self.judge is not None:
            action = describe(admitted, caller, identity)
            action["authorized"] = authorized
            rulings = await self.judge(action)
            admitted.rulings.extend(rulings)
            for ruling in rulings:
                if ruling.decision is Decision.DENY:
                    raise ToolRefused(ruling.reason or f"{ruling.by} denies {admitted.call.name}")
                if ruling.decision is Decision.ASK:
                    questions.append(ruling.reason)
        elif authorized is True:
            admitted.rulings.append(Ruling(by="authorize_action"))
        return questions

    async def _get_approval(self, admitted: Admitted, caller: Caller, question: str) -> None:
        tool = admitted.tool
        assert tool is not None
        request = {
            **describe(admitted, caller),
            "question": question,
            "lineage": [str(key) for key in self._line_of(caller.ctx.session_id)],
            "diff": await tool.preview_of(
                tool.validate(copied(admitted.call.arguments)), self._context(admitted, caller)
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
                given = admitted.copy()
                value = await self._after.fire(
                    given, given.name, given.arguments, value, ctx.agent_id, ctx.session_id
                )
        outcome = ToolOutcome(call, "", is_error=error is not None or not ran, ran=ran)
        try:
            outcome.content = fit(model_content(value), self._context(admitted, caller))
        except HooklineError as unusable:
            outcome.content, outcome.is_error = str(unusable), True
        await self._judge_result(outcome, admitted, caller)
        if error is not None and self._failure.live:
            failure = ToolExecutionFailureEvent(call.name, call.id, copied(call.arguments), error)
            await self._failure.fire(failure, ctx)
        if self._end.live:
            await self._end.fire(ToolExecutionEndEvent(outcome.result), ctx)
        await self._keep(outcome, admitted, caller)
        return outcome

    async def _call_tool(self, admitted: Admitted, caller: Caller) -> Any:
        tool = admitted.tool
        assert tool is not None
        values = admitted.values
        if not self._around.live:
            return await self._invoke(tool, values, admitted, caller)
        runs, over = 0, False

        async def run_tool() -> Any:
            nonlocal runs
            if over:
                raise ToolRefused(
                    f"{admitted.call.name} was not run: call_next() was called after the call had ended"
                )
            runs += 1  # before anything is awaited: of two that come at once, one is the first
            if runs == 1:
                return await self._invoke(tool, values, admitted, caller)
            again = await self._admit_again(admitted, caller)
            if over:
                raise ToolRefused(f"{admitted.call.name} was not run again: its call has ended")
            return await self._invoke(tool, again, admitted, caller)

        try:
            return await self._around.fire(admitted.copy(), run_tool)
        finally:
            over = True

    async def _admit_again(self, admitted: Admitted, caller: Caller) -> dict[str, Any]:
        """Judge a further run as a call of its own, and ask again; give the values it runs with."""
        judged, tool = admitted.call, admitted.tool
        assert tool is not None
        again = Admitted(judged, admitted.requested, tool)
        try:
            asked = await self._ask_gate(again, caller)
            if again.call.arguments != judged.arguments:
                raise ToolRefused(f"{judged.name} was not run again: a handler changed its arguments")
            await self._authorise(again, caller, asked)
        except Exception as error:  # whatever breaks at a gate is a no
            again.refusal = told(error)
        admitted.rulings.extend(again.rulings)
        await self._write_down(again, caller)
        if again.refusal is not None:
            raise ToolRefused(again.refusal)
        await caller.journal.tool_call(judged, admitted.requested.arguments, again.rulings)
        return tool.validate(copied(judged.arguments))

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
            identity=caller.identity,
        )

    async def _judge_result(self, outcome: ToolOutcome, admitted: Admitted, caller: Caller) -> None:
        if not self._result.live:
            return
        call = outcome.call
        event = ToolResultEvent(
            call.id,
            call.name,
            copied(call.arguments),
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
