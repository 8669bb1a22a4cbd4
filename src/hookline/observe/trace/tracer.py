"""`Tracer`: collects the kernel's reports of dispatches during a turn, and stores them in between.

Rows are created and stored in batches, every half second, never while a hook waits. If a store fails,
that is logged and the turn continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from time import perf_counter, time
from typing import Final, Protocol

from hookline.hooks import HookSpec, Implementation
from hookline.hooks.errors import error_text
from hookline.hooks.observers import Observer
from hookline.hooks.reducers import DENY
from hookline.tape import new_id

from .batch import Redact, StartedModelCall, chunks_of, record_taken
from .capture import PENDING, Taken, taker
from .record import TraceRecord
from .rows import VERSION
from .settings import TraceSettings
from .snapshot import encode
from .store import TraceStore

log = logging.getLogger("hookline.observe.trace")

SECONDS: Final = 0.5
"""How long one waits at most while the loop is free."""


class Listener(Protocol):
    """Receives spans and dispatches as they come, for example to send them elsewhere."""

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
        self.listeners = tuple(listeners)
        self._own: frozenset[int] = frozenset()
        self.full = settings.level == "full"
        self.silent = self.full or bool(self.listeners)
        """Whether to take dispatches in which no handler said anything: listeners get all of them."""
        self.limit = settings.payload
        self.waiting: list[Taken] = []
        self._turns: list[StartedModelCall] = []
        self._writing = asyncio.Lock()
        self.timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1
        self.epoch = time() - perf_counter()
        """Converts a time of `perf_counter` to a time of day."""
        self.head = encode({"v": VERSION, "p": new_id(), "t": self.epoch}).removesuffix(b"}")
        """How every chunk begins."""

    @property
    def observer(self) -> Observer:
        """The observer for `hooks.observe`."""
        return Observer(partial(taker, self), self.chosen)

    def chosen(self, spec: HookSpec, implementations: Sequence[Implementation]) -> bool:
        """Whether a hook is traced, with these attached; asked when it is compiled."""
        if all(map(self.is_own, implementations)):  # also if there are none
            return False
        return self.silent or decides(spec)

    def keeps(self, spec: HookSpec) -> bool:
        """Whether anything of this hook is kept at this level."""
        return self.store is not None and (self.full or decides(spec))

    def pass_over(self, plugins: Iterable[object]) -> None:
        """Exclude what belongs to the trace itself; call it before `observe`."""
        self._own = frozenset(map(id, plugins))

    def is_own(self, implementation: Implementation) -> bool:
        """Whether it is a part of the trace itself."""
        return id(implementation.plugin) in self._own

    # --- taking -------------------------------------------------------------------------------

    def began(self, turn: StartedModelCall) -> None:
        """Take the beginning of a model turn."""
        if self.store is not None:
            self._turns.append(turn)
            if self.timer is None or len(self._turns) > PENDING:
                self.wait()

    def tell(self, taken: Taken) -> None:
        """Tell who listens of a dispatch, as it will be read."""
        record = record_taken(self, taken)
        for listener in self.listeners:
            listener.dispatched(record)

    def numbers(self, count: int) -> int:
        """The first of this many ids."""
        first = self._next
        self._next += count
        return first

    # --- keeping ------------------------------------------------------------------------------

    def wait(self) -> None:
        """Store what waits soon; without a running loop, together with the next."""
        for waiting in (self.waiting, self._turns):
            if len(waiting) > PENDING:
                del waiting[: PENDING // 2]
        loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]  # None, not an error
        if loop is not None and self.timer is None:
            self.timer = loop.call_later(SECONDS, self._due)

    def _due(self) -> None:
        self.timer = None
        task = asyncio.get_running_loop().create_task(self.flush(), name="trace")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self) -> None:
        """Keep what waits."""
        async with self._writing:
            taken, turns = self.waiting[:], self._turns[:]
            del self.waiting[: len(taken)], self._turns[: len(turns)]  # hooks run in other threads too
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
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        await self.flush()


def decides(spec: HookSpec) -> bool:
    """Whether a hook decides or rewrites: what the level "decisions" keeps."""
    return spec.reducer.guarded or spec.errors is DENY
