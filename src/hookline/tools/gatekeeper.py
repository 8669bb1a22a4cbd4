"""The gatekeeper: what may rewrite, refuse or ask about a tool call before it runs.

What is judged is what runs: the arguments become plain values once (`arguments.read`), they are kept
here, and everyone else gets a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from hookline.channel import OneWay, Question, SignedAnswer
from hookline.errors import ToolError, ToolRefused
from hookline.events import NotificationEvent, ToolCallEvent, ToolExecutionStartEvent
from hookline.hooks import Decision, HooklineError, Ruling, Verdict
from hookline.hooks.errors import error_text
from hookline.hookspecs import Hooks
from hookline.turn_context import at
from hookline.turn_context import call as call_place
from hookline.types import HookContext, Identity, ToolCall

from .action import about, describe
from .arguments import copied, parse, read
from .calls import Admitted, Approve, Judge, Record, Requested, Resolve, ToolCaller
from .context import ToolContext, nobody_watches
from .registry import Registry

LONGEST_NAME = 256


class Gatekeeper:
    """Passes calls through every gate. `ToolRunner` is one that also runs them."""

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
        self._start = hooks[ToolExecutionStartEvent]
        self._before = hooks["before_tool_call"]
        self._gate = hooks[ToolCallEvent]
        self._authorize = hooks["authorize_action"]
        self._approve = hooks["resolve_approval"]
        self._notification = hooks[NotificationEvent]

    async def admit(self, requested: Requested, caller: ToolCaller) -> Admitted:
        """Pass a call through the gates; one that is let through is on the tape afterwards."""
        with at(call_place(caller.ctx.session_id, requested.id)):
            return await self._admit(requested, caller)

    async def _admit(self, requested: Requested, caller: ToolCaller) -> Admitted:
        ctx = caller.ctx
        arguments, fault = parse(requested.arguments, caller.limits)
        if len(requested.name) > LONGEST_NAME:  # no registered tool has such a name
            fault = f"there is no tool with a name of {len(requested.name):,} characters"
            requested = replace(requested, name=requested.name[:LONGEST_NAME])
        if not isinstance(requested.arguments, str):  # the mapping's owner may still change it
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
            asked = await self._ask_gates(admitted, caller)
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

    async def _write_down(self, admitted: Admitted, caller: ToolCaller) -> None:
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

    async def _rewrite(self, admitted: Admitted, caller: ToolCaller) -> None:
        if not self._before.live:
            return
        ctx, given = caller.ctx, admitted.copy()
        arguments = await self._before.fire(
            given, given.name, given.arguments, ctx.agent_id, ctx.session_id
        )
        if not isinstance(arguments, dict):  # a failed guard withheld them
            raise ToolRefused(str(arguments))
        admitted.call = replace(admitted.call, arguments=read(arguments, caller.limits))

    async def _ask_gates(self, admitted: Admitted, caller: ToolCaller) -> list[str]:
        """Let `tool_call` judge for each participant of the turn; give the questions of handlers.

        The final arguments must be judged for everyone: after a rewrite, all are judged again.
        """
        if not self._gate.live:
            return []
        contexts = contexts_of(caller)
        for _ in range(2):
            before = admitted.call.arguments
            asked = [await self._ask_gate(admitted, caller, ctx) for ctx in contexts]
            if len(contexts) == 1 or admitted.call.arguments == before:
                return [question for question in asked if question is not None]
        raise ToolRefused(f"{admitted.call.name} was not run: its arguments do not settle")

    async def _ask_gate(self, admitted: Admitted, caller: ToolCaller, ctx: HookContext) -> str | None:
        """Let `tool_call` judge for one participant; give the question if a handler asks one."""
        verdict, left = await self._judged(admitted, caller, ctx)
        if left != admitted.call.arguments:  # changed in place: who saw it before?
            why = "a handler changed the arguments in place; all were asked again"
            admitted.rulings.append(Ruling(reason=why, by="tool_call"))
            admitted.call = replace(admitted.call, arguments=left)
            verdict, left = await self._judged(admitted, caller, ctx)
            if left != admitted.call.arguments:
                raise ToolRefused(f"{admitted.call.name} was not run: its arguments do not settle")
        if setters := verdict.conflicts.get("input"):
            why = f"{' and '.join(setters)} rewrote the arguments differently; the last one counts"
            admitted.rulings.append(Ruling(reason=why, by="tool_call"))
        return (verdict.reason or f"run {admitted.call.name}?") if verdict.asked else None

    async def _judged(
        self, admitted: Admitted, caller: ToolCaller, ctx: HookContext
    ) -> tuple[Verdict[ToolCallEvent], dict[str, Any]]:
        """Fire `tool_call` and take over the rewrite that results ask for.

        Gives the verdict, and the arguments as the last handler left them, as plain values.
        """
        call = admitted.call
        event = ToolCallEvent(call.id, call.name, copied(call.arguments))
        verdict = await self._gate.fire(event, ctx)
        admitted.rulings.extend(replace(ruling) for ruling in verdict.trail)
        if verdict.denied:
            raise ToolRefused(verdict.reason or f"{verdict.decided_by} blocked {call.name}")
        rewritten = verdict.changes.get("input")
        if rewritten is not None:
            admitted.call = replace(call, arguments=read(rewritten, caller.limits))
        return verdict, read(verdict.event.input, caller.limits)

    async def _authorise(self, admitted: Admitted, caller: ToolCaller, asked: list[str]) -> None:
        """Judge the final arguments: plugins, then policy, then a person if anyone asks for one.

        A turn that several users steer is judged once for each of them; the strictest counts.
        """
        questions: list[str | None] = [*asked]
        for identity in caller.identity.everyone:
            questions += await self._weigh(admitted, caller, identity)
        if questions:
            question = "; ".join(dict.fromkeys(each for each in questions if each))
            await self._get_approval(admitted, caller, question or f"run {admitted.call.name}?")

    async def _weigh(
        self, admitted: Admitted, caller: ToolCaller, identity: Identity
    ) -> list[str | None]:
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

    async def _get_approval(self, admitted: Admitted, caller: ToolCaller, question: str) -> None:
        request = {
            **describe(admitted, caller),
            "question": question,
            "lineage": [str(key) for key in self._line_of(caller.ctx.session_id)],
            "diff": await self._preview(admitted, caller),
        }
        ruling = await self.approve(request, self.resolver(caller.ctx))
        admitted.rulings.append(ruling)
        if ruling.decision is not Decision.ALLOW:
            raise ToolRefused(f"{admitted.call.name} {ruling.reason}")

    async def _preview(self, admitted: Admitted, caller: ToolCaller) -> str | None:
        """Say what the call would change; one that would fail is refused instead of asked about."""
        tool = admitted.tool
        assert tool is not None
        values = tool.validate(copied(admitted.call.arguments))
        try:
            return await tool.preview_of(values, self._context(admitted, caller))
        except ToolError as error:
            admitted.rulings.append(Ruling(Decision.DENY, f"it would fail: {error}", by="preview"))
            raise

    def resolver(self, ctx: HookContext) -> Resolve | None:
        """Asks `resolve_approval`, then the person at the channel; None if there is neither."""
        return partial(self._resolve, ctx) if self._approve.live or ctx.channel.asks else None

    async def _resolve(self, ctx: HookContext, request: dict[str, Any]) -> Any:
        """Get an approval answered; the answer counts for exactly this request."""
        asked = deepcopy(request)
        if self._approve.live:
            alone = self._approve.count() < 2
            answer = await self._approve.fire(request)
            if answer is not None:
                is_sound = type(answer) is str and (alone or request == asked)
                return answer if is_sound else "reject"
        if not ctx.channel.asks:
            return None
        if self._notification.live:
            event = NotificationEvent("approval", asked["question"])
            await self._notification.fire(event, replace(ctx, channel=OneWay(ctx.channel)))
        answer = await ctx.channel.ask(Question.of(asked))
        if answer is None or isinstance(answer, SignedAnswer):
            return answer
        return SignedAnswer(answer, asked.get("user") or "human")

    async def _admit_again(self, admitted: Admitted, caller: ToolCaller) -> dict[str, Any]:
        """Judge a further run as a call of its own, and ask again; give the values it runs with."""
        judged, tool = admitted.call, admitted.tool
        assert tool is not None
        again = Admitted(judged, admitted.requested, tool)
        try:
            asked = await self._ask_gates(again, caller)
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

    def _context(
        self, admitted: Admitted, caller: ToolCaller, report: Callable[[Any], None] = nobody_watches
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


def contexts_of(caller: ToolCaller) -> list[HookContext]:
    """The caller's context once for each participant of the turn, as that participant's own."""
    if not caller.identity.others:
        return [caller.ctx]
    return [replace(caller.ctx, identity=each) for each in caller.identity.views]


def told(error: Exception) -> str:
    """An error as the model sees it."""
    return str(error) if isinstance(error, HooklineError) else error_text(error)


def is_cancelled() -> bool:
    """Whether this task was cancelled; something that a gate awaits may be cancelled on its own."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def ask_alone(request: dict[str, Any], resolve: Resolve | None) -> Ruling:
    """Approval without storage: the answer counts for this one call."""
    question, by = request["question"], "resolve_approval"
    answer = await resolve(request) if resolve is not None else None
    if answer == "approve":
        return Ruling(reason=question, by=by)
    why = "was rejected" if answer == "reject" else "needs approval and nobody answered"
    return Ruling(Decision.DENY, f"{why}: {question}", by=by)
