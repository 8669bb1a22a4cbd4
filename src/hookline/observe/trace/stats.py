"""Statistics: how often hooks and plugins ran, how long they took, how often they failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from hookline.tape import Entry, TapeStore

from .record import FAILED, TraceRecord
from .store import TraceStore
from .turns import interval

TurnKey = tuple[str, str]
"""A session and a turn of it."""
Sample = tuple[float, float, bool, TurnKey | None]
"""When it began and ended, whether it failed, and the turn that it was in."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One hook, or one plugin or handler; times are in seconds."""

    name: str
    calls: int
    p50: float
    p95: float
    total: float
    errors: int
    share: float | None
    """Of the time of all turns, the part in which it ran; None if there is no turn."""


@dataclass(slots=True)
class Stats:
    """The measurements."""

    hooks: list[Measured] = field(default_factory=list[Measured])
    plugins: list[Measured] = field(default_factory=list[Measured])
    records: int = 0
    turns: int = 0
    turn_seconds: float = 0.0
    damaged: int = 0
    dropped: int = 0

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


async def measure(
    tape: TapeStore, traces: TraceStore, session: str | None = None, *, since: float = 0.0
) -> Stats:
    """Measure the trace of one session or all, from a given time; slowest first."""
    trace = await traces.read(session, since=since)
    dispatches = [record for record in trace.records if record.kind == "hook"]
    spans = await turn_spans(tape, trace.records, since)
    seconds = sum(end - start for start, end in spans.values())
    hooks: dict[str, list[Sample]] = {}
    plugins: dict[str, list[Sample]] = {}
    for record in dispatches:
        failed = any(h.did in FAILED for h in record.handlers)
        key = (record.session, record.turn) if record.turn else None
        began = record.time
        sample = (began, began + record.duration, failed or bool(record.error), key)
        hooks.setdefault(record.name, []).append(sample)
        for handler in record.handlers:
            failed = handler.did in FAILED
            at = began + handler.after
            plugins.setdefault(handler.by, []).append((at, at + handler.duration, failed, key))
    return Stats(
        measured(hooks, seconds),
        measured(plugins, seconds),
        len(dispatches),
        len(spans),
        seconds,
        trace.damaged,
        trace.dropped,
    )


def measured(samples: dict[str, list[Sample]], seconds: float) -> list[Measured]:
    """Each name with its numbers, the one that took longest in all first."""
    found: list[Measured] = []
    for name, calls in samples.items():
        times = sorted(end - start for start, end, _, _ in calls)
        total = sum(times)
        share = min(1.0, covered(calls) / seconds) if seconds > 0 else None
        errors = sum(failed for _, _, failed, _ in calls)
        p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
        found.append(Measured(name, len(calls), p50, p95, total, errors, share))
    return sorted(found, key=lambda each: (-each.total, each.name))


def covered(calls: Iterable[Sample]) -> float:
    """Seconds of turns in which at least one of these ran: calls may overlap, or lie in each other."""
    seconds = 0.0
    last: dict[TurnKey, float] = {}
    for start, end, _, turn in sorted(calls, key=lambda call: call[0]):
        if turn is not None:
            seconds += max(0.0, end - max(start, last.get(turn, start)))
            last[turn] = max(end, last.get(turn, end))
    return seconds


def percentile(ordered: list[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


async def turn_spans(
    tape: TapeStore, records: Iterable[TraceRecord], since: float
) -> dict[TurnKey, tuple[float, float]]:
    """When each turn that was traced began and ended, by session and id."""
    traced: dict[TurnKey, list[TraceRecord]] = {}
    for record in records:
        if record.turn:
            traced.setdefault((record.session, record.turn), []).append(record)
    noted: dict[TurnKey, list[Entry]] = {}
    for session in sorted({session for session, _ in traced}):
        for entry in await tape.entries(session, kinds=["turn"]):
            if entry.time >= since:
                noted.setdefault((session, str(entry.payload.get("turn_id"))), []).append(entry)
    return {key: interval(noted.get(key, ()), own) for key, own in traced.items()}


def slowest(records: Iterable[TraceRecord], count: int = 10) -> list[TraceRecord]:
    """The dispatches that took longest."""
    found = (record for record in records if record.kind == "hook")
    return sorted(found, key=lambda record: -record.duration)[:count]
