"""`Tracer`: takes what the kernel tells of dispatches while a turn runs, and keeps it when it rests.

What must be seen at once (the payload, what a handler changed) is written as text at once; all the rest
waits. Rows are kept in batches, at save points and in between, never while a hook waits for it. A store
that fails is logged, and the turn goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from time import perf_counter, time
from typing import Any, NamedTuple, Protocol

from hookline.catalog.place import Place, here
from hookline.hooks import Decision, HookSpec, Implementation, Ruling, Verdict
from hookline.hooks.errors import error_text
from hookline.hooks.reducers import DENY
from hookline.hooks.trace import Recorder, Watch, call_of
from hookline.tape import new_id

from .record import TraceRecord
from .rows import (
    CHANGES,
    ERROR,
    FAILED,
    HANDLERS,
    NAME,
    PAYLOAD,
    PLACE,
    REASON,
    RETURNED,
    STARTED,
    TOOK,
    VERSION,
    WHY,
    Row,
    record_of,
)
from .settings import TraceSettings
from .snapshot import digest, encode, payload_of, snapshot
from .store import Chunk, TraceStore

log = logging.getLogger("hookline.trace")

DECIDING = frozenset({"gate", "patch", "chain"})
PENDING = 10_000
"""Rows that wait to be kept; where nothing can be kept, the oldest of them go."""
SECONDS = 0.5
"""How long a row waits at most while the loop is free."""
WITHHELD = "[withheld: it could not be redacted]"

Redact = Callable[[Any], Any]


class Listener(Protocol):
    """Is told of spans and dispatches as they come, such as what sends them elsewhere."""

    def began(self, record: TraceRecord) -> None:
        """A turn, a model turn or a tool call began."""
        ...

    def ended(self, record: TraceRecord) -> None:
        """It is over."""
        ...

    def dispatched(self, record: TraceRecord) -> None:
        """A hook was called."""
        ...

    def left(self, session: str) -> None:
        """A session was closed."""
        ...


class Taken(NamedTuple):
    """One dispatch: texts of what may change later, the rest as it is."""

    recorder: Recorder
    ended: float
    payload: str | None
    verdict: Verdict[Any] | None
    error: BaseException | None
    said: dict[int, list[str | None]] | None


Waiting = tuple[Taken | Row, Any, Place | None]


class Tracer:
    """Keeps what the hooks of an app do."""

    def __init__(
        self,
        settings: TraceSettings,
        store: TraceStore | None,
        *,
        redact: Redact | None = None,
        listeners: Sequence[Listener] = (),
        own: Iterable[object] = (),
    ) -> None:
        self.settings = settings
        self.store = store
        self._redact = redact
        self._listeners = tuple(listeners)
        self._own = frozenset(map(id, own))
        """Plugins that are a part of the trace, and not traced themselves."""
        self.full = settings.level == "full"
        self._limit = settings.payload
        self._pending: deque[Waiting] = deque(maxlen=PENDING)
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._flushed = 0.0
        self.next_number = count(1).__next__
        self.prefix = new_id()
        self._places: dict[Implementation, str] = {}
        self.epoch = time() - perf_counter()
        """What makes a time of day of a time of `perf_counter`."""

    @property
    def watch(self) -> Watch:
        """What the tracer wants to see, for `hooks.watch`."""
        silent = self.settings.level != "decisions"
        return Watch(self.dispatched, self.chosen, silent=silent, raw=True)

    def chosen(self, spec: HookSpec, implementations: Sequence[Implementation]) -> bool:
        """Whether a hook is traced, with these attached; asked when it is compiled."""
        if all(id(impl.plugin) in self._own for impl in implementations):
            return False
        return self.settings.level != "decisions" or decides(spec)

    # --- taking -------------------------------------------------------------------------------

    def dispatched(self, recorder: Recorder, value: Any, error: BaseException | None) -> None:
        """Take one dispatch: texts of what may change, the rest as it is."""
        ended = perf_counter()
        payload = None
        arguments: dict[str, Any] | None = None
        if self.full or recorder.said:
            arguments = recorder.arguments(value)
            payload = snapshot(payload_of(arguments), self._limit)
        verdict: Verdict[Any] | None = value if isinstance(value, Verdict) else None  # pyright: ignore[reportUnknownVariableType]
        said = self._said(recorder, arguments or {}, verdict) if recorder.said else None
        taken = Taken(recorder, ended, payload, verdict, error, said)
        place = here()
        for listener in self._listeners:
            chunk = Batch(self, *session_at(recorder.key, place))
            listener.dispatched(record_of(chunk.row(taken, place), chunk.tables()))
        self.note(taken, recorder.key, place)

    def _said(
        self, recorder: Recorder, arguments: dict[str, Any], verdict: Verdict[Any] | None
    ) -> dict[int, list[str | None]]:
        """Of each handler that said something: did, reason, error, changes, returned."""
        reducer = recorder.spec.reducer
        chained = reducer.name == "chain"
        now: dict[str, Any] = {}
        said: dict[int, list[str | None]] = {}
        for number, note in enumerate(recorder.notes):
            _, _, _, value, what, at = note
            if what is None and value is None:
                continue
            reason = failed = changes = returned = None
            if isinstance(what, Ruling):
                ruling = verdict.trail[at] if verdict is not None else None  # as it was released
                reason = ruling.reason if ruling is not None else None
                if ruling is not None and ruling.changes:
                    event = arguments.get("event")
                    pairs = {
                        name: [now.get(name, getattr(event, name, None)), after]
                        for name, after in ruling.changes.items()
                    }
                    changes = snapshot(pairs, self._limit)
                    now.update(ruling.changes)
            elif what is not None:
                failed = error_text(what)
            elif chained:
                name = getattr(reducer, "parameter", "value")
                changes = snapshot({name: [now.get(name, arguments.get(name)), value]}, self._limit)
                now[name] = value
            elif self.full:
                returned = snapshot(value, self._limit)
            said[number] = [call_of(note, chained).did, reason, failed, changes, returned]
        return said

    def note(self, taken: Taken | Row, key: Any, place: Place | None) -> None:
        """Let it wait for the next time that rows are kept."""
        if self.store is None:
            return
        self._pending.append((taken, key, place))
        if self._timer is None:
            loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]  # None, not an error
            if loop is not None:
                self._timer = loop.call_later(SECONDS, self._due)

    def written(self, impl: Implementation) -> str:
        """Where an implementation is written."""
        place = self._places.get(impl)
        if place is None:
            if len(self._places) >= PENDING:
                self._places.clear()
            place = self._places[impl] = impl.location
        return place

    def is_own(self, impl: Implementation) -> bool:
        """Whether it is a part of the trace itself."""
        return id(impl.plugin) in self._own

    # --- keeping ------------------------------------------------------------------------------

    def _due(self) -> None:
        self._timer = None
        task = asyncio.get_running_loop().create_task(self.flush(), name="trace")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_due(self) -> bool:
        """Whether it is some time since rows were kept."""
        return perf_counter() - self._flushed > SECONDS

    async def flush(self) -> None:
        """Keep what waits."""
        async with self._writing:
            self._flushed = perf_counter()
            if not self._pending or self.store is None:
                return
            waiting = [*self._pending]
            self._pending.clear()
            try:
                if self._redact is None:
                    chunks = self._chunks(waiting)
                else:
                    chunks = await asyncio.to_thread(self._chunks, waiting)
                await self.store.write(chunks, self.settings)
            except Exception as error:
                log.warning("trace.failed records=%d lost: %s", len(waiting), error_text(error))

    async def close(self) -> None:
        """Keep what waits, and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.flush()

    def _chunks(self, waiting: list[Waiting]) -> list[Chunk]:
        batches: dict[str, Batch] = {}
        for taken, key, place in waiting:
            session, place = session_at(key, place)
            batch = batches.get(session)
            if batch is None:
                batch = batches[session] = Batch(self, session)
            batch.add(taken, place)
        if self._redact is not None:
            for batch in batches.values():
                for row in batch.rows:
                    self._redact_row(row)
        return [batch.chunk() for batch in batches.values()]

    def _redact_row(self, row: Row) -> None:
        for at in (REASON, ERROR):
            row[at] = self._told(row[at])
        row[PAYLOAD] = self._redacted(row[PAYLOAD])
        for part in row[HANDLERS] if len(row) > HANDLERS else ():
            if len(part) > TOOK + 1:
                part[WHY], part[FAILED] = self._told(part[WHY]), self._told(part[FAILED])
                part[CHANGES], part[RETURNED] = map(self._redacted, (part[CHANGES], part[RETURNED]))

    def _told(self, text: str | None) -> str | None:
        assert self._redact is not None
        try:
            return text and str(self._redact(text))
        except Exception:
            return WITHHELD

    def _redacted(self, text: str | None) -> str | None:
        """A payload as it is kept; one that cannot be redacted is not."""
        assert self._redact is not None
        try:
            return text and encode(self._redact(json.loads(text)))
        except Exception:
            return encode(WITHHELD)


class Batch:
    """The rows of one session that are kept together, and the tables that they refer to."""

    def __init__(self, tracer: Tracer, session: str, place: Place | None = None) -> None:
        self._tracer = tracer
        self._session = session
        self.rows: list[Row] = []
        self._handlers: dict[Implementation, int] = {}
        self._places: dict[tuple[str, int | None, str], int] = {}
        self._fired: dict[str, int] = {}
        self._last: dict[str, int] = {}

    def add(self, taken: Taken | Row, place: Place | None) -> None:
        """Add what was taken."""
        if isinstance(taken, list):
            taken[PLACE] = self._number(place)
            self.rows.append(taken)
        else:
            row = self.row(taken, place)
            name = row[NAME]
            self._fired[name] = self._fired.get(name, 0) + 1
            self._last[name] = row[STARTED]
            self.rows.append(row)

    def row(self, taken: Taken, place: Place | None) -> Row:
        """A dispatch as a row."""
        tracer, recorder, verdict = self._tracer, taken.recorder, taken.verdict
        started, said, handlers = recorder.started, taken.said, self._handlers
        parts: list[Row] = []
        for number, note in enumerate(recorder.notes):
            impl = note[0]
            if tracer.is_own(impl):
                continue
            known = handlers.get(impl)
            if known is None:
                known = handlers[impl] = len(handlers)
            part = [known, int((note[1] - started) * 1e9), int((note[2] - note[1]) * 1e9)]
            parts.append([*part, *said[number]] if said and number in said else part)
        lasted = int((taken.ended - started) * 1e9)
        row: Row = ["hook", tracer.next_number(), recorder.spec.name, self._number(place)]
        row += [int(started * 1e9), lasted]
        decision = DECISION_NAMES[verdict.decision] if verdict is not None else None
        reason = verdict.reason if verdict is not None else None
        failed = error_text(taken.error) if taken.error is not None else None
        payload = taken.payload
        if tracer.full or payload is None:
            return [*row, decision, reason, failed, payload, parts]
        return [*row, decision, reason, failed, None, parts, digest(payload)]

    def tables(self) -> dict[str, Any]:
        """The chunk as it is written."""
        tracer = self._tracer
        return {
            "v": VERSION,
            "p": tracer.prefix,
            "s": self._session,
            "t": tracer.epoch,
            "h": [[impl.name, tracer.written(impl)] for impl in self._handlers],
            "w": list(self._places),
            "r": self.rows,
        }

    def chunk(self) -> Chunk:
        """The batch, to be kept."""
        epoch = self._tracer.epoch
        times = [row[STARTED] for row in self.rows]
        fired = {name: (n, epoch + self._last[name] / 1e9) for name, n in self._fired.items()}
        begun, ended = epoch + min(times) / 1e9, epoch + max(times) / 1e9
        return Chunk(self._session, begun, ended, len(self.rows), encode(self.tables()), fired)

    def _number(self, place: Place | None) -> int:
        at = NOWHERE if place is None else (place.turn_id, place.step, place.call_id)
        number = self._places.get(at)
        if number is None:
            number = self._places[at] = len(self._places)
        return number


NOWHERE: tuple[str, int | None, str] = ("", None, "")
DECISION_NAMES = {decision: decision.name.lower() for decision in Decision}


def session_at(key: Any, place: Place | None) -> tuple[str, Place | None]:
    """Where something belongs, by its hook's scope key or else by where it was made."""
    if place is None:
        return "" if key is None else str(key), None
    if not key or key == place.session_id:
        return place.session_id, place
    return str(key), None


def decides(spec: HookSpec) -> bool:
    """Whether a hook decides or rewrites: what the level "decisions" keeps."""
    return spec.reducer.name in DECIDING or spec.errors is DENY
