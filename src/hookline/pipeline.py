"""The pipeline: one message in, one answer out, every stage of it a hook.

message:receive, resolve_session, admit_message
load_state, session_start, input, build_prompt
run_model_stream or run_model, output, save_state
render_outbound, dispatch_outbound
message:send, save_point, settled
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.agent.errors import Blocked, Cancelled
from hookline.catalog.envelope import Envelope, State, address_of, check_envelope, content_of
from hookline.catalog.events.agent import InputEvent, OutputEvent, SavePointEvent, SettledEvent
from hookline.catalog.identity import Identity
from hookline.catalog.parts import Prompt
from hookline.catalog.place import here
from hookline.catalog.stream import AsyncStreamEvents, StreamEvent
from hookline.catalog.turn import Admission
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.lanes import Lane
from hookline.slash import written
from hookline.turn import (
    Listener,
    Outcome,
    StreamedAnswer,
    TurnResult,
    echo,
    one_chunk,
    shown_to,
    with_content,
    with_context,
    with_delivery_ids,
)

if TYPE_CHECKING:
    from hookline.agent.journal import CutOffTurn
    from hookline.agent.run import Limits
    from hookline.app import Hookline
    from hookline.exchange import Exchange


class NotRunning(HooklineError, RuntimeError):
    """Something was asked of the app outside its running scope."""


class Pipeline:
    """Takes messages through the stages of an app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._hooks = app.hooks

    async def process(
        self,
        envelope: Envelope,
        *,
        stream: Listener | None = None,
        session_id: str | None = None,
        exchange: Exchange | None = None,
    ) -> TurnResult:
        """Process one inbound message to the end; a door with a channel passes its `exchange`."""
        message = check_envelope(envelope)
        identity = Identity.of(message)  # before any plugin sees the message
        try:
            if exchange is not None:
                ctx = self._app.context("", identity)
                message, rejected = await exchange.receive(self._hooks, message, ctx)
                if rejected is not None:
                    return TurnResult("", outcome="rejected", stopped=rejected)
            session_id = session_id or await self.resolve_session(message)
            self._arrived(session_id)
            return await self._admit(message, identity, session_id, stream, exchange)
        except _Reported as reported:
            raise reported.error from None
        except Exception as error:
            await self._notify_error("turn", error, message)
            raise

    async def resume(
        self, session_id: str, *, stream: Listener | None = None, exchange: Exchange | None = None
    ) -> TurnResult | None:
        """Continue the session's cut-off turn where it stopped; None when there is none."""
        from hookline.agent.journal import cut_off_turn

        lane = self._app.lanes.of(session_id)
        async with lane.turn():
            # The turn goes on for the user whom the tape names, whoever has it resumed.
            cut = await cut_off_turn(await self._app.tape(session_id))
            if cut is None:
                return None
            lane.identity = cut.identity
            self._arrived(session_id, cut.turn_id)
            message = cut.envelope or {"content": "", "session_id": session_id}
            try:
                result = await self._continue(cut, message, session_id, stream)
                await self._finish(lane, message, result, exchange)
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

    async def _admit(
        self,
        message: Envelope,
        identity: Identity,
        session_id: str,
        stream: Listener | None,
        exchange: Exchange | None,
    ) -> TurnResult:
        """Give a message its own turn, let it join the running one, or drop it."""
        lane = self._app.lanes.of(session_id)
        admission = await self._admission(lane, message)
        if admission.action == "drop":
            result = await self._unanswered(session_id, message, "dropped", admission.reason)
            await self._end(message, result, exchange)
            return result
        screened = False
        if exchange is not None and exchange.command is not None and written(content_of(message)):
            message, result = await self._command(message, identity, session_id, stream, exchange)
            if result is not None:
                await self._end(message, result, exchange)
                return result
            screened = True
        if admission.action == "steer" and lane.phase != "idle":
            message, result = await self._steer(
                message, identity, session_id, exchange, screened=screened
            )
            if result is not None:
                await self._end(message, result, exchange)
                return result
            screened = True
        if exchange is not None:
            exchange.place()
        async with lane.turn(identity, ahead=admission.action == "process"):
            result: TurnResult | None = None
            try:
                result = await self._turn(message, identity, session_id, stream, screened=screened)
                return result
            finally:
                await self._finish(lane, message, result, exchange)

    async def _admission(self, lane: Lane, message: Envelope) -> Admission:
        """What `admit_message` says; a busy session's message is a follow-up unless it says more."""
        hook = self._hooks["admit_message"]
        answer = await hook.fire(lane.session_id, message, lane.activity) if hook.live else None
        if isinstance(answer, Admission):
            return answer
        return Admission(answer or "follow_up")

    async def _command(
        self,
        message: Envelope,
        identity: Identity,
        session_id: str,
        stream: Listener | None,
        exchange: Exchange,
    ) -> tuple[Envelope, TurnResult | None]:
        """Carry out a slash command beside whatever runs; no result if `input` made it a message."""
        message, stopped = await self._input(message, identity, session_id)
        command = written(content_of(message))
        if stopped is not None or command is None or exchange.command is None:
            return message, stopped
        # On the tape first: a command that a crash cuts off is not carried out again.
        await self._unanswered(session_id, message, "handled", f"/{command[0]}")
        exchange.place()
        said = await exchange.command(session_id, identity.stamped(message)) or "done"
        if stream is not None:
            await shown_to(stream, StreamEvent("text", {"delta": said}))
        result = TurnResult(session_id, model_output=said, outcome="handled")
        result.outbounds = [echo(message, session_id, said)]
        await self._dispatch(result.outbounds)
        return message, result

    async def _steer(
        self,
        message: Envelope,
        identity: Identity,
        session_id: str,
        exchange: Exchange | None,
        *,
        screened: bool,
    ) -> tuple[Envelope, TurnResult | None]:
        """Let a message join the running turn; no result if that ended too soon."""
        run = self._app.runs.get(session_id)
        if run is None:
            return message, None
        if not screened:
            message, stopped = await self._input(message, identity, session_id)
            if stopped is not None:
                return message, stopped
        prompt = await self._hooks["build_prompt"].fire(message, session_id, run.state)
        if exchange is not None:
            exchange.place()
        joined = await run.steering.join(prompt or content_of(message), message, identity)
        return message, TurnResult(session_id, outcome="steered") if joined else None

    async def _unanswered(
        self, session_id: str, message: Envelope, outcome: Outcome, reason: str | None
    ) -> TurnResult:
        """Note on the tape what became of a message that gets no turn."""
        from hookline.agent.journal import INBOUND, plain_envelope

        run = self._app.runs.get(session_id)
        tape = run.tape if run is not None else await self._app.tape(session_id)
        noted = {"envelope": plain_envelope(message), "outcome": outcome, "reason": reason}
        await tape.append(INBOUND, noted)
        return TurnResult(session_id, outcome=outcome, stopped=reason or outcome)

    async def _finish(
        self, lane: Lane, message: Envelope, result: TurnResult | None, exchange: Exchange | None
    ) -> None:
        """After a turn, answered or not: its end is marked, and everybody may rest."""
        ctx = self._app.context(lane.session_id)
        if result is not None:
            await self._end(message, result, exchange)
        save_point, settled = self._hooks["save_point"], self._hooks["settled"]
        if save_point.live:
            await save_point.fire(SavePointEvent(), ctx)
        if settled.live and not lane.waiting:
            await settled.fire(SettledEvent(), ctx)

    async def _end(self, message: Envelope, result: TurnResult, exchange: Exchange | None) -> None:
        if exchange is not None:
            await exchange.send(self._hooks, message, result, self._app.context(result.session_id))

    # --- the stages of a turn --------------------------------------------------------------------

    async def _turn(
        self,
        message: Envelope,
        identity: Identity,
        session_id: str,
        stream: Listener | None,
        *,
        screened: bool = False,
    ) -> TurnResult:
        state: State = await self._hooks["load_state"].fire(message, session_id)
        opened = await self._app.sessions.open(session_id)
        if not screened:
            message, stopped = await self._input(message, identity, session_id)
            if stopped is not None:
                await self._save_state(session_id, state, message, "")
                return stopped
        prompt = await self._hooks["build_prompt"].fire(message, session_id, state)
        prompt = prompt or content_of(message)
        result = TurnResult(session_id, prompt=with_context(prompt, opened.added))
        opened.added = ""
        return await self._answer(result, message, state, stream)

    async def _continue(
        self, cut: CutOffTurn, message: Envelope, session_id: str, stream: Listener | None
    ) -> TurnResult:
        state: State = await self._hooks["load_state"].fire(message, session_id)
        await self._app.sessions.open(session_id, "resume")
        state["resume"] = cut
        result = TurnResult(session_id, prompt=cut.prompt)
        return await self._answer(result, message, state, stream)

    async def _input(
        self, message: Envelope, identity: Identity, session_id: str
    ) -> tuple[Envelope, TurnResult | None]:
        """Let `input` judge what came; a result if it needs no agent turn."""
        hook = self._hooks["input"]
        if not hook.live:
            return message, None
        event = InputEvent(content_of(message), address_of(message)[0])
        verdict = await hook.fire(event, self._app.context(session_id, identity))
        if verdict.denied:
            changes: dict[str, Any] = dict(verdict.deciding.changes or {})
            outcome: Outcome = "handled" if changes.get("action") == "handled" else "blocked"
            return message, await self._unanswered(session_id, message, outcome, verdict.reason)
        if "text" in verdict.changes:
            message = with_content(message, verdict.event.text)
        return message, None

    async def _answer(
        self, result: TurnResult, message: Envelope, state: State, stream: Listener | None
    ) -> TurnResult:
        """From the prompt to the outbound envelopes."""
        session_id = result.session_id
        state["message"] = message
        status, failure = "failed", None
        try:
            try:
                result.model_output = await self._run_model(result, state, stream)
            except Cancelled as error:
                status, result.outcome, result.stopped = "cancelled", "cancelled", str(error)
                return result
            except BaseException as error:
                failure = error_text(error)
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
            result.outbounds = with_delivery_ids(message, rendered)
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

    async def _run_model(self, result: TurnResult, state: State, stream: Listener | None) -> str:
        """Read the stream of whoever answers; give the text that may go out."""
        events = await self.run_model_stream(result.prompt, result.session_id, state)
        output = self._hooks["output"]
        held = output.count() > 0 and not self._shows_segments(events.state)
        answer = StreamedAnswer(stream, held=held)
        try:
            async for event in events:
                await answer.take(event)
        finally:
            await events.aclose()
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
