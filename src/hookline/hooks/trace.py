"""The trace: what one dispatch did, implementation by implementation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import HookTimeout, NotAwaited
from .verdict import Decision, Verdict

if TYPE_CHECKING:
    from .implementation import Implementation
    from .spec import HookSpec

log = logging.getLogger("hookline.hooks")

Did = Literal["value", "none", "raised", "timed out", "denied", "asked", "rewrote", "skipped"]


@dataclass(slots=True)
class Call:
    """One implementation's part in a dispatch."""

    by: str
    started: float
    duration: float
    did: Did
    fields: tuple[str, ...] = ()
    """The event's fields that it changed."""
    error: BaseException | None = None
    value: Any = None
    """What it returned, where that is no ruling."""
    ruling: int | None = None
    """Which ruling of the verdict's trail is its own."""
    implementation: Implementation | None = field(default=None, repr=False)


@dataclass(slots=True)
class Dispatch:
    """One call of one hook; times are in seconds of `time.perf_counter`."""

    hook: str
    key: Any
    """The scope key it ran under."""
    arguments: dict[str, Any]
    started: float
    duration: float = 0.0
    calls: list[Call] = field(default_factory=list[Call])
    value: Any = None
    """The reduced value."""
    error: BaseException | None = None


Sink = Callable[[Dispatch], Any]
Chosen = Callable[["HookSpec", "Sequence[Implementation]"], bool]
"""Whether dispatches of a hook with these attached are of interest; asked when they are compiled."""


class Watch(NamedTuple):
    """A sink for some hooks: where it does not look, nothing is compiled for it."""

    sink: Sink
    chosen: Chosen


class Recorder:
    """Collects the calls of one dispatch and hands the record to the sinks."""

    __slots__ = ("_chained", "_record", "_sinks", "_withholds")

    def __init__(self, spec: HookSpec, key: Any, arguments: dict[str, Any], sinks: tuple[Sink, ...]):
        self._sinks = sinks
        self._chained = spec.reducer.name == "chain"
        self._withholds = spec.withholds
        self._record = Dispatch(spec.name, key, arguments, perf_counter())

    def returned(self, impl: Implementation, started: float, value: Any) -> None:
        """An implementation came back."""
        did: Did = "none" if value is None else "rewrote" if self._chained else "value"
        self._add(impl, started, did, value=value)

    def ruled(self, impl: Implementation, started: float, verdict: Verdict[Any]) -> None:
        """An implementation's result was folded into the verdict."""
        ruling = verdict.trail[-1]
        changed = tuple(ruling.changes or ())
        did: Did = "rewrote" if changed else "value"
        if ruling.decision is not Decision.ALLOW:
            did = "denied" if ruling.decision is Decision.DENY else "asked"
        self._add(impl, started, did, changed, ruling=len(verdict.trail) - 1)

    def failed(self, impl: Implementation, started: float, error: BaseException) -> None:
        """An implementation raised, or what it returned could not be used."""
        did: Did = "raised"
        if isinstance(error, HookTimeout):
            did = "timed out"
        elif isinstance(error, NotAwaited):
            did = "skipped"
        self._add(impl, started, did, error=error)

    def done(self, value: Any = None, error: BaseException | None = None) -> None:
        """The dispatch is over; a sink that raises is logged."""
        record = self._record
        record.duration = perf_counter() - record.started
        record.value, record.error = value, error
        if self._withholds and isinstance(value, Verdict):
            record.arguments["event"] = value.event  # pyright: ignore[reportUnknownMemberType]
        for sink in self._sinks:
            try:
                sink(record)
            except Exception:
                log.exception("hook.trace_failed hook=%s sink=%r", record.hook, sink)

    def _add(
        self,
        impl: Implementation,
        started: float,
        did: Did,
        fields: tuple[str, ...] = (),
        error: BaseException | None = None,
        value: Any = None,
        ruling: int | None = None,
    ) -> None:
        duration = perf_counter() - started
        self._record.calls.append(
            Call(impl.name, started, duration, did, fields, error, value, ruling, impl)
        )
