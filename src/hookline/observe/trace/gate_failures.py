"""Handlers that failed at a gate which then let something through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .record import FAILED, HandlerRecord, TraceRecord


@dataclass(frozen=True, slots=True)
class GateFailure:
    """One handler that raised or timed out, and the call that it judged."""

    hook: str
    by: str
    place: str
    error: str
    session: str
    turn: str
    call: str
    time: float


def lets_through(record: TraceRecord, handler: HandlerRecord) -> bool:
    """Whether a handler failed at a gate that did not deny. Only gates have a decision."""
    return handler.did in FAILED and record.decision in ("allow", "ask")


def gate_failures(records: Iterable[TraceRecord]) -> list[GateFailure]:
    """Every such handler, in the order of failure."""
    return [
        GateFailure(
            record.name,
            handler.by,
            handler.place,
            handler.error,
            record.session,
            record.turn,
            record.call,
            record.time,
        )
        for record in records
        for handler in record.handlers
        if lets_through(record, handler)
    ]
