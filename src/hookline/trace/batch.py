"""Batches: what was taken of dispatches, made into chunks of rows when it is kept.

What may change after a dispatch is text when it is taken. All else, who was called and when, waits
as it is and becomes text here, for many dispatches in one go: that takes a fraction of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hookline.catalog.place import Place
from hookline.hooks import Decision, Implementation

from .record import TraceRecord
from .rows import SAID, WHY, records_of
from .shapes import Shape
from .snapshot import encode
from .store import Chunk

if TYPE_CHECKING:
    from .tracer import Tracer

Redact = Callable[[Any], Any]
WITHHELD: Final = "[withheld: it could not be redacted]"
NOWHERE: Final = ("", None, "")
OWN: Final = -1
"""Stands for a handler that is a part of the trace itself."""

Times = tuple[Implementation, float, float]
"""Who was called, from when to when, in seconds of `perf_counter`."""
Dispatched = tuple[Shape, Any, Place | None, float, float, list[Times], Decision | None, str]
"""One dispatch as it was taken; a plain tuple, since one is made for each.

What was called, its scope key, where it was, from when to when, who was called, what was decided, and
what was said, as `rows` has it.
"""


class ModelTurn(NamedTuple):
    """A model turn that began: what the tape does not say of it."""

    place: Place
    started: float
    agent: str
    model: str


class Batch:
    """What is kept of one session at once, and the tables that its rows refer to."""

    __slots__ = (
        "_handlers", "_places", "_shapes", "_tracer", "_written", "dispatches", "session", "turns",
    )  # fmt: skip

    def __init__(self, tracer: Tracer, session: str) -> None:
        self._tracer = tracer
        self.session = session
        self.dispatches: list[tuple[Dispatched, Place | None]] = []
        self.turns: list[ModelTurn] = []
        self._shapes: dict[Shape, int] = {}
        self._handlers: dict[Implementation, int] = {}
        self._written: list[str] = []
        self._places: dict[tuple[str, int | None, str], int] = {}

    def chunk(self, redact: Redact | None = None) -> Chunk:
        """The batch as it is written."""
        epoch = self._tracer.epoch
        fired: dict[str, tuple[int, float]] = {}
        rows = self._rows(fired)
        said = [taken[7] for taken, _ in self.dispatches]
        if redact is not None:
            said = [redacted_text(taken[7], taken[0], redact) for taken, _ in self.dispatches]
        times = [taken[3] for taken, _ in self.dispatches] + [turn.started for turn in self.turns]
        begun, last, count = epoch + min(times), epoch + max(times), len(times)
        return Chunk(self.session, begun, last, count, self._body(rows, said), fired)

    def _rows(self, fired: dict[str, tuple[int, float]]) -> list[list[Any]]:
        """Dispatches as rows: one loop for all of them, with as few calls in it as can be."""
        epoch, shapes, handlers = self._tracer.epoch, self._shapes, self._handlers
        rows: list[list[Any]] = []
        last: Place | None = None
        at = -1
        for (shape, _, _, started, ended, times, decision, _), place in self.dispatches:
            known = shapes.get(shape)
            if known is None:
                known = shapes[shape] = len(shapes)
            hook = shape.hook
            fired[hook] = (fired[hook][0] + 1 if hook in fired else 1, epoch + started)
            if place is not last or at < 0:
                last, at = place, self._place(place)
            row = [known, at, int(started * 1e9), int((ended - started) * 1e9), decision]
            for impl, begun, over in times:
                known = handlers.get(impl)
                if known is None:
                    known = self._handler(impl)
                row += (known, int((begun - started) * 1e9), int((over - begun) * 1e9))
            rows.append(row)
        return rows

    def _handler(self, impl: Implementation) -> int:
        """The number of a handler that is new in this batch."""
        written = self._tracer.written(impl)
        if written is None:
            number = OWN
        else:
            number = len(self._written)
            self._written.append(written)
        self._handlers[impl] = number
        return number

    def _place(self, place: Place | None) -> int:
        at = NOWHERE if place is None else (place.turn_id, place.step, place.call_id)
        return self._places.setdefault(at, len(self._places))

    def _body(self, rows: list[list[Any]], said: list[str]) -> str:
        tracer = self._tracer
        turns = [
            (self._place(turn.place), int(turn.started * 1e9), turn.model, turn.agent)
            for turn in self.turns
        ]
        tables = (tracer.numbers(len(rows)), self.session, [*self._places], turns, rows)
        return (
            f'{tracer.head},"d":{encode(tables)},'
            f'"n":[{",".join(shape.written for shape in self._shapes)}],'
            f'"h":[{",".join(self._written)}],"x":[{",".join(said)}]}}'
        )


def batches_of(
    tracer: Tracer, dispatches: Iterable[Dispatched], turns: Iterable[ModelTurn]
) -> list[Batch]:
    """What was taken, by session."""
    batches: dict[str, Batch] = {}
    for taken in dispatches:
        session, place = session_at(taken[1], taken[2])
        batch = batches.get(session)
        if batch is None:
            batch = batches[session] = Batch(tracer, session)
        batch.dispatches.append((taken, place))
    for turn in turns:
        session = turn.place.session_id
        if session not in batches:
            batches[session] = Batch(tracer, session)
        batches[session].turns.append(turn)
    return list(batches.values())


def chunks_of(
    tracer: Tracer,
    dispatches: Iterable[Dispatched],
    turns: Iterable[ModelTurn] = (),
    redact: Redact | None = None,
) -> list[Chunk]:
    """What was taken as it is kept, without what must not be."""
    return [batch.chunk(redact) for batch in batches_of(tracer, dispatches, turns)]


def record_taken(tracer: Tracer, taken: Dispatched) -> TraceRecord:
    """One dispatch as it will be read."""
    (chunk,) = chunks_of(tracer, [taken])
    return records_of(chunk.body)[0][0]


def session_at(key: Any, place: Place | None) -> tuple[str, Place | None]:
    """Where something belongs, by its hook's scope key or else by where it was made."""
    if place is None:
        return "" if key is None else str(key), None
    if not key or key == place.session_id:
        return place.session_id, place
    return str(key), None


def redacted_text(text: str, shape: Shape, redact: Redact) -> str:
    """The same without what must not be kept; what cannot be redacted is withheld."""
    said: list[Any] = json.loads(text)
    if isinstance(said[0], list):  # a redactor may go by names
        said[0] = dict(zip(shape.names, cast("list[Any]", said[0]), strict=True))
    about = [redacted(each, redact) for each in said[:SAID]]
    parts = [[*part[:WHY], *(redacted(each, redact) for each in part[WHY:])] for part in said[SAID:]]
    return encode([*about, *parts])


def redacted(value: Any, redact: Redact) -> Any:
    """A value as it is kept."""
    try:
        return None if value is None else redact(value)
    except Exception:
        return WITHHELD
