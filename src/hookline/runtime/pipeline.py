"""The pipeline: one message in, one answer out. Every stage is a hook.

    message:receive, resolve_session, admit_message
    load_state, session_start, input, build_prompt
    run_model_stream or run_model, output, save_state
    render_outbound, dispatch_outbound
    message:send, save_point, settled

Each message is an `ActiveTurn`: it waits in the queue of its session, holds the session while its
stages run, and owns the agent run that answers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hookline.channel import finished
from hookline.errors import Blocked, Cancelled, NotRunning
from hookline.events import (
    InputEvent,
    MessageReceiveEvent,
    MessageSendEvent,
    OutputEvent,
    SavePointEvent,
    SettledEvent,
)
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.hookspecs import Admission
from hookline.types import (
    AsyncStreamEvents,
    AudioPart,
    Envelope,
    Identity,
    Prompt,
    State,
    StreamEvent,
    address_of,
    check_envelope,
    check_outbound,
    content_of,
    field_of,
)

from .session_queue import SessionQueue
from .turn import (
    ActiveTurn,
    Outcome,
    StreamedAnswer,
    TurnResult,
    echo,
    model_stream,
    parts_of,
    with_content,
    with_context,
    with_delivery_ids,
    with_parts,
)
from .user_commands import written

if TYPE_CHECKING:
    from hookline.agent.run import Limits
    from hookline.types import HookContext

    from .app import Hookline


class Pipeline:
    """Takes the messages of an app through the stages of a turn."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._hooks = app.hooks

    async def process(self, turn: ActiveTurn, session_id: str | None = None) -> TurnResult:
        """Process one message to the end; `session_id` takes the place of `resolve_session`."""
        turn.message = check_envelope(turn.message)
        turn.identity = Identity.of(turn.message)  # before any plugin sees the message
        try:
            rejected = await self._receive(turn)
            if rejected is not None:
                result = TurnResult("", outcome="rejected", stopped=rejected)
                await self._end(turn, result)
                return result
            turn.in_session(session_id or await self.resolve_session(turn.message))
            return await self._admit(turn)
        except Exception as error:
            await self._report("turn", error, turn)
            raise
        finally:
            await self._app.sessions.close_idle()

    async def resume(self, turn: ActiveTurn, session_id: str) -> TurnResult | None:
        """Continue the session's interrupted turn where it stopped; None if there is none."""
        from hookline.agent.journal import cut_off_turn

        queue = self._app.sessions.queue(session_id)
        async with queue.hold(turn):
            cut = await cut_off_turn(await self._app.tape(session_id), imported=True)
            if cut is None:
                return None
            turn.in_session(session_id, cut.turn_id)
            turn.cut_off = cut
            turn.identity = cut.identity  # the channel of the message, whatever resumes the turn
            turn.message = cut.envelope or {"content": "", "session_id": session_id}
            try:
                result = await self._run_stages(turn)
                queued = await self._finish(queue, turn, result)
            except Exception as error:
                await self._report("turn", error, turn)
                raise
        if not queued:
            await self._rest(queue, turn)
        return result

    # --- receiving ----------------------------------------------------------------------------

    async def _receive(self, turn: ActiveTurn) -> str | None:
        """Let `message:receive` change the message; return the reason if a handler rejects it."""
        message, hook = turn.message, self._hooks[MessageReceiveEvent]
        turn.said = content_of(message)
        turn.is_voice = any(isinstance(p, AudioPart) for p in field_of(message, "parts") or ())
        if not hook.live:
            return None
        channel, chat_id = address_of(message)
        user = str(field_of(message, "sender_id") or "")
        event = MessageReceiveEvent(channel, chat_id, user, turn.said, parts_of(message))
        verdict: Any = await hook.fire(event, self._context(turn))
        if verdict.denied:
            return verdict.reason or ""
        if "parts" in verdict.changes:
            turn.said = verdict.event.text
            turn.message = with_parts(message, verdict.event.parts, turn.said)
        return None

    async def resolve_session(self, message: Envelope) -> str:
        """Return the session that a message belongs to."""
        named = await self._hooks["resolve_session"].fire(message)
        return named if named is not None else ":".join(address_of(message))

    async def _admit(self, turn: ActiveTurn) -> TurnResult:
        """Give a message its own turn, let it join the running one, or drop it."""
        queue = self._app.sessions.queue(turn.session_id)
        admission = await self._admission(queue, turn.message)
        result: TurnResult | None = None
        if admission.action == "drop":
            result = await self._unanswered(turn, "dropped", admission.reason)
        elif turn.command is not None and written(content_of(turn.message)):
            result = await self._run_command(turn)
        if result is None and admission.action == "steer" and queue.phase != "idle":
            result = await self._steer(queue, turn)
        if result is not None:
            await self._end(turn, result)
            return result
        turn.placed()
        begun = queued = False
        try:
            async with queue.hold(turn, ahead=admission.action == "process"):
                begun = True
                try:
                    result = await self._run_stages(turn)
                    return result
                finally:
                    queued = await self._finish(queue, turn, result)
        finally:
            if begun and not queued:
                await self._rest(queue, turn)

    async def _admission(self, queue: SessionQueue, message: Envelope) -> Admission:
        """Return the answer of `admit_message`; by default, a message waits for the session."""
        hook = self._hooks["admit_message"]
        answer = await hook.fire(queue.session_id, message, queue.activity) if hook.live else None
        return answer if isinstance(answer, Admission) else Admission(answer or "follow_up")

    async def _run_command(self, turn: ActiveTurn) -> TurnResult | None:
        """Run a slash command beside the running turn; None if `input` made it a message."""
        stopped = await self._input(turn)
        command = written(content_of(turn.message))
        if stopped is not None or command is None or turn.command is None:
            return stopped
        # On the tape first, so that a command is not repeated after a crash.
        await self._unanswered(turn, "handled", f"/{command[0]}")
        turn.placed()
        said = await turn.command(turn.session_id, turn.identity.stamped(turn.message)) or "done"
        if turn.channel.streams:
            await finished(turn.channel.stream(StreamEvent("text", {"delta": said})))
        result = TurnResult(turn.session_id, model_output=said, outcome="handled")
        result.outbounds = [echo(turn.message, turn.session_id, said)]
        await self._dispatch(turn, result.outbounds)
        return result

    async def _steer(self, queue: SessionQueue, turn: ActiveTurn) -> TurnResult | None:
        """Let a message join the running turn; None if that ended too soon."""
        run = queue.turn and queue.turn.run
        if run is None:
            return None
        if not turn.screened and (stopped := await self._input(turn)) is not None:
            return stopped
        message = turn.message
        prompt = await self._hooks["build_prompt"].fire(message, turn.session_id, run.state)
        turn.placed()
        joined = await run.steering.join(prompt or content_of(message), message, turn.identity)
        return TurnResult(turn.session_id, outcome="steered") if joined else None

    async def _unanswered(self, turn: ActiveTurn, outcome: Outcome, reason: str | None) -> TurnResult:
        """Record the outcome of a message that gets no agent run."""
        from hookline.agent.journal import plain_envelope
        from hookline.tape.entry import INBOUND

        tape = await self._app.tape(turn.session_id)
        noted = {"envelope": plain_envelope(turn.message), "outcome": outcome, "reason": reason}
        await tape.append(INBOUND, noted)
        return TurnResult(turn.session_id, outcome=outcome, stopped=reason or outcome)

    # --- the stages of a turn -----------------------------------------------------------------

    async def _run_stages(self, turn: ActiveTurn) -> TurnResult:
        """Take the turn that holds the session from `load_state` to `dispatch_outbound`."""
        session_id, cut = turn.session_id, turn.cut_off
        state: State = await self._hooks["load_state"].fire(turn.message, session_id)
        opened = await self._app.sessions.open(session_id, "resume" if cut else "startup")
        if cut is not None:
            return await self._answer(turn, TurnResult(session_id, prompt=cut.prompt), state)
        if not turn.screened and (stopped := await self._input(turn)) is not None:
            await self._hooks["save_state"].fire(session_id, state, turn.message, "")
            return stopped
        prompt = await self._hooks["build_prompt"].fire(turn.message, session_id, state)
        prompt = with_context(prompt or content_of(turn.message), opened.added)
        opened.added = ""
        return await self._answer(turn, TurnResult(session_id, prompt=prompt), state)

    async def _input(self, turn: ActiveTurn) -> TurnResult | None:
        """Show the message to `input`; return a result if it needs no agent run."""
        turn.screened = True
        message, hook = turn.message, self._hooks[InputEvent]
        if not hook.live:
            return None
        event = InputEvent(content_of(message), address_of(message)[0])
        verdict = await hook.fire(event, self._context(turn))
        if verdict.denied:
            changes = (verdict.deciding and verdict.deciding.changes) or {}
            outcome: Outcome = "handled" if changes.get("action") == "handled" else "blocked"
            return await self._unanswered(turn, outcome, verdict.reason)
        if "text" in verdict.changes:
            turn.message = with_content(message, verdict.event.text)
        return None

    async def _answer(self, turn: ActiveTurn, result: TurnResult, state: State) -> TurnResult:
        """Run the model, then render and send its answer; end the run, however that goes."""
        message, session_id = turn.message, turn.session_id
        status, failure = "failed", None
        try:
            try:
                result.model_output = await self._run_model(turn, result.prompt, state)
            except Cancelled as error:
                status, result.outcome, result.stopped = "cancelled", "cancelled", str(error)
                return result
            except BaseException as error:
                failure = str(error) if isinstance(error, HooklineError) else error_text(error)
                if isinstance(error, Exception):
                    await self._report("run_model", error, turn)
                else:
                    status = "cancelled"
                raise
            finally:
                save_state = self._hooks["save_state"]
                await save_state.fire(session_id, state, message, result.model_output)
            rendered = await self._hooks["render_outbound"].fire(
                message, session_id, state, result.model_output
            ) or [echo(message, session_id, result.model_output)]
            result.outbounds = with_delivery_ids(message, [*map(check_outbound, rendered)])
            await self._dispatch(turn, result.outbounds)
            status = "completed"
            return result
        finally:
            result.usage = await turn.finish(status, failure)

    # --- the model ----------------------------------------------------------------------------

    async def _run_model(self, turn: ActiveTurn, prompt: Prompt, state: State) -> str:
        """Stream the answer to the channel; return the text that `output` releases."""
        events = await model_stream(self._hooks, prompt, turn.session_id, state)
        output = self._hooks[OutputEvent]
        held = output.count() > 0 and not self._shows_segments(events.state)
        answer = StreamedAnswer(turn.channel.stream if turn.channel.streams else None, held=held)
        try:
            async for event in events:
                await answer.take(event)
        finally:
            await events.aclose()
            if held and turn.run is not None:
                turn.run.unsaved.clear()  # no one has seen it
        text = answer.text or getattr(events.state, "text", "")
        if output.live:
            verdict = await output.fire(OutputEvent(text), self._app.context(turn.session_id))
            if not verdict.allowed:
                raise Blocked("the answer", verdict.reason, verdict.decided_by)
            text = verdict.event.content
        await answer.release(text)
        return text

    def _shows_segments(self, run: Any) -> bool:
        """Whether an answer is shown while it streams, in segments that `model_result` released."""
        limits: Limits | None = getattr(run, "limits", None)
        judged = self._hooks["model_result"].count() > 0
        return limits is not None and limits.streaming.segment > 0 and judged

    async def start_run(self, prompt: Prompt, session_id: str, state: State) -> AsyncStreamEvents:
        """Start the agent run of the turn that holds a session, and return its stream.

        This is how the builtin plugin answers `run_model_stream`.
        """
        from hookline.agent.run import AgentRun

        app, queue = self._app, self._app.sessions.queue(session_id)
        turn = queue.turn
        if turn is None:
            raise NotRunning(f"session {session_id!r} has no turn in progress: use app.process")
        run = AgentRun(
            prompt=prompt,
            ctx=self._context(turn),
            tape=await app.tape(session_id),
            tape_context=app.build_tape_context(),
            model=app.models.get(app.sessions.model_of(session_id)),
            workspace=app.workspace,
            state=state,
            limits=app.limits,
            thinking=app.sessions.thinking_of(session_id),
            on_phase=partial(setattr, queue, "phase"),
            options=app.options,
            tool_choice=app.tool_choice,
            output=app.output,
            envelope=turn.message,
            identity=turn.identity,
            turn_id=turn.context.turn_id,
            missing=app.absences.notes(),
            resume=turn.cut_off,
            conversation=app.sessions.conversation(session_id),
        )
        return turn.start(app.engine, run)

    # --- sending ------------------------------------------------------------------------------

    async def _dispatch(self, turn: ActiveTurn, outbounds: list[Envelope]) -> None:
        for outbound in outbounds:
            try:
                await self._hooks["dispatch_outbound"].fire(outbound)
            except Exception as error:
                await self._report("dispatch", error, turn, outbound)
                raise

    async def _end(self, turn: ActiveTurn, result: TurnResult) -> None:
        """Send the parts that `message:send` handlers add to an answer, then the `end` event."""
        hook = self._hooks[MessageSendEvent]
        if hook.live and result.outcome == "answered":
            channel, chat_id = address_of(turn.message)
            event = MessageSendEvent(channel, chat_id, turn.said, result.model_output, turn.is_voice)
            for added in await hook.fire(event, self._context(turn)):
                result.parts.extend(added.parts or ())
            if result.parts:
                answer = echo(turn.message, result.session_id, "")
                await turn.channel.send({**answer, "parts": list(result.parts)})
        if turn.channel.streams:
            await finished(turn.channel.stream(StreamEvent("end", {"result": result})))

    async def _finish(self, queue: SessionQueue, turn: ActiveTurn, result: TurnResult | None) -> bool:
        """End a turn, answered or not; return whether another one waits for the session."""
        if result is not None:
            await self._end(turn, result)
        if not queue.waiting:
            return False
        await self._save_point(turn)  # before the next turn begins
        return True

    async def _rest(self, queue: SessionQueue, turn: ActiveTurn) -> None:
        """Fire `save_point` and `settled` while the session is idle, so that handlers can use it."""
        await self._save_point(turn)
        settled = self._hooks[SettledEvent]
        if settled.live and not queue.activity.busy:
            await settled.fire(SettledEvent(), self._context(turn))

    async def _save_point(self, turn: ActiveTurn) -> None:
        save_point = self._hooks[SavePointEvent]
        if save_point.live:
            await save_point.fire(SavePointEvent(), self._context(turn))

    def _context(self, turn: ActiveTurn) -> HookContext:
        return self._app.context(turn.session_id, turn.identity, turn.channel)

    async def _report(
        self, stage: str, error: Exception, turn: ActiveTurn, message: Envelope = None
    ) -> None:
        """Show an error to `on_error` once, with the stage in which it happened."""
        hook = self._hooks["on_error"]
        if hook.live and turn.reported is not error:
            turn.reported = error
            await hook.fire(stage, error, turn.message if message is None else message, "main")
