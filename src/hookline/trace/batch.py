"""Batches: what waits, made into chunks of rows. Texts are put together, not encoded a second time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from hookline.catalog.place import Place
from hookline.hooks import Decision, Implementation, Verdict
from hookline.hooks.errors import error_text
from hookline.hooks.trace import Recorder

from .record import Kind, TraceRecord, span_id
from .rows import VERSION, record_of
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
Dispatched = tuple[
    Recorder, float, str | None, Verdict[Any] | None, BaseException | None, dict[int, Said] | None
]
"""One dispatch: its end, JSON texts of what may change later, the rest as it is. A plain tuple, since
there are many."""


class Span:
    """A turn, a model turn or a tool call, while it is open and until it is kept."""

    __slots__ = ("ended", "error", "id", "kind", "name", "payload", "place", "started")

    def __init__(self, id: str, kind: Kind, name: str, place: Place, started: float) -> None:  # noqa: A002
        self.id = id
        self.kind = kind
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


Waiting = tuple[Dispatched | Span, Any, Place | None]
"""What was taken, the scope key, and where it was made."""


def chunks_of(tracer: Tracer, waiting: Iterable[Waiting], redact: Redact | None) -> list[Chunk]:
    """What waits, as chunks: one for each session."""
    batches: dict[str, Batch] = {}
    fired: dict[str, tuple[int, float]] = {}
    none = (0, 0.0)
    for taken, key, place in waiting:
        if place is not None and (not key or key == place.session_id):
            session = place.session_id
        else:
            session, place = "" if key is None else str(key), None
        batch = batches.get(session)
        if batch is None:
            batch = batches[session] = Batch(tracer, session, redact)
        batch.add(taken, place)
        if isinstance(taken, tuple):
            name = taken[0].watched.spec.name
            fired[name] = (fired.get(name, none)[0] + 1, taken[0].started)
    chunks = [batch.chunk() for batch in batches.values()]
    if chunks:
        chunks[0].fired = {name: (n, tracer.epoch + last) for name, (n, last) in fired.items()}
    return chunks


class Batch:
    """The rows of one session that are kept together, and the tables that they refer to."""

    __slots__ = (
        "_at", "_begun", "_handlers", "_last", "_place", "_places", "_redact", "_rows", "_session",
        "_tracer", "_written",
    )  # fmt: skip

    def __init__(self, tracer: Tracer, session: str, redact: Redact | None = None) -> None:
        self._tracer = tracer
        self._session = session
        self._redact = redact
        self._rows: list[str] = []
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
            self._rows.append(self._span(taken))
        else:
            started = taken[0].started
            self._rows.append(self._dispatch(taken))
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
                parts.append(f"[{known},{after},{took},{self._said(said[number])}]")
        outcome = "null,null,null"
        if verdict is not None or error is not None:
            decision = "null" if verdict is None else DECISION_NAMES[verdict.decision]
            reason = "null" if verdict is None else self._told(verdict.reason)
            failed = "null" if error is None else self._told(error_text(error))
            outcome = f"{decision},{reason},{failed}"
        mark = ""
        if payload is None:
            payload = "null"
        elif not tracer.full:
            payload, mark = "null", f',"{digest(payload)}"'
        elif self._redact is not None:
            payload = self._redacted(payload)
        return (
            f'["hook",{tracer.next_number()},{tracer.quoted(recorder.watched.spec.name)},{self._at},'
            f"{int(started * 1e9)},{int((ended - started) * 1e9)},{outcome},{payload},"
            f"[{','.join(parts)}]{mark}]"
        )

    def _span(self, span: Span) -> str:
        """A span as a row."""
        payload = "null" if span.payload is None else self._redacted(encode(span.payload))
        started, lasted = int(span.started * 1e9), int((span.ended - span.started) * 1e9)
        return (
            f'["{span.kind}",0,{encode(span.name)},{self._at},{started},{lasted},null,null,'
            f"{self._told(span.error or None)},{payload}]"
        )

    def _said(self, said: Said) -> str:
        did, reason, failed, changes, returned = said
        why, failure = self._told(reason), self._told(failed)
        return f'"{did}",{why},{failure},{self._redacted(changes)},{self._redacted(returned)}'

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

    def _told(self, text: str | None) -> str:
        """A text as JSON, redacted."""
        if text is None:
            return "null"
        if self._redact is not None:
            try:
                text = str(self._redact(text))
            except Exception:
                text = WITHHELD
        return encode(text)

    def _redacted(self, text: str | None) -> str:
        """A JSON text as it is kept; one that cannot be redacted is not."""
        if text is None:
            return "null"
        if self._redact is None:
            return text
        try:
            return encode(self._redact(json.loads(text)))
        except Exception:
            return encode(WITHHELD)

    def body(self) -> str:
        """The batch as it is written."""
        tracer = self._tracer
        places = ",".join(
            f"[{encode(turn)},{'null' if step is None else step},{encode(call)}]"
            for turn, step, call in self._places
        )
        return (
            f'{{"v":{VERSION},"p":"{tracer.prefix}","s":{encode(self._session)},"t":{tracer.epoch!r},'
            f'"h":[{",".join(self._written)}],"w":[{places}],"r":[{",".join(self._rows)}]}}'
        )

    def chunk(self) -> Chunk:
        """The batch, to be kept."""
        epoch = self._tracer.epoch
        begun, last = epoch + self._begun, epoch + self._last
        return Chunk(self._session, begun, last, len(self._rows), self.body())

    def record(self) -> TraceRecord:
        """The one row of the batch, as it will be read."""
        chunk = json.loads(self.body())
        return record_of(chunk["r"][0], chunk)


NOWHERE: tuple[str, int | None, str] = ("", None, "")
