"""Batches: rows of one session that wait to be kept together.

A row becomes text at once, while all that it is made of is at hand; so nothing of a turn is held, and
what changes later does not matter. A chunk is these texts, put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hookline.catalog.place import Place
from hookline.hooks import Decision, Implementation, Verdict
from hookline.hooks.errors import error_text
from hookline.hooks.trace import Recorder

from .record import SpanKind, TraceRecord, span_id
from .rows import (
    CHANGES,
    DID,
    ERROR,
    FAILED,
    HANDLERS,
    PAYLOAD,
    REASON,
    RETURNED,
    VERSION,
    WHY,
    Row,
    record_of,
)
from .snapshot import digest, encode
from .store import Chunk

if TYPE_CHECKING:
    from .tracer import Tracer

Redact = Callable[[Any], Any]
WITHHELD: Final = "[withheld: it could not be redacted]"
DECISION_NAMES: Final = {decision: f'"{decision.name.lower()}"' for decision in Decision}
OWN: Final = -1
"""Stands for a handler that is a part of the trace itself."""
KNOWN: Final = 10_000
"""Handlers of which the place is remembered."""

Said = tuple[str, str | None, str | None, str | None, str | None]
"""Of a handler that said something: did, reason, error; changes and what it returned, as JSON texts."""


class Span:
    """A turn, a model turn or a tool call, while it is open and until it is kept."""

    __slots__ = ("ended", "error", "id", "kind", "name", "payload", "place", "started")

    def __init__(self, id: str, kind: SpanKind, name: str, place: Place, started: float) -> None:  # noqa: A002
        self.id = id
        self.kind: SpanKind = kind
        self.name = name
        self.place = place
        self.started = self.ended = started
        """In seconds of `perf_counter`, as dispatches have it."""
        self.error = ""
        self.payload: Any = None

    def record(self, epoch: float) -> TraceRecord:
        """The span as whoever listens is told of it."""
        place = self.place
        step = place.step if self.kind == "tool" else None
        return TraceRecord(
            self.id,
            self.kind,
            self.name,
            place.session_id,
            place.turn_id,
            place.step,
            place.call_id,
            parent="" if self.kind == "turn" else span_id(place.turn_id, step),
            time=epoch + self.started,
            duration=self.ended - self.started,
            error=self.error,
            payload=self.payload,
        )


class Dispatched(NamedTuple):
    """One dispatch as it was taken."""

    recorder: Recorder
    ended: float
    payload: str | None
    """As JSON text."""
    verdict: Verdict[Any] | None
    error: BaseException | None
    said: dict[int, Said] | None


class Batch:
    """The rows of one session that are kept together, and the tables that they refer to."""

    __slots__ = (
        "_at", "_begun", "_handlers", "_last", "_place", "_places", "_session", "_tracer", "_written",
        "fired", "rows",
    )  # fmt: skip

    def __init__(self, tracer: Tracer, session: str) -> None:
        self._tracer = tracer
        self._session = session
        self.rows: list[str] = []
        self.fired: dict[str, tuple[int, float]] = {}
        self._handlers: dict[Implementation, int] = {}
        self._written: list[str] = []
        self._places: dict[tuple[str, int | None, str], int] = {}
        self._place: Place | None = None
        self._at = -1
        """The number of the place of the last row."""
        self._begun = self._last = 0.0

    def add(self, taken: Dispatched | Span, place: Place | None) -> None:
        """Add what was taken."""
        if place is not self._place or self._at < 0:
            self._place, self._at = place, self._number(place)
        if isinstance(taken, Span):
            started = taken.started
            self.rows.append(self._span(taken))
        else:
            started = taken.recorder.started
            self.rows.append(self._dispatch(taken))
        if started > self._last:
            self._last = started
        if started < self._begun or not self._begun:
            self._begun = started

    def _dispatch(self, taken: Dispatched) -> str:
        """A dispatch as a row."""
        recorder, ended, payload, verdict, error, said = taken
        tracer, started, handlers = self._tracer, recorder.started, self._handlers
        parts: list[str] = []
        for number, (impl, begun, over, _, _, _) in enumerate(recorder.notes):
            known = handlers.get(impl)
            if known is None:
                known = self._known(impl)
            if known == OWN:
                continue
            after, took = int((begun - started) * 1e9), int((over - begun) * 1e9)
            if said is None or number not in said:
                parts.append(f"[{known},{after},{took}]")
            else:
                did, reason, failed, changes, returned = said[number]
                parts.append(
                    f'[{known},{after},{took},"{did}",{text_or_null(reason)},{text_or_null(failed)},'
                    f"{changes or 'null'},{returned or 'null'}]"
                )
        outcome = "null,null,null"
        if verdict is not None or error is not None:
            decision = "null" if verdict is None else DECISION_NAMES[verdict.decision]
            reason = "null" if verdict is None else text_or_null(verdict.reason)
            failed = "null" if error is None else encode(error_text(error))
            outcome = f"{decision},{reason},{failed}"
        mark = ""
        if payload is None:
            payload = "null"
        elif not tracer.full:
            payload, mark = "null", f',"{digest(payload)}"'
        name = recorder.watched.spec.name
        before = self.fired.get(name)
        self.fired[name] = (before[0] + 1 if before else 1, started)
        return (
            f'["hook",{tracer.next_number()},{tracer.quoted(name)},{self._at},'
            f"{int(started * 1e9)},{int((ended - started) * 1e9)},{outcome},{payload},"
            f"[{','.join(parts)}]{mark}]"
        )

    def _span(self, span: Span) -> str:
        """A span as a row."""
        payload = "null" if span.payload is None else encode(span.payload)
        started, lasted = int(span.started * 1e9), int((span.ended - span.started) * 1e9)
        return (
            f'["{span.kind}",0,{encode(span.name)},{self._at},{started},{lasted},null,null,'
            f"{text_or_null(span.error or None)},{payload}]"
        )

    def _known(self, impl: Implementation) -> int:
        """The number of a handler that is new in this batch."""
        tracer = self._tracer
        if tracer.is_own(impl):
            number = OWN
        else:
            number = len(self._written)
            self._written.append(tracer.written(impl))
        self._handlers[impl] = number
        return number

    def _number(self, place: Place | None) -> int:
        at = NOWHERE if place is None else (place.turn_id, place.step, place.call_id)
        number = self._places.get(at)
        if number is None:
            number = self._places[at] = len(self._places)
        return number

    def redact(self, redact: Redact) -> None:
        """Take out of the rows what must not be kept."""
        self.rows = [encode(redacted_row(json.loads(row), redact)) for row in self.rows]

    def drop_older(self) -> int:
        """Forget the older half of the rows, and say how many that were."""
        count = (len(self.rows) + 1) // 2
        del self.rows[:count]
        return count

    def body(self) -> str:
        """The batch as it is written."""
        tracer = self._tracer
        places = ",".join(
            f"[{encode(turn)},{'null' if step is None else step},{encode(call)}]"
            for turn, step, call in self._places
        )
        return (
            f'{{"v":{VERSION},"p":"{tracer.prefix}","s":{encode(self._session)},"t":{tracer.epoch!r},'
            f'"h":[{",".join(self._written)}],"w":[{places}],"r":[{",".join(self.rows)}]}}'
        )

    def chunk(self) -> Chunk:
        """The batch, to be kept."""
        epoch = self._tracer.epoch
        begun, last = epoch + self._begun, epoch + self._last
        fired = {name: (count, epoch + at) for name, (count, at) in self.fired.items()}
        return Chunk(self._session, begun, last, len(self.rows), self.body(), fired)

    def record(self) -> TraceRecord:
        """The one row of the batch, as it will be read."""
        chunk = json.loads(self.body())
        return record_of(chunk["r"][0], chunk)


NOWHERE: tuple[str, int | None, str] = ("", None, "")


def text_or_null(text: str | None) -> str:
    """A text as JSON."""
    return "null" if text is None else encode(text)


def redacted_row(row: Row, redact: Redact) -> Row:
    """The same row; what cannot be redacted is withheld."""
    for at in (REASON, ERROR, PAYLOAD):
        row[at] = redacted(row[at], redact)
    for part in row[HANDLERS] if len(row) > HANDLERS else ():
        for at in (WHY, FAILED, CHANGES, RETURNED) if len(part) > DID else ():
            part[at] = redacted(part[at], redact)
    return row


def redacted(value: Any, redact: Redact) -> Any:
    """A value as it is kept."""
    try:
        return None if value is None else redact(value)
    except Exception:
        return WITHHELD
