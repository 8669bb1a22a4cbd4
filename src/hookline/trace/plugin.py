"""The plugin of the trace: the spans of a turn, and the moments at which records are kept."""

from __future__ import annotations

from time import time
from typing import Any, Protocol

from hookline.catalog.context import HookContext
from hookline.catalog.events.agent import AgentErrorEvent
from hookline.catalog.events.message import TurnEndEvent, TurnStartEvent
from hookline.catalog.events.tool import ToolExecutionEndEvent, ToolExecutionStartEvent
from hookline.catalog.place import Place, here
from hookline.hooks import hookimpl
from hookline.hooks.errors import error_text

from .record import Kind, TraceRecord, span_id
from .snapshot import encode
from .tracer import Listener, Tracer


class App(Protocol):
    """What the trace needs of the app."""

    runs: dict[str, Any]


class TracePlugin:
    """Keeps records at save points."""

    tracer: Tracer

    @hookimpl
    async def save_point(self) -> None:
        """The agent is idle: keep what waits, unless that was just done."""
        if self.tracer.is_due():
            await self.tracer.flush()


class SpansPlugin:
    """Marks the spans of a turn: the turn itself, its model turns, its tool calls."""

    tracer: Tracer

    def __init__(self, app: App, listeners: tuple[Listener, ...] = ()) -> None:
        self._app = app
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
        run = self._app.runs.get(ctx.session_id)
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
        """What is open still was cut off."""
        self._close(ctx.session_id, "cancelled")

    @hookimpl
    def session_shutdown(self, ctx: HookContext) -> None:
        """The session is closed."""
        self._close(ctx.session_id, "cancelled")
        for listener in self._listeners:
            listener.left(ctx.session_id)

    def _begin(
        self, kind: Kind, ctx: HookContext, name: str, *, step: int | None = None, call: str = ""
    ) -> None:
        place = here()
        turn = place.turn_id if place is not None and place.session_id == ctx.session_id else ""
        if place is not None and step is None and kind == "tool":
            step = place.step
        outer = "" if kind == "turn" else span_id(turn, step if kind == "tool" else None)
        own = span_id(turn, step if kind == "model" else None, call)
        record = TraceRecord(
            own, kind, name, ctx.session_id, turn, step, call, parent=outer, time=time()
        )
        self._open.setdefault(ctx.session_id, {})[own] = record
        for listener in self._listeners:
            listener.began(record)

    def _end(self, ctx: HookContext, own: str, payload: Any = None, error: str = "") -> None:
        record = self._open.get(ctx.session_id, {}).pop(own, None)
        if record is None:
            return
        record.duration = time() - record.time
        record.error = error
        record.payload = payload
        for listener in self._listeners:
            listener.ended(record)
        self._keep(record)

    def _close(self, session: str, error: str = "") -> None:
        """End what is open, the innermost first."""
        spans = self._open.pop(session, {})
        self._used.pop(session, None)
        for record in reversed(spans.values()):
            record.duration = time() - record.time
            record.error = error
            for listener in self._listeners:
                listener.ended(record)
            self._keep(record)

    def _keep(self, record: TraceRecord) -> None:
        payload = None if record.payload is None else encode(record.payload)
        started = int((record.time - self.tracer.epoch) * 1e9)
        row = [record.kind, 0, record.name, 0, started, int(record.duration * 1e9)]
        row += [None, None, record.error or None, payload]
        place = Place(record.session, record.turn, record.step, record.call)
        self.tracer.note(row, record.session, place)

    def _usage(self, ctx: HookContext) -> dict[str, float]:
        """What the last answer used: the run's total, less what it was before."""
        run = self._app.runs.get(ctx.session_id)
        total: dict[str, float] = dict(run.usage) if run is not None else {}
        before = self._used.get(ctx.session_id, {})
        self._used[ctx.session_id] = total
        return {name: number - before.get(name, 0) for name, number in total.items()}
