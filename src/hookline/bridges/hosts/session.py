"""`HostSession`: the conversation of a host, moment by moment, on one session of the home."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from getpass import getuser
from typing import TYPE_CHECKING, Any

from hookline.bridges.reports import HostAnswer, HostCall, HostRequest, ToolAnswer
from hookline.bridges.run import BridgeRun
from hookline.channel import Channel, Note, Question
from hookline.errors import Blocked, HooklineError, ToolError
from hookline.events import (
    NotificationEvent,
    SessionBeforeCompactEvent,
    SessionCompactEvent,
    SessionReason,
    SubagentEndEvent,
    SubagentStartEvent,
)
from hookline.hooks import Decision
from hookline.policy.approval_flow import DOOR
from hookline.tape.entry import STATE

from .moment import Judgement, Moment

if TYPE_CHECKING:
    from hookline.types import HookContext

    from .home import HomeBridge, HomeBridgeApp

REASONS: dict[str, SessionReason] = {
    "clear": "new",
    "compact": "reload",
    "fork": "fork",
    "new": "new",
    "reload": "reload",
    "resume": "resume",
}
"""Why a host opens a session, in our words; anything else is a start."""


class HostChannel(Channel):
    """The person at a host: asked by the host itself if it can, otherwise by `hookline approvals`."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        """How long to wait for an answer from elsewhere; None: the host asks."""
        self.asked: set[str] = set()
        """The calls that the host must ask about."""
        self.notes: list[str] = []

    def notify(self, note: Note) -> None:
        """Keep a note for the answer to the host."""
        self.notes.append(note.text)

    async def ask(self, question: Question) -> str | None:
        """Leave the question to the host, or wait until someone answers it elsewhere."""
        if self.seconds is not None:
            await asyncio.sleep(self.seconds)
        elif question.is_approval and question.request is not None:
            self.asked.add(str(question.request.get("call_id")))
        return None

    def taken_notes(self) -> list[str]:
        """The notes since the last answer."""
        notes, self.notes = self.notes, []
        return notes


class HostSession:
    """One conversation of a host, in this process."""

    def __init__(self, bridge: HomeBridge, session: str, seconds: float | None) -> None:
        self.id = session
        self._bridge = bridge
        self._channel = HostChannel(seconds)
        self._run: BridgeRun | None = None
        self._calls: dict[str, HostCall] = {}
        """The calls that the host may be running."""
        self._pieces: list[str] = []
        """The answer of the model so far."""
        self._waits_for_model = False
        self._answered = ""
        """The latest answer of the model that is on the tape."""
        self._is_over = False
        self._sent_back = ""
        """Why the agent may not stop yet; some hosts report this as a prompt."""
        self._order = asyncio.Lock()

    async def judge(self, moment: Moment) -> Judgement:
        """Take a moment through the hooks."""
        app = await self._bridge.opened()
        judgement = await getattr(self, f"_{moment.kind}")(moment, app)
        judgement.notes = [*self._channel.taken_notes(), *judgement.notes]
        return judgement

    async def park(self) -> None:
        """Leave the conversation to another process."""
        run, self._run = self._run, None
        if run is not None:
            await run.park()
        self._bridge.app.sessions.hand_over(self.id)

    # --- the session and its runs ---------------------------------------------------------------

    async def _open(self, app: HomeBridgeApp, reason: SessionReason | None = None) -> str:
        """Open the session, unless a process has; return what handlers add to the conversation."""
        tape = await app.tape(self.id)
        if reason is None and tape.leaf is not None:
            await app.sessions.take_over(self.id)
            return ""
        opened = await app.sessions.open(self.id, reason or "startup")
        if tape.leaf is None:
            await tape.append(STATE, {})  # so that the next process knows that it is open
        added, opened.added = opened.added, ""
        return added

    async def _running(self, app: HomeBridgeApp) -> BridgeRun:
        """The run of the conversation: this process's, another one's, or a new one."""
        async with self._order:  # calls of one answer come at the same time
            if self._run is not None and self._run.turn.done():
                self._run = None
            if self._run is None:
                await self._open(app)
                self._run = await self._bridge.resume(self.id, channel=self._channel)
            if self._run is None:
                self._run = await self._start("")
            return self._run

    async def _start(self, prompt: str) -> BridgeRun:
        return await self._bridge.start(prompt, session=self.id, user=person(), channel=self._channel)

    async def _abandon(self, app: HomeBridgeApp) -> None:
        """End a run that the host interrupted without saying so."""
        if self._run is None:
            self._run = await self._bridge.resume(self.id, channel=self._channel)
        if self._run is not None:
            await app.cancel(self.id)
            with suppress(Exception):
                await self._run.turn
        self._run, self._pieces, self._waits_for_model = None, [], False
        self._calls.clear()

    async def _session_start(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        reason = REASONS.get(moment.text, "startup")
        if reason != "startup":
            app.sessions.hand_over(self.id)
        try:
            return Judgement(context=await self._open(app, reason))
        except Blocked as error:
            return no(error)

    async def _session_end(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        await self._open(app)
        await self._abandon(app)
        await app.sessions.close(self.id, "completed")
        self._is_over = True
        return Judgement()

    async def _prompt(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        self._is_over = False
        if moment.text and moment.text == self._sent_back:
            self._sent_back = ""
            return Judgement()
        async with self._order:
            await self._open(app)
            await self._abandon(app)
            try:
                self._run = await self._start(moment.text)
            except Blocked as error:
                return no(error)
        prompt = self._run.prompt
        if prompt == moment.text:
            return Judgement()
        before, found, after = prompt.partition(moment.text)
        if found and moment.text:
            return Judgement(text=prompt, context=f"{before}\n{after}".strip())
        return Judgement(text=prompt)

    # --- tools ----------------------------------------------------------------------------------

    async def _tool_call(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        try:
            run = await self._running(app)
        except Blocked as error:
            return no(error)
        call = await run.admit(moment.tool, moment.arguments, moment.call_id or None)
        changed = call.arguments if call.arguments != moment.arguments else None
        if call.refusal is None:
            self._calls[call.id] = call
            return Judgement(arguments=changed)
        if self._is_asked(call):
            self._calls[call.id] = call
            return Judgement(asked=True, reason=question_of(call), arguments=changed)
        return Judgement(denied=True, reason=await run.refuse(call))

    def _is_asked(self, call: HostCall) -> bool:
        """Whether only a person's answer is missing, which the host can get."""
        refusals = [each.by for each in call.admitted.rulings if each.decision is Decision.DENY]
        return call.id in self._channel.asked and all(by == DOOR for by in refusals)

    async def _permission(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        """The host is about to ask the person; a call that the gates have not seen passes them now."""
        await self._tell(app, "approval", f"{self._bridge.host} asks for permission: {moment.tool}")
        for call in self._calls.values():
            if call.name == moment.tool and call.arguments == moment.arguments:
                return Judgement()
        judgement = await self._tool_call(moment, app)
        if not judgement.denied and judgement.arguments is not None:
            reason = "a handler changed its arguments, which cannot be carried here"
            return Judgement(denied=True, reason=f"{moment.tool} was not run: {reason}")
        return judgement if judgement.denied else Judgement()

    async def _tool_result(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        run = await self._running(app)
        call = self._calls.pop(moment.call_id, None) or self._open_call(moment)
        if call is None or call.refusal is not None:  # admitted elsewhere, or approved in the host
            call_id = moment.call_id if call is None else call.id
            call = await run.admitted(moment.tool, moment.arguments, call_id)
        if moment.is_error:
            answer = await run.finish(call, error=ToolError(str(moment.result)))
        else:
            answer = await run.finish(call, moment.result)
        is_changed = isinstance(answer, ToolAnswer) and str(answer) != moment.result
        return Judgement(text=str(answer) if is_changed else None)

    def _open_call(self, moment: Moment) -> HostCall | None:
        """The oldest call like this one, for a host whose calls have no ids."""
        for call in self._calls.values() if not moment.call_id else ():
            if call.name == moment.tool and call.arguments == moment.arguments:
                return self._calls.pop(call.id)
        return None

    # --- the model ------------------------------------------------------------------------------

    async def _model_request(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        self._pieces = []
        try:
            run = await self._running(app)
            request = HostRequest([dict(each) for each in moment.messages], moment.model)
            if self._waits_for_model:  # the host tries again
                await run.forget_model()
            changed = await run.before_model(request)
        except Blocked as error:
            return no(error)
        self._waits_for_model = True
        return Judgement(messages=changed.messages if changed.messages != moment.messages else None)

    async def _model_answer(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        self._pieces.append(moment.text)
        if not moment.is_complete:
            return Judgement()
        text, shown = "".join(self._pieces), len([piece for piece in self._pieces if piece])
        answer, self._pieces = HostAnswer(text), []
        try:
            run = await self._running(app)
            if not text:  # tool calls alone, which the host does not show
                await run.forget_model()
                self._waits_for_model = False
                return Judgement()
            if self._waits_for_model:
                self._waits_for_model = False
                judged = await run.after_model(answer)
            else:
                judged = await run.call_model(
                    HostRequest(moment.messages, moment.model), immediately(answer)
                )
        except Blocked as error:
            return no(error)
        self._answered = judged.text
        if judged.text == text:
            return Judgement()
        if shown > 1:
            return Judgement(denied=True, reason="a handler rewrote an answer that was shown in pieces")
        return Judgement(text=judged.text)

    async def _stop(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        if self._is_over:  # a host that does not wait for its hooks at the end
            return Judgement()
        run = await self._running(app)
        if moment.text and not (self._answered and moment.text.endswith(self._answered)):
            await run.said(moment.text)
        refused = None if moment.is_final else await run.refuses_to_stop(moment.text)
        if refused is not None:
            await run.sent_back(refused)
            self._sent_back = refused
            return Judgement(denied=True, reason=refused)
        self._run, self._answered = None, ""
        self._calls.clear()
        try:
            await run.end(moment.text)
        except Blocked as error:
            return Judgement(notes=[f"{error} (it was shown already)"])
        except HooklineError as error:
            return Judgement(notes=[str(error)])
        return Judgement()

    async def _subagent_start(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        await self._fire(app, SubagentStartEvent(moment.agent, moment.text))
        return Judgement()

    async def _subagent_stop(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        run = await self._running(app)
        refused = await run.refuses_to_stop(moment.text)
        if refused is not None:
            return Judgement(denied=True, reason=refused)
        await self._fire(app, SubagentEndEvent(moment.agent, result=moment.text))
        return Judgement()

    # --- the rest -------------------------------------------------------------------------------

    async def _compact(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        event = SessionBeforeCompactEvent(custom_instructions=moment.text or None)
        verdict: Any = await self._fire(app, event)
        if verdict is not None and verdict.denied:
            return Judgement(denied=True, reason=verdict.reason or "compaction was refused")
        return Judgement()

    async def _compacted(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        await self._fire(app, SessionCompactEvent())
        return Judgement()

    async def _notification(self, moment: Moment, app: HomeBridgeApp) -> Judgement:
        await self._tell(app, moment.model or "host", moment.text)
        return Judgement()

    async def _tell(self, app: HomeBridgeApp, kind: str, text: str) -> None:
        await self._fire(app, NotificationEvent(kind, text))

    async def _fire(self, app: HomeBridgeApp, event: Any) -> Any:
        """Fire an event of the session outside of a run."""
        await self._open(app)
        hook: Any = app.hooks[event.type]
        ctx: HookContext = app.context(self.id, channel=self._channel)
        return await hook.fire(event, ctx) if hook.live else None


def immediately(answer: HostAnswer) -> Any:
    """A model that has answered already."""

    async def ask(_: HostRequest) -> HostAnswer:
        return answer

    return ask


def no(error: Blocked) -> Judgement:
    """A block as a judgement."""
    return Judgement(denied=True, reason=error.reason or str(error))


def question_of(call: HostCall) -> str:
    """What to ask the person."""
    rulings = [each for each in call.admitted.rulings if each.decision is Decision.ASK and each.reason]
    return "; ".join(dict.fromkeys(str(each.reason) for each in rulings)) or f"run {call.name}?"


def person() -> str:
    """Who the host works for."""
    try:
        return getuser()
    except (KeyError, OSError):
        return ""
