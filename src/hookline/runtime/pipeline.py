"""The pipeline: one message in, one answer out, every stage of it a hook.

message:receive, resolve_session, admit_message
load_state, session_start, input, build_prompt
run_model_stream or run_model, output, save_state
render_outbound, dispatch_outbound
message:send, save_point, settled
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.channel import finished
from hookline.errors import Blocked, Cancelled, NotRunning
from hookline.events import InputEvent, OutputEvent, SavePointEvent, SettledEvent
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.hookspecs import Admission
from hookline.turn_context import here
from hookline.types import (
    AsyncStreamEvents,
    Envelope,
    Identity,
    Prompt,
    State,
    StreamEvent,
    address_of,
    check_envelope,
    check_outbound,
    content_of,
)

from .inbound import Inbound
from .session_queue import Lane
from .turn import (
    Outcome,
    StreamedAnswer,
    TurnResult,
    echo,
    one_chunk,
    with_content,
    with_context,
    with_delivery_ids,
)
from .user_commands import written

if TYPE_CHECKING:
    from hookline.agent.journal import CutOffTurn
    from hookline.agent.run import Limits
    from hookline.channel import Channel
    from hookline.types import HookContext

    from .app import Hookline


class Pipeline:
    """Takes messages through the stages of an app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._hooks = app.hooks

    async def process(self, inbound: Inbound) -> TurnResult:
        """Process one inbound message to the end."""
        message = inbound.message = check_envelope(inbound.message)
        inbound.identity = Identity.of(message)  # before any plugin sees the message
        try:
            ctx = self._app.context("", inbound.identity, inbound.channel)
            rejected = await inbound.receive(self._hooks, ctx)
            if rejected is not None:
                result = TurnResult("", outcome="rejected", stopped=rejected)
                await inbound.end(self._hooks, result, ctx)
                return result
            if not inbound.session_id:
                inbound.session_id = await self.resolve_session(inbound.message)
            self._arrived(inbound.session_id)
            return await self._admit(inbound)
        except _Reported as reported:
            raise reported.error from None
        except Exception as error:
            await self._notify_error("turn", error, inbound.message)
            raise

    async def resume(self, session_id: str, channel: Channel) -> TurnResult | None:
        """Continue the session's cut-off turn where it stopped; None when there is none."""
        from hookline.agent.journal import cut_off_turn

        lane = self._app.lanes.of(session_id)
        async with lane.turn():
            # The turn goes on for the user whom the tape names, whoever has it resumed.
            cut = await cut_off_turn(await self._app.tape(session_id), imported=True)
            if cut is None:
                return None
            lane.identity = cut.identity
            self._arrived(session_id, cut.turn_id)
            message = cut.envelope or {"content": "", "session_id": session_id}
            inbound = Inbound(message, cut.identity, channel, session_id)
            try:
                result = await self._continue(cut, inbound)
                await self._finish(lane, inbound, result)
                return result
            except _Reported as reported:
                raise reported.error from None
            except Exception as error:
                await self._notify_error("turn", error, message)
                raise

    async def resolve_session(self, message: Envelope) -> str:
        """The session that a message belongs to."""
        named = await self._hooks["resolve_session"].fire(message)
        if named is not None:
            return named
        return ":".join(address_of(message))

    @staticmethod
    def _arrived(session_id: str, turn_id: str = "") -> None:
        """Tell whoever watches the turn at hand which one it is."""
        place = here()
        if place is not None:
            place.session_id, place.turn_id = session_id, turn_id or place.turn_id

    # --- admission ----------------------------------------------------------------------------

    async def _admit(self, inbound: Inbound) -> TurnResult:
        """Give a message its own turn, let it join the running one, or drop it."""
        session_id = inbound.session_id
        lane = self._app.lanes.of(session_id)
        admission = await self._admission(lane, inbound.message)
        result: TurnResult | None = None
        if admission.action == "drop":
            result = await self._unanswered(inbound, "dropped", admission.reason)
        elif inbound.command is not None and written(content_of(inbound.message)):
            result = await self._command(inbound)
        if result is None and admission.action == "steer" and lane.phase != "idle":
            result = await self._steer(inbound)
        if result is not None:
            await self._end(inbound, result)
            return result
        inbound.place()
        async with lane.turn(inbound.identity, ahead=admission.action == "process"):
            try:
                result = await self._turn(inbound)
                return result
            finally:
                await self._finish(lane, inbound, result)

    async def _admission(self, lane: Lane, message: Envelope) -> Admission:
        """What `admit_message` says; a busy session's message is a follow-up unless it says more."""
        hook = self._hooks["admit_message"]
        answer = await hook.fire(lane.session_id, message, lane.activity) if hook.live else None
        if isinstance(answer, Admission):
            return answer
        return Admission(answer or "follow_up")

    async def _command(self, inbound: Inbound) -> TurnResult | None:
        """Run a slash command beside whatever runs; no result if `input` made it a message."""
        stopped = await self._input(inbound)
        command = written(content_of(inbound.message))
        if stopped is not None or command is None or inbound.command is None:
            return stopped
        # On the tape first: a command that a crash cuts off is not carried out again.
        await self._unanswered(inbound, "handled", f"/{command[0]}")
        inbound.place()
        message, session_id, channel = inbound.message, inbound.session_id, inbound.channel
        said = await inbound.command(session_id, inbound.identity.stamped(message)) or "done"
        if channel.streams:
            await finished(channel.stream(StreamEvent("text", {"delta": said})))
        result = TurnResult(session_id, model_output=said, outcome="handled")
        result.outbounds = [echo(message, session_id, said)]
        await self._dispatch(result.outbounds)
        return result

    async def _steer(self, inbound: Inbound) -> TurnResult | None:
        """Let a message join the running turn; no result if that ended too soon."""
        session_id = inbound.session_id
        run = self._app.runs.get(session_id)
        if run is None:
            return None
        if not inbound.screened:
            stopped = await self._input(inbound)
            if stopped is not None:
                return stopped
        message = inbound.message
        prompt = await self._hooks["build_prompt"].fire(message, session_id, run.state)
        inbound.place()
        joined = await run.steering.join(prompt or content_of(message), message, inbound.identity)
        return TurnResult(session_id, outcome="steered") if joined else None

    async def _unanswered(self, inbound: Inbound, outcome: Outcome, reason: str | None) -> TurnResult:
        """Note on the tape what became of a message that gets no turn."""
        from hookline.agent.journal import INBOUND, plain_envelope

        session_id = inbound.session_id
        run = self._app.runs.get(session_id)
        tape = run.tape if run is not None else await self._app.tape(session_id)
        noted = {"envelope": plain_envelope(inbound.message), "outcome": outcome, "reason": reason}
        await tape.append(INBOUND, noted)
        return TurnResult(session_id, outcome=outcome, stopped=reason or outcome)

    async def _finish(self, lane: Lane, inbound: Inbound, result: TurnResult | None) -> None:
        """After a turn, answered or not: its end is marked, and everybody may rest."""
        if result is not None:
            await self._end(inbound, result)
        save_point, settled = self._hooks["save_point"], self._hooks["settled"]
        if save_point.live:
            await save_point.fire(SavePointEvent(), self._context(inbound))
        if settled.live and not lane.waiting:
            await settled.fire(SettledEvent(), self._context(inbound))

    async def _end(self, inbound: Inbound, result: TurnResult) -> None:
        await inbound.end(self._hooks, result, self._context(inbound))

    def _context(self, inbound: Inbound) -> HookContext:
        return self._app.context(inbound.session_id, inbound.identity, inbound.channel)

    # --- the stages of a turn --------------------------------------------------------------------

    async def _turn(self, inbound: Inbound) -> TurnResult:
        session_id = inbound.session_id
        state: State = await self._hooks["load_state"].fire(inbound.message, session_id)
        opened = await self._app.sessions.open(session_id)
        if not inbound.screened:
            stopped = await self._input(inbound)
            if stopped is not None:
                await self._save_state(session_id, state, inbound.message, "")
                return stopped
        message = inbound.message
        prompt = await self._hooks["build_prompt"].fire(message, session_id, state)
        prompt = prompt or content_of(message)
        result = TurnResult(session_id, prompt=with_context(prompt, opened.added))
        opened.added = ""
        return await self._answer(result, inbound, state)

    async def _continue(self, cut: CutOffTurn, inbound: Inbound) -> TurnResult:
        session_id = inbound.session_id
        state: State = await self._hooks["load_state"].fire(inbound.message, session_id)
        await self._app.sessions.open(session_id, "resume")
        state["resume"] = cut
        result = TurnResult(session_id, prompt=cut.prompt)
        return await self._answer(result, inbound, state)

    async def _input(self, inbound: Inbound) -> TurnResult | None:
        """Let `input` judge what came; a result if it needs no agent turn."""
        inbound.screened = True
        message, hook = inbound.message, self._hooks["input"]
        if not hook.live:
            return None
        event = InputEvent(content_of(message), address_of(message)[0])
        verdict = await hook.fire(event, self._context(inbound))
        if verdict.denied:
            changes: dict[str, Any] = dict(verdict.deciding.changes or {})
            outcome: Outcome = "handled" if changes.get("action") == "handled" else "blocked"
            return await self._unanswered(inbound, outcome, verdict.reason)
        if "text" in verdict.changes:
            inbound.message = with_content(message, verdict.event.text)
        return None

    async def _answer(self, result: TurnResult, inbound: Inbound, state: State) -> TurnResult:
        """From the prompt to the outbound envelopes."""
        session_id, message = result.session_id, inbound.message
        state["message"] = message
        status, failure = "failed", None
        try:
            try:
                result.model_output = await self._run_model(result, state, inbound.channel)
            except Cancelled as error:
                status, result.outcome, result.stopped = "cancelled", "cancelled", str(error)
                return result
            except BaseException as error:
                failure = str(error) if isinstance(error, HooklineError) else error_text(error)
                if isinstance(error, Exception):
                    await self._notify_error("run_model", error, message)
                    raise _Reported(error) from error
                status = "cancelled"
                raise
            finally:
                await self._save_state(session_id, state, message, result.model_output)
            rendered = await self._hooks["render_outbound"].fire(
                message, session_id, state, result.model_output
            ) or [echo(message, session_id, result.model_output)]
            result.outbounds = with_delivery_ids(message, [*map(check_outbound, rendered)])
            await self._dispatch(result.outbounds)
            status = "completed"
            return result
        finally:
            run = self._app.runs.pop(session_id, None)
            if run is not None:
                result.usage = dict(run.usage)
                # A parked turn goes on later; on a broken tape nothing could be noted.
                if not (run.parked or self._tape_is_broken(run.error)):
                    await run.finish(status, failure)

    @staticmethod
    def _tape_is_broken(error: Exception | None) -> bool:
        if error is None:
            return False
        from hookline.tape import TapeError

        return isinstance(error, TapeError)

    async def _save_state(
        self, session_id: str, state: State, message: Envelope, model_output: str
    ) -> None:
        await self._hooks["save_state"].fire(session_id, state, message, model_output)

    async def _dispatch(self, outbounds: list[Envelope]) -> None:
        for outbound in outbounds:
            try:
                await self._hooks["dispatch_outbound"].fire(outbound)
            except Exception as error:
                await self._notify_error("dispatch", error, outbound)
                raise _Reported(error) from error

    async def _notify_error(self, stage: str, error: Exception, message: Envelope | None) -> None:
        on_error = self._hooks["on_error"]
        if on_error.live:
            await on_error.fire(stage, error, message, "main")

    # --- the model's stage --------------------------------------------------------------------

    async def _run_model(self, result: TurnResult, state: State, channel: Channel) -> str:
        """Read the stream of whoever answers; give the text that may go out."""
        events = await self.run_model_stream(result.prompt, result.session_id, state)
        output = self._hooks["output"]
        held = output.count() > 0 and not self._shows_segments(events.state)
        answer = StreamedAnswer(channel.stream if channel.streams else None, held=held)
        try:
            async for event in events:
                await answer.take(event)
        finally:
            await events.aclose()
            if held and (run := self._app.runs.get(result.session_id)) is not None:
                run.unsaved.clear()  # nobody has seen it
        text = answer.text or getattr(events.state, "text", "")
        if output.live:
            verdict = await output.fire(OutputEvent(text), self._app.context(result.session_id))
            if not verdict.allowed:
                raise Blocked("the answer", verdict.reason, verdict.decided_by)
            text = verdict.event.content
        await answer.release(text)
        return text

    def _shows_segments(self, run: Any) -> bool:
        """Whether an answer is shown while it streams, each segment as `model_result` released it."""
        limits: Limits | None = getattr(run, "limits", None)
        judged = self._hooks["model_result"].count() > 0
        return limits is not None and limits.streaming.segment > 0 and judged

    async def run_model_stream(
        self, prompt: Prompt, session_id: str, state: State
    ) -> AsyncStreamEvents:
        """The stream of the newest plugin that answers, by `run_model_stream` or `run_model`.

        The two hooks are walked together, in one order: the builtin's stream never shadows a newer
        plugin's text.
        """
        arguments = {"prompt": prompt, "session_id": session_id, "state": state}
        streams, texts = self._hooks["run_model_stream"], self._hooks["run_model"]
        if not texts.count():
            answer = await streams.fire(prompt, session_id, state)
            if answer is not None:
                return answer
        both = [*streams.run_order(session_id), *texts.run_order(session_id)]
        for impl in sorted((i for i in both if not i.wrapper), key=lambda i: i.sort_key):
            hook = streams if impl.spec is streams.spec else texts
            answer = await hook.only([impl, *(i for i in both if i.wrapper)])(**arguments)
            if answer is not None:
                return answer if hook is streams else one_chunk(answer)
        raise NotRunning("no plugin answers run_model_stream or run_model: is the builtin loaded?")


class _Reported(Exception):
    """Carries an error that `on_error` has been told of."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
