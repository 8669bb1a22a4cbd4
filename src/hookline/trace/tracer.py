"""`Tracer`: takes what the kernel tells of dispatches while a turn runs, and keeps it when it rests.

What may change later is written as text at once; the rest waits as it is. Rows are made and kept in
batches, every half second, never while a hook waits for it. A store that fails is logged, and the turn
goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from time import perf_counter, time
from typing import Any, Final, Protocol

from hookline.catalog.place import here
from hookline.hooks import HookSpec, Implementation, Ruling, Verdict
from hookline.hooks.errors import error_text
from hookline.hooks.reducers import DENY
from hookline.hooks.trace import Note, Watch, Watched, did_of
from hookline.tape import new_id

from .batch import Dispatched, ModelTurn, Redact, chunks_of, record_taken
from .record import TraceRecord
from .rows import VERSION
from .settings import TraceSettings
from .shapes import Casting, Shape, bare_shape, shape_of
from .snapshot import UNKNOWN, encode, snapshot
from .store import TraceStore

log = logging.getLogger("hookline.trace")

DECIDING: Final = frozenset({"gate", "patch", "chain"})
PENDING: Final = 10_000
"""Dispatches that wait to be kept; where nothing can be kept, the oldest of them go."""
SECONDS: Final = 0.5
"""How long one waits at most while the loop is free."""
KNOWN: Final = 10_000
"""Compiled hooks, and ways in which one was run, of which something is remembered."""


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
    ) -> None:
        self.settings = settings
        self.store = store
        self._redact = redact
        self._listeners = tuple(listeners)
        self._own: frozenset[int] = frozenset()
        self.full = settings.level == "full"
        self._limit = settings.payload
        self._taken: list[Dispatched] = []
        self._turns: list[ModelTurn] = []
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1
        self._shapes: dict[Watched, Shape] = {}
        self.epoch = time() - perf_counter()
        """What makes a time of day of a time of `perf_counter`."""
        self.head = f'{{"v":{VERSION},"p":{encode(new_id())},"t":{self.epoch!r}'
        """How every chunk begins."""

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

    def pass_over(self, plugins: Iterable[object]) -> None:
        """Leave out what is a part of the trace itself; say so before `watch`."""
        self._own = frozenset(map(id, plugins))

    # --- taking -------------------------------------------------------------------------------

    def dispatched(
        self,
        watched: Watched,
        args: tuple[Any, ...],
        started: float,
        notes: list[Note],
        value: Any,
        error: BaseException | None,
        said: bool,
    ) -> None:
        """Take one dispatch: text of what may change, the rest as it is."""
        shape = self._shapes.get(watched)
        if shape is None or (shape.event is not None and shape.event is not args[0].__class__):
            shape = self._new_shape(watched, args)
        about: list[Any] = [None]
        if shape.is_whole:
            about[0] = shape.values(args if shape.event is None else args[0])
        elif self.full:  # of what was held back, what was released
            about[0] = shape.values(watched.arguments(args, value)["event"])
        decision = None
        if len(notes) == 1 and error is None:
            impl, begun, ended, returned, what, _ = notes[0]
            casting = shape.castings.get(impl) or self._new_casting(shape, (impl,))
            times = () if begun == started else (begun, ended)
            if what is None and shape.is_plain:
                if said:
                    about.append(((0, returned),))
                said = False
        else:
            impls = tuple([note[0] for note in notes])
            known = shape.castings.get(impls if len(impls) != 1 else impls[0])
            casting = known or self._new_casting(shape, impls)
            ended = notes[-1][2] if notes and error is None else perf_counter()
            times = tuple([time for note in notes for time in note[1:3]])
        if isinstance(value, Verdict):
            decision = int(value.decision)  # plain data is written faster
        if said:
            about.append(self._parts(watched, args, notes, value))
            if error is not None:
                about += (None if decision is None else value.reason, error_text(error))
            elif decision is not None:
                about.append(value.reason)
        try:
            text = encode(about)
        except UNKNOWN:
            text = ""
        if not 0 < len(text) <= self._limit:
            text = cut_text(about, shape, self._limit)
        taken = (casting, watched.key_of(args), here(), decision, started, ended, times, text)
        if self._listeners:
            self._tell(taken)
        if self.store is not None:
            self._taken.append(taken)
            if self._timer is None or len(self._taken) > PENDING:
                self._wait()

    def began(self, turn: ModelTurn) -> None:
        """Take the beginning of a model turn."""
        if self.store is not None:
            self._turns.append(turn)
            if self._timer is None or len(self._turns) > PENDING:
                self._wait()

    def _new_shape(self, watched: Watched, args: tuple[Any, ...]) -> Shape:
        if len(self._shapes) >= KNOWN:
            self._shapes.clear()
        shape = shape_of(watched, args) if self.full else bare_shape(watched)
        self._shapes[watched] = shape
        return shape

    def _new_casting(self, shape: Shape, called: tuple[Implementation, ...]) -> Casting:
        if len(shape.castings) >= KNOWN:
            shape.castings.clear()
        handlers = [
            None if id(impl.plugin) in self._own else (impl.name, impl.location) for impl in called
        ]
        casting = Casting(shape, encode((shape.hook, shape.names, handlers)))
        shape.castings[called[0] if len(called) == 1 else called] = casting
        return casting

    def _parts(
        self, watched: Watched, args: tuple[Any, ...], notes: list[Note], outcome: Any
    ) -> list[tuple[Any, ...]]:
        """What each handler that said something did."""
        reducer = watched.spec.reducer
        chained = reducer.name == "chain"
        event: Any = None
        now: dict[str, Any] = {}
        parts: list[tuple[Any, ...]] = []
        for number, (_, _, _, value, what, at) in enumerate(notes):
            reason = failed = changes = None
            if what is None:
                if value is None:
                    continue
                if self.full and not chained:
                    parts.append((number, value))
                    continue
                if chained:
                    name: str = getattr(reducer, "parameter", "value")
                    before = now[name] if name in now else watched.argument(args, name)
                    changes = {name: [before, value]}
                    now[name] = value
            elif isinstance(what, Ruling):
                ruling = outcome.trail[at] if isinstance(outcome, Verdict) else None  # pyright: ignore[reportUnknownMemberType]  # as it was released
                reason = ruling.reason if ruling is not None else None
                if ruling is not None and ruling.changes:
                    event = event or watched.arguments(args, outcome).get("event")
                    changes = {
                        name: [now.get(name, getattr(event, name, None)), after]
                        for name, after in ruling.changes.items()
                    }
                    now.update(ruling.changes)
            else:
                failed = error_text(what)
            parts.append((number, did_of(value, what, chained), reason, failed, changes))
        return parts

    def _tell(self, taken: Dispatched) -> None:
        """Tell who listens of a dispatch, as it will be read."""
        record = record_taken(self, taken)
        for listener in self._listeners:
            listener.dispatched(record)

    def numbers(self, count: int) -> int:
        """The first of so many ids."""
        first = self._next
        self._next += count
        return first

    # --- keeping ------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Keep what waits in a moment; where no loop runs, with the next that is taken in one."""
        for waiting in (self._taken, self._turns):
            if len(waiting) > PENDING:
                del waiting[: PENDING // 2]
        loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]  # None, not an error
        if loop is not None and self._timer is None:
            self._timer = loop.call_later(SECONDS, self._due)

    def _due(self) -> None:
        self._timer = None
        task = asyncio.get_running_loop().create_task(self.flush(), name="trace")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self) -> None:
        """Keep what waits."""
        async with self._writing:
            taken, turns = self._taken[:], self._turns[:]
            del self._taken[: len(taken)], self._turns[: len(turns)]  # hooks run in other threads too
            if self.store is None or not (taken or turns):
                return
            try:
                if self._redact is None:
                    chunks = chunks_of(self, taken, turns)
                else:
                    chunks = await asyncio.to_thread(chunks_of, self, taken, turns, self._redact)
                await self.store.write(chunks, self.settings)
            except Exception as error:
                log.warning("trace.failed records=%d lost: %s", len(taken), error_text(error))

    async def close(self) -> None:
        """Keep what waits, and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.flush()


def cut_text(about: list[Any], shape: Shape, limit: int) -> str:
    """What was said in a dispatch, as `rows` has it, with each value of about this length at most."""
    payload, parts, *rest = about if len(about) > 1 else (about[0], None)
    if payload is not None:
        payload = dict(zip(shape.names, payload, strict=True))
    texts = [snapshot(payload, limit)]
    if parts is not None:
        texts.append(array(array(snapshot(each, limit) for each in part) for part in parts))
    return array([*texts, *(snapshot(each, limit) for each in rest)])


def array(texts: Iterable[str]) -> str:
    """JSON texts as one."""
    return f"[{','.join(texts)}]"


def decides(spec: HookSpec) -> bool:
    """Whether a hook decides or rewrites: what the level "decisions" keeps."""
    return spec.reducer.name in DECIDING or spec.errors is DENY
