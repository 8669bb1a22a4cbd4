"""Batches: what was taken of dispatches, made into chunks of rows when it is kept.

What may change after a dispatch is text when it is taken. All else, who was called and when, waits
as it is and becomes text here, for many dispatches in one go: that takes a fraction of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hookline.system.log_redaction import WITHHELD
from hookline.turn_context import TurnContext

from .capture import Taken
from .record import TraceRecord
from .rows import records_of, words_in
from .shapes import Casting, PayloadShape
from .snapshot import encode
from .store import Chunk

if TYPE_CHECKING:
    from .tracer import Tracer

Redact = Callable[[Any], Any]
NOWHERE: Final = ("", None, "")


class StartedModelCall(NamedTuple):
    """A model turn that began: what the tape does not say of it."""

    place: TurnContext
    started: float
    agent: str
    model: str


class Batch:
    """What is kept of one session at once, and the tables that its rows refer to."""

    __slots__ = ("castings", "places", "rows", "said", "session", "turns")

    def __init__(self, session: str) -> None:
        self.session = session
        self.rows: list[list[Any]] = []
        self.said: list[bytes] = []
        self.turns: list[tuple[int, float, str, str]] = []
        self.castings: dict[Casting, int] = {}
        self.places: dict[TurnContext | None, int] = {}

    def chunk(self, tracer: Tracer) -> Chunk:
        """The batch as it is written."""
        rows, epoch = self.rows, tracer.epoch
        places = [(p.turn_id, p.step, p.call_id) if p is not None else NOWHERE for p in self.places]
        times = [row[3] for row in rows]
        times += [turn[1] for turn in self.turns]
        texts = (
            tracer.head,
            b',"d":',
            encode((tracer.numbers(len(rows)), self.session, places, self.turns, rows)),
            b',"n":[',
            b",".join([casting.written for casting in self.castings]),
            b'],"x":[',
            b",".join(self.said),
            b"]}",
        )
        begun, last = epoch + min(times), epoch + max(times)
        return Chunk(self.session, begun, last, len(times), b"".join(texts).decode(), {})


class Batches:
    """What is kept at once, by session."""

    __slots__ = ("by_session", "counts", "last")

    def __init__(self) -> None:
        self.by_session: dict[str, Batch] = {}
        self.counts: dict[Casting, int] = {}
        self.last: dict[Casting, float] = {}

    def of(self, session: str) -> Batch:
        """The batch of a session."""
        return self.by_session.get(session) or self.by_session.setdefault(session, Batch(session))

    def add(self, taken: Iterable[Taken], redact: Redact | None) -> None:
        """Sort in what was taken: one loop for all of it, with as few calls in it as can be."""
        counts, last = self.counts, self.last
        batch = Batch("")
        castings, rows, said = batch.castings, batch.rows, batch.said
        place: object = batch  # none that anything was at
        session, at = "", 0
        for row, key, text in taken:
            casting, where = row[0], row[1]
            if where is not place or (key and key != session):
                if where is not None and (not key or key == where.session_id):
                    session, place = where.session_id, where
                else:  # it is another session's, or outside of a turn: the next is looked at anew
                    session, place, where = "" if key is None else str(key), batch, None
                batch = self.of(session)
                castings, rows, said, places = batch.castings, batch.rows, batch.said, batch.places
                at = places.setdefault(where, len(places))
            counts[casting] = counts.get(casting, 0) + 1
            last[casting] = row[3]
            row[0] = castings.setdefault(casting, len(castings))
            row[1] = at
            rows.append(row)
            said.append(text if redact is None else redacted_text(text, casting.shape, redact))

    def add_turns(self, turns: Iterable[StartedModelCall]) -> None:
        """Sort in the beginnings of model turns."""
        for turn in turns:
            batch = self.of(turn.place.session_id)
            at = batch.places.setdefault(turn.place, len(batch.places))
            batch.turns.append((at, turn.started, turn.model, turn.agent))

    def fired(self, epoch: float) -> dict[str, tuple[int, float]]:
        """How often each hook was called, and when last."""
        fired: dict[str, tuple[int, float]] = {}
        for casting, count in self.counts.items():
            hook, last = casting.shape.hook, epoch + self.last[casting]
            before, latest = fired.get(hook, (0, last))
            fired[hook] = (before + count, max(latest, last))
        return fired


def chunks_of(
    tracer: Tracer,
    taken: Iterable[Taken],
    turns: Iterable[StartedModelCall] = (),
    redact: Redact | None = None,
) -> list[Chunk]:
    """What was taken as it is kept, without what must not be; what fired is told with the first."""
    batches = Batches()
    batches.add(taken, redact)
    batches.add_turns(turns)
    chunks = [batch.chunk(tracer) for batch in batches.by_session.values()]
    if chunks:
        chunks[0].fired = batches.fired(tracer.epoch)
    return chunks


def record_taken(tracer: Tracer, taken: Taken) -> TraceRecord:
    """One dispatch as it will be read."""
    row, key, text = taken
    (chunk,) = chunks_of(tracer, [([*row], key, text)])
    return records_of(chunk.body)[0][0]


def redacted_text(text: bytes, shape: PayloadShape, redact: Redact) -> bytes:
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
