"""Statistics: how often hooks and plugins ran, how long they took, how often they failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from hookline.tape import TapeStore

from .record import TraceRecord
from .store import TraceStore

Sample = tuple[float, bool, bool]
"""How long it took, whether it failed, whether it was in a turn."""


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
    """Of the time that turns took; None where that is not known."""


@dataclass(slots=True)
class Stats:
    """What was measured."""

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
    """Measure what was traced, in one session or all, from a time on; the slowest first."""
    trace = await traces.read(session, since=since)
    dispatches = [record for record in trace.records if record.kind == "hook"]
    spans = await turn_spans(tape, trace.records, since)
    seconds = sum(end - start for start, end in spans.values())
    hooks: dict[str, list[Sample]] = {}
    plugins: dict[str, list[Sample]] = {}
    for record in dispatches:
        failed = any(h.did in ("raised", "timed out") for h in record.handlers)
        within = (record.session, record.turn) in spans
        sample = (record.duration, failed or bool(record.error), within)
        hooks.setdefault(record.name, []).append(sample)
        for handler in record.handlers:
            failed = handler.did in ("raised", "timed out")
            plugins.setdefault(handler.by, []).append((handler.duration, failed, within))
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
        times = sorted(time for time, _, _ in calls)
        total = sum(times)
        share = sum(t for t, _, within in calls if within) / seconds if seconds > 0 else None
        errors = sum(failed for _, failed, _ in calls)
        p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
        found.append(Measured(name, len(calls), p50, p95, total, errors, share))
    return sorted(found, key=lambda each: (-each.total, each.name))


def percentile(ordered: list[float], share: float) -> float:
    """The value that so many of these do not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


async def turn_spans(
    tape: TapeStore, records: Iterable[TraceRecord], since: float
) -> dict[tuple[str, str], tuple[float, float]]:
    """When each turn began and ended, by session and id: what tape and trace have of it together."""
    spans: dict[tuple[str, str], tuple[float, float]] = {}

    def widen(session: str, turn: str, start: float, end: float) -> None:
        before = spans.get((session, turn), (start, end))
        spans[session, turn] = (min(start, before[0]), max(end, before[1]))

    for record in records:
        if record.turn:
            widen(record.session, record.turn, record.time, record.time + record.duration)
    for session in sorted({session for session, _ in spans}):
        for entry in await tape.entries(session, kinds=["turn"]):
            turn = str(entry.payload.get("turn_id"))
            if (session, turn) in spans and entry.time >= since:
                widen(session, turn, entry.time, entry.time)
    return spans


def slowest(records: Iterable[TraceRecord], count: int = 10) -> list[TraceRecord]:
    """The dispatches that took longest."""
    found = (record for record in records if record.kind == "hook")
    return sorted(found, key=lambda record: -record.duration)[:count]
