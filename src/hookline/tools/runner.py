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

`Gatekeeper` has the first half. One approval is one execution: each further `call_next()` is judged,
and asked about, as a call of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from hookline.errors import ToolRefused
from hookline.events import (
    ToolExecutionEndEvent,
    ToolExecutionFailureEvent,
    ToolExecutionUpdateEvent,
    ToolResultEvent,
)
from hookline.hooks import Decision, HooklineError, Verdict
from hookline.hookspecs import Hooks
from hookline.turn_context import at
from hookline.turn_context import call as call_place
from hookline.types import Content, HookContext, ToolCall, ToolResultContent

from .action import about
from .arguments import copied
from .calls import Admitted, Approve, Judge, Record, Requested, ToolCaller, ToolOutcome
from .context import during
from .gatekeeper import Gatekeeper, contexts_of, told
from .output import LIMIT, model_content
from .progress import ToolProgress
from .registry import Registry
from .spool import fit
from .tool import Tool


class ToolRunner(Gatekeeper):
    """Runs tools of a registry, through every hook that has a say."""

    longest: int = LIMIT
    """Characters of a result that the model sees; a longer one is kept in a file and read by page."""

    def __init__(
        self,
        hooks: Hooks,
        registry: Registry,
        *,
        judge: Judge | None = None,
        approve: Approve | None = None,
        record: Record | None = None,
    ) -> None:
        super().__init__(hooks, registry, judge=judge, approve=approve, record=record)
        self._around = hooks["around_tool_call"]
        self._update = hooks[ToolExecutionUpdateEvent]
        self._after = hooks["after_tool_call"]
        self._result = hooks[ToolResultEvent]
        self._failure = hooks[ToolExecutionFailureEvent]
        self._end = hooks[ToolExecutionEndEvent]
        self._persist = hooks["tool_result_persist"]
        self._on_error = hooks["on_error"]

    async def run(self, requested: Requested, caller: ToolCaller) -> ToolOutcome:
        """One call from beginning to end."""
        return await self.execute(await self.admit(requested, caller), caller)

    # --- execution: the tool, and what becomes of its result ------------------------------------

    async def execute(self, admitted: Admitted, caller: ToolCaller) -> ToolOutcome:
        """Run an admitted call, or explain why it does not run, and record the result."""
        with at(call_place(caller.ctx.session_id, admitted.call.id)):
            return await self._execute(admitted, caller)

    async def _execute(self, admitted: Admitted, caller: ToolCaller) -> ToolOutcome:
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
                failed = error is not None
                value = await self._after.fire(
                    given, given.name, given.arguments, value, failed, ctx.agent_id, ctx.session_id
                )
        outcome = ToolOutcome(call, "", is_error=error is not None or not ran, ran=ran)
        try:
            outcome.content = fit(model_content(value), self._context(admitted, caller), self.longest)
        except HooklineError as unusable:
            outcome.content, outcome.is_error = str(unusable), True
        await self._judge_result(outcome, admitted, caller)
        if error is not None:
            await self._tell(error, call, caller)
        if self._end.live:
            await self._end.fire(ToolExecutionEndEvent(outcome.result), ctx)
        await self._keep(outcome, admitted, caller)
        return outcome

    async def _tell(self, error: Exception, call: ToolCall, caller: ToolCaller) -> None:
        """Report the error of a tool to the hooks that observe errors."""
        ctx = caller.ctx
        if self._failure.live:
            failure = ToolExecutionFailureEvent(call.name, call.id, copied(call.arguments), error)
            await self._failure.fire(failure, ctx)
        if self._on_error.live:
            await self._on_error.fire("tool", error, caller.message, ctx.agent_id)

    async def _call_tool(self, admitted: Admitted, caller: ToolCaller) -> Any:
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

    async def _invoke(
        self, tool: Tool, values: dict[str, Any], admitted: Admitted, caller: ToolCaller
    ) -> Any:
        """Reach the tool's function: the only place that does."""
        ctx, call = caller.ctx, admitted.call

        async def show(value: Any) -> None:
            if self._update.live:
                partial = ToolResultContent(call.id, call.name, shown(value))
                await self._update.fire(ToolExecutionUpdateEvent(partial), ctx)

        progress = ToolProgress(show)
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

    async def _judge_result(self, outcome: ToolOutcome, admitted: Admitted, caller: ToolCaller) -> None:
        if not self._result.live:
            return
        for ctx in contexts_of(caller):
            await self._judge_result_for(ctx, outcome, admitted, caller)

    async def _judge_result_for(
        self, ctx: HookContext, outcome: ToolOutcome, admitted: Admitted, caller: ToolCaller
    ) -> None:
        call = outcome.call
        event = ToolResultEvent(
            call.id,
            call.name,
            copied(call.arguments),
            outcome.content,
            outcome.is_error,
            outcome.ran,
        )
        verdict = await self._result.fire(event, ctx)
        admitted.rulings.extend(verdict.trail)
        outcome.terminate = outcome.terminate or bool(verdict.supplied.get("terminate"))
        if verdict.denied:
            outcome.content = f"[withheld: {verdict.reason or verdict.decided_by}]"
            outcome.is_error = True
        else:
            outcome.content = verdict.event.content
            outcome.is_error = verdict.event.is_error
        await self._write_down_result(outcome, verdict, admitted, caller)

    async def _write_down_result(
        self, outcome: ToolOutcome, verdict: Verdict[Any], admitted: Admitted, caller: ToolCaller
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

    async def _keep(self, outcome: ToolOutcome, admitted: Admitted, caller: ToolCaller) -> None:
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


def shown(value: Any) -> Content:
    """The return value of a hook or a tool in a form that a model can read, or why it has none."""
    try:
        return model_content(value)
    except HooklineError as unusable:
        return str(unusable)
