"""`Tracer`: takes what the kernel tells of dispatches while a turn runs, and keeps it when it rests.

What happened is written as text at once, so that nothing of a turn is held. Rows are kept in batches,
at save points and in between, never while a hook waits for it. A store that fails is logged, and the
turn goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import count
from time import perf_counter, time
from typing import Any, Protocol

from hookline.catalog.place import Place, here
from hookline.hooks import HookSpec, Implementation, Ruling, Verdict
from hookline.hooks.errors import error_text
from hookline.hooks.reducers import DENY
from hookline.hooks.trace import Recorder, Watch, Watched, did_of
from hookline.tape import new_id

from .batch import KNOWN, Batch, Dispatched, Redact, Said, Span
from .record import TraceRecord
from .settings import TraceSettings
from .snapshot import LEFT_OUT, encode, payload_of, snapshot
from .store import Chunk, TraceStore

log = logging.getLogger("hookline.trace")

DECIDING = frozenset({"gate", "patch", "chain"})
PENDING = 10_000
"""Rows that wait to be kept; where nothing can be kept, the oldest of them go."""
SECONDS = 0.5
"""How long a row waits at most while the loop is free."""


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
        self._batches: dict[str, Batch] = {}
        self._placeless: list[tuple[Dispatched | Span, Any, Place]] = []
        """What was taken in a turn of which the session was not known yet."""
        self._pending = 0
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._flushed = 0.0
        self.next_number = count(1).__next__
        self.prefix = new_id()
        self._written: dict[Implementation, str] = {}
        self._names: dict[str, str] = {}
        self._shown: dict[Watched, list[tuple[str, int]]] = {}
        """The parameters of a hook that are a part of its payload, each with its place."""
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
        payload = said = None
        if self.full or recorder.said:
            payload = snapshot(self._payload(recorder, value), self._limit)
            if recorder.said:
                said = self._said(recorder, value)
        verdict: Verdict[Any] | None = value if isinstance(value, Verdict) else None  # pyright: ignore[reportUnknownVariableType]
        taken = Dispatched(recorder, ended, payload, verdict, error, said)
        place, key = here(), recorder.key
        if self._listeners:
            self._tell(taken, key, place)
        self.note(taken, key, place)

    def _payload(self, recorder: Recorder, value: Any) -> Any:
        """What `payload_of` gives, by what is known of the hook's parameters."""
        watched, args = recorder.watched, recorder.args
        shown = self._shown.get(watched)
        if shown is None:
            if len(self._shown) >= KNOWN:
                self._shown.clear()
            passed = watched.passed
            shown = self._shown[watched] = [
                (name, at) for at, name in enumerate(passed) if name not in LEFT_OUT
            ]
        if watched.spec.withholds:
            return payload_of(recorder.arguments(value))
        found = {name: args[at] for name, at in shown}
        return payload_of(found) if "event" in found else found

    def _said(self, recorder: Recorder, outcome: Any) -> dict[int, Said] | None:
        """What each handler that said something did."""
        reducer = recorder.watched.spec.reducer
        chained = reducer.name == "chain"
        arguments: dict[str, Any] | None = None
        now: dict[str, Any] = {}
        said: dict[int, Said] = {}
        for number, (_, _, _, value, what, at) in enumerate(recorder.notes):
            reason = failed = changes = returned = None
            if what is None:
                if value is None:
                    continue
                if chained:
                    name = getattr(reducer, "parameter", "value")
                    arguments = arguments or recorder.arguments(outcome)
                    before = now[name] if name in now else arguments.get(name)
                    changes = snapshot({name: [before, value]}, self._limit)
                    now[name] = value
                elif self.full:
                    returned = snapshot(value, self._limit)
            elif isinstance(what, Ruling):
                ruling = outcome.trail[at] if isinstance(outcome, Verdict) else None  # pyright: ignore[reportUnknownMemberType]  # as it was released
                reason = ruling.reason if ruling is not None else None
                if ruling is not None and ruling.changes:
                    arguments = arguments or recorder.arguments(outcome)
                    event = arguments.get("event")
                    pairs = {
                        name: [now.get(name, getattr(event, name, None)), after]
                        for name, after in ruling.changes.items()
                    }
                    changes = snapshot(pairs, self._limit)
                    now.update(ruling.changes)
            else:
                failed = error_text(what)
            said[number] = (did_of(value, what, chained), reason, failed, changes, returned)
        return said or None

    def _tell(self, taken: Dispatched, key: Any, place: Place | None) -> None:
        """Tell who listens of a dispatch, as it will be read."""
        session, place = session_at(key, place)
        batch = Batch(self, session)
        batch.add(taken, place)
        record = batch.record()
        for listener in self._listeners:
            listener.dispatched(record)

    def note(self, taken: Dispatched | Span, key: Any, place: Place | None) -> None:
        """Let it wait for the next time that rows are kept."""
        if self.store is None:
            return
        if place is not None and not place.session_id:
            self._placeless.append((taken, key, place))
        else:
            self._put(taken, *session_at(key, place))
        self._pending += 1
        if self._pending > PENDING:
            self._drop_oldest()
        if self._timer is None:
            loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]  # None, not an error
            if loop is not None:
                self._timer = loop.call_later(SECONDS, self._due)

    def _put(self, taken: Dispatched | Span, session: str, place: Place | None) -> None:
        batch = self._batches.get(session)
        if batch is None:
            batch = self._batches[session] = Batch(self, session)
        batch.add(taken, place)

    def _drop_oldest(self) -> None:
        self._pending -= len(self._placeless)
        self._placeless.clear()
        for session in list(self._batches):
            if self._pending <= PENDING:
                break
            self._pending -= self._batches[session].drop_older()
            if not self._batches[session].rows:
                del self._batches[session]

    def written(self, impl: Implementation) -> str:
        """An implementation's name and where it is written, as JSON."""
        text = self._written.get(impl)
        if text is None:
            if len(self._written) >= KNOWN:
                self._written.clear()
            text = self._written[impl] = encode([impl.name, impl.location])
        return text

    def quoted(self, name: str) -> str:
        """A hook's name as JSON."""
        text = self._names.get(name)
        if text is None:
            text = self._names[name] = encode(name)
        return text

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
            for taken, key, place in self._placeless:
                self._put(taken, *session_at(key, place))
            batches, count = list(self._batches.values()), self._pending
            self._batches, self._placeless, self._pending = {}, [], 0
            try:
                if self._redact is None:
                    chunks = [batch.chunk() for batch in batches]
                else:
                    chunks = await asyncio.to_thread(redacted_chunks, batches, self._redact)
                await self.store.write(chunks, self.settings)
            except Exception as error:
                log.warning("trace.failed records=%d lost: %s", count, error_text(error))

    async def close(self) -> None:
        """Keep what waits, and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.flush()


def redacted_chunks(batches: Iterable[Batch], redact: Redact) -> list[Chunk]:
    """What waits, without what must not be kept."""
    for batch in batches:
        batch.redact(redact)
    return [batch.chunk() for batch in batches]


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
