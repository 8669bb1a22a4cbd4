"""Spans: the turns of a session with their model turns and tool calls, for the dispatches in them.

The tape has when each began and ended; the trace adds which agent and model it was, and what was called
before the first entry of a call was written and after its last. So a turn notes its model turns alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hookline.tape import TOOL_CALL, TOOL_RESULT, Entry, TapeStore

from .record import TraceRecord, span_id
from .store import Trace, TraceStore
from .turns import TapeTurn, call_id_of, message_of, turns_of

ERROR = 500
"""Characters kept of a failed tool's output."""


async def session_trace(tape: TapeStore, traces: TraceStore, session: str) -> Trace:
    """The trace of a session, with the spans of its turns if all of it was kept."""
    trace = await traces.read(session)
    trace.records = with_spans(trace.records, turns_of(await tape.entries(session)))
    return trace


def with_spans(records: Sequence[TraceRecord], turns: Iterable[TapeTurn]) -> list[TraceRecord]:
    """The records with the spans of those turns in which the beginnings of model turns were noted."""
    noted: dict[str, list[TraceRecord]] = {}
    for record in records:
        noted.setdefault(record.turn, []).append(record)
    found = list(records)
    for turn in turns:
        own = noted.get(turn.id, [])
        kinds = {record.kind for record in own}
        if turn.id and "model" in kinds:
            found = [r for r in found if r.kind != "model" or r.turn != turn.id]
            found += _Spans(turn, own).made()
    return sorted(found, key=lambda record: record.time)


class _Spans:
    """Goes along a turn's entries."""

    def __init__(self, turn: TapeTurn, records: Sequence[TraceRecord]) -> None:
        self._turn = turn
        self._hooks = [record for record in records if record.kind == "hook"]
        self._models = {record.step: record for record in records if record.kind == "model"}
        self._calls: dict[str, TraceRecord] = {}

    def made(self) -> list[TraceRecord]:
        """The turn, its model turns and its tool calls."""
        first, last = self._turn.entries[0], self._turn.entries[-1]
        whole = self._whole(first, last)
        step = -1
        for entry in self._turn.entries:
            if message_of(entry).get("role") == "assistant":
                step += 1
                self._answered(step, entry)
            elif entry.kind in (TOOL_CALL, TOOL_RESULT):
                self._called(max(step, 0), entry)
        for model in self._models.values():
            if not model.duration:  # it has no answer
                model.duration = max(0.0, last.time - model.time)
                model.error = whole.error
        for record in self._hooks:
            own = self._calls.get(record.call) or self._models.get(record.step) or whole
            widen(own, record)
        for call in self._calls.values():
            if call.step in self._models:
                widen(self._models[call.step], call)
        spans = [*self._models.values(), *self._calls.values()]
        for span in spans:
            widen(whole, span)
        return [whole, *spans]

    def _whole(self, first: Entry, last: Entry) -> TraceRecord:
        own, status = self._turn.id, self._turn.status
        agent = next((model.payload.get("agent", "") for model in self._models.values()), "")
        ends = (e.payload.get("error") for e in reversed(self._turn.entries) if e.kind == "turn")
        error = "" if status == "completed" else str(next(ends, None) or status)
        span = TraceRecord(own, "turn", agent, first.session_id, own, time=first.time, error=error)
        span.duration = last.time - first.time
        return span

    def _answered(self, step: int, entry: Entry) -> None:
        model = self._models.get(step)
        if model is not None:
            model.duration = max(0.0, entry.time - model.time)
            model.payload = {"usage": entry.meta.get("usage") or {}}

    def _called(self, step: int, entry: Entry) -> None:
        call, payload = str(call_id_of(entry)), entry.payload
        span = self._calls.get(call)
        if span is None:
            own, outer = span_id(self._turn.id, call=call), span_id(self._turn.id, step)
            span = self._calls[call] = TraceRecord(
                own, "tool", str(payload.get("name", "")), entry.session_id, self._turn.id, step, call,
                parent=outer, time=entry.time,
            )  # fmt: skip
        span.duration = entry.time - span.time
        if entry.kind == TOOL_RESULT and payload.get("is_error"):
            said: Any = payload.get("content")
            span.error = str(said)[:ERROR]


def widen(span: TraceRecord, inner: TraceRecord) -> None:
    """Make a span as wide as what happened in it."""
    end = max(span.time + span.duration, inner.time + inner.duration)
    span.time = min(span.time, inner.time)
    span.duration = end - span.time
