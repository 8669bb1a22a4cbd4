"""Batches: what was taken of dispatches, made into chunks of rows when it is kept.

What may change after a dispatch is text when it is taken. All else, who was called and when, waits
as it is and becomes text here, for many dispatches in one go: that takes a fraction of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hookline.catalog.place import Place

from .record import TraceRecord
from .rows import records_of, words_in
from .shapes import Casting, Shape
from .snapshot import encode, encode_data
from .store import Chunk

if TYPE_CHECKING:
    from .tracer import Tracer

Redact = Callable[[Any], Any]
WITHHELD: Final = "[withheld: it could not be redacted]"
NOWHERE: Final = ("", None, "")

Times = tuple[float, ...]
"""From when to when each handler ran, in seconds of `perf_counter`; empty where one ran throughout."""
Dispatched = tuple[Casting, Any, Place | None, int | None, float, float, Times, str]
"""One dispatch as it was taken; a plain tuple, since one is made for each.

What was called, its scope key, where it was, what was decided, from when to when it ran, when its
handlers did, and what was said, as `rows` has it.
"""


class ModelTurn(NamedTuple):
    """A model turn that began: what the tape does not say of it."""

    place: Place
    started: float
    agent: str
    model: str


class Batch:
    """What is kept of one session at once, and the tables that its rows refer to."""

    __slots__ = ("castings", "places", "rows", "said", "session", "turns")

    def __init__(self, session: str) -> None:
        self.session = session
        self.rows: list[tuple[Any, ...]] = []
        self.said: list[str] = []
        self.turns: list[tuple[int, float, str, str]] = []
        self.castings: dict[Casting, int] = {}
        self.places: dict[tuple[str, int | None, str], int] = {}

    def at(self, place: Place | None) -> int:
        """The number of a place."""
        known = NOWHERE if place is None else (place.turn_id, place.step, place.call_id)
        return self.places.setdefault(known, len(self.places))

    def chunk(self, tracer: Tracer) -> Chunk:
        """The batch as it is written."""
        rows, epoch = self.rows, tracer.epoch
        times = [row[3] for row in rows] + [turn[1] for turn in self.turns]
        tables = (tracer.numbers(len(rows)), self.session, [*self.places], self.turns, rows)
        body = (
            f'{tracer.head},"d":{encode_data(tables)},'
            f'"n":[{",".join([casting.written for casting in self.castings])}],'
            f'"x":[{",".join(self.said)}]}}'
        )
        begun, last = epoch + min(times), epoch + max(times)
        return Chunk(self.session, begun, last, len(times), body, self._fired(epoch))

    def _fired(self, epoch: float) -> dict[str, tuple[int, float]]:
        """How often each hook was called, and when last."""
        hooks = [casting.shape.hook for casting in self.castings]
        fired: dict[str, tuple[int, float]] = {}
        for row in self.rows:
            number: int = row[0]
            hook = hooks[number]
            fired[hook] = (fired[hook][0] + 1 if hook in fired else 1, epoch + row[3])
        return fired


def batches_of(
    dispatches: Iterable[Dispatched], turns: Iterable[ModelTurn], redact: Redact | None
) -> list[Batch]:
    """What was taken, by session: one loop for all of it, with as few calls in it as can be."""
    batches: dict[str, Batch] = {}
    batch = Batch("")
    castings, rows, said = batch.castings, batch.rows, batch.said
    key = place = None
    at = -1
    for casting, own, where, decision, started, ended, times, text in dispatches:
        if at < 0 or where is not place or own != key:
            key, place = own, where
            session, known = session_at(own, where)
            batch = batches.get(session) or batches.setdefault(session, Batch(session))
            at = batch.at(known)
            castings, rows, said = batch.castings, batch.rows, batch.said
        number = castings.get(casting)
        if number is None:
            number = castings[casting] = len(castings)
        rows.append((number, at, decision, started, ended, *times))
        said.append(text if redact is None else redacted_text(text, casting.shape, redact))
    for turn in turns:
        session = turn.place.session_id
        batch = batches.get(session) or batches.setdefault(session, Batch(session))
        batch.turns.append((batch.at(turn.place), turn.started, turn.model, turn.agent))
    return list(batches.values())


def chunks_of(
    tracer: Tracer,
    dispatches: Iterable[Dispatched],
    turns: Iterable[ModelTurn] = (),
    redact: Redact | None = None,
) -> list[Chunk]:
    """What was taken as it is kept, without what must not be."""
    return [batch.chunk(tracer) for batch in batches_of(dispatches, turns, redact)]


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
    payload, *rest = cast("list[Any]", json.loads(text))
    if isinstance(payload, list):  # a redactor may go by names
        payload = dict(zip(shape.names, cast("list[Any]", payload), strict=True))
    parts: list[list[Any]] = rest[0] if rest else []
    for part in parts:
        words = words_in(part)
        part[words] = [redacted(each, redact) for each in part[words]]
    about = [redacted(each, redact) for each in rest[1:]]
    return encode([redacted(payload, redact), parts, *about])


def redacted(value: Any, redact: Redact) -> Any:
    """A value as it is kept."""
    try:
        return None if value is None else redact(value)
    except Exception:
        return WITHHELD
