"""The plugins of the trace: one records model turns, the other reports open spans."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Protocol

from hookline.events import (
    AgentErrorEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from hookline.hooks import hookimpl
from hookline.hooks.errors import error_text
from hookline.turn_context import here
from hookline.types import HookContext

from .batch import StartedModelCall
from .record import SpanKind, TraceRecord, span_id
from .tracer import Listener, Tracer


class TracedApp(Protocol):
    """What the trace needs of the app."""

    sessions: Any


class TracePlugin:
    """Notes which agent asked which model: of a turn, the tape has all but that."""

    def __init__(self, app: TracedApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    @hookimpl
    def turn_start(self, ctx: HookContext) -> None:
        """A model turn begins."""
        place, run = here(), self._app.sessions.run(ctx.session_id)
        if place is not None and run is not None and place.session_id == ctx.session_id:
            self._tracer.began(StartedModelCall(place, perf_counter(), ctx.agent_id, run.model.name))


class SpansPlugin:
    """Tells listeners of the spans of a turn: the turn itself, its model turns, its tool calls."""

    def __init__(self, app: TracedApp, epoch: float, listeners: tuple[Listener, ...]) -> None:
        self._app = app
        self._epoch = epoch
        """Converts a time of `perf_counter` to a time of day."""
        self._listeners = listeners
        self._open: dict[str, dict[str, TraceRecord]] = {}
        """The spans that are open in each session, by id."""
        self._used: dict[str, dict[str, float]] = {}

    @hookimpl
    def agent_start(self, ctx: HookContext) -> None:
        """A turn begins; one that was resumed begins with its first model turn."""
        self._begin("turn", ctx, ctx.agent_id)

    @hookimpl
    def turn_start(self, event: TurnStartEvent, ctx: HookContext) -> None:
        """A model turn begins."""
        place = here()
        if place is not None and span_id(place.turn_id) not in self._open.get(ctx.session_id, {}):
            self._begin("turn", ctx, ctx.agent_id)
        run = self._app.sessions.run(ctx.session_id)
        name = run.model.name if run is not None else ""
        self._begin("model", ctx, name, step=event.turn_index)

    @hookimpl
    def turn_end(self, event: TurnEndEvent, ctx: HookContext) -> None:
        """A model turn is over, its tools with it."""
        place = here()
        if place is not None:
            self._end(ctx, span_id(place.turn_id, event.turn_index), {"usage": self._usage(ctx)})

    @hookimpl
    def tool_execution_start(self, event: ToolExecutionStartEvent, ctx: HookContext) -> None:
        """A tool call begins."""
        self._begin("tool", ctx, event.tool_call.name, call=event.tool_call.id)

    @hookimpl
    def tool_execution_end(self, event: ToolExecutionEndEvent, ctx: HookContext) -> None:
        """A tool call is over."""
        place, result = here(), event.tool_result
        if place is not None:
            failed = str(result.content)[:500] if result.is_error else ""
            self._end(ctx, span_id(place.turn_id, call=result.tool_call_id), error=failed)

    @hookimpl
    def agent_error(self, event: AgentErrorEvent, ctx: HookContext) -> None:
        """The turn failed."""
        self._close(ctx.session_id, error_text(event.error) if event.error else "failed")

    @hookimpl
    def agent_end(self, ctx: HookContext) -> None:
        """The turn has its answer."""
        self._close(ctx.session_id)

    @hookimpl
    def save_point(self, ctx: HookContext) -> None:
        """End what is still open as interrupted."""
        self._close(ctx.session_id, "cancelled")

    @hookimpl
    def session_shutdown(self, ctx: HookContext) -> None:
        """The session is closed."""
        self._close(ctx.session_id, "cancelled")
        for listener in self._listeners:
            listener.left(ctx.session_id)

    def _begin(
        self, kind: SpanKind, ctx: HookContext, name: str, *, step: int | None = None, call: str = ""
    ) -> None:
        place, session = here(), ctx.session_id
        turn = place.turn_id if place is not None and place.session_id == session else ""
        if place is not None and kind == "tool":
            step = place.step
        own = span_id(turn, step if kind == "model" else None, call)
        outer = "" if kind == "turn" else span_id(turn, step if kind == "tool" else None)
        began = self._epoch + perf_counter()
        span = TraceRecord(own, kind, name, session, turn, step, call, parent=outer, time=began)
        self._open.setdefault(session, {})[own] = span
        for listener in self._listeners:
            listener.began(span)

    def _end(self, ctx: HookContext, own: str, payload: Any = None, error: str = "") -> None:
        span = self._open.get(ctx.session_id, {}).pop(own, None)
        if span is not None:
            span.payload = payload
            self._ended(span, error)

    def _close(self, session: str, error: str = "") -> None:
        """End open spans, the innermost first."""
        spans = self._open.pop(session, None)
        self._used.pop(session, None)
        if spans:
            for span in reversed(spans.values()):
                self._ended(span, error)

    def _ended(self, span: TraceRecord, error: str) -> None:
        span.duration = self._epoch + perf_counter() - span.time
        span.error = error
        for listener in self._listeners:
            listener.ended(span)

    def _usage(self, ctx: HookContext) -> dict[str, float]:
        """The usage of the last answer: the run's total minus the previous one."""
        run = self._app.sessions.run(ctx.session_id)
        total: dict[str, float] = dict(run.usage) if run is not None else {}
        before = self._used.get(ctx.session_id, {})
        self._used[ctx.session_id] = total
        return {name: number - before.get(name, 0) for name, number in total.items()}
