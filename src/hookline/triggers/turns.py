"""`Turns`: one turn for each event that was taken, also after a crash."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from hookline.agent.journal import INBOUND, TURN
from hookline.catalog.envelope import Envelope, address_of
from hookline.catalog.trigger import TriggerEvent
from hookline.exchange import Exchange
from hookline.hooks.errors import error_text
from hookline.lock import Lock
from hookline.turn import TurnResult

from .context import Settled
from .errors import TriggerError
from .ledger import Ledger, Record
from .settings import TriggerSettings

if TYPE_CHECKING:
    from hookline.app import Hookline

    from .clock import Clock

log = logging.getLogger("hookline.triggers")

Process: TypeAlias = Callable[[Envelope], Awaitable[TurnResult]]
"""Takes one envelope through the app, to its result."""

AT_ONCE = 64
"""Turns of triggers that run at the same time; further events are recorded and wait."""
PARKING = 5.0
"""Seconds that parked turns get to write down where they stopped."""
FORGET_EVERY = 1000
"""Turns after which events that are long over are forgotten."""
TAKEN_OVER = 5
"""How often an event is taken over from a process that ended: it may be what ends them."""
LOOK_BACK = 500
"""How many turns of a session are looked at for one that was begun before a crash."""


class Turns:
    """The turns of one process's triggers."""

    def __init__(
        self,
        app: Hookline,
        ledger: Ledger,
        clock: Clock,
        settings_of: Callable[[str], TriggerSettings],
    ) -> None:
        self._app = app
        self._ledger = ledger
        self._clock = clock
        self._settings_of = settings_of
        self.process: Process = self._through_the_app
        self.owner = uuid4().hex
        """The name under which this process takes events."""
        self._alive = Lock(self._lock_of(self.owner))
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._running: set[asyncio.Task[Settled]] = set()
        self._count = 0

    def open(self) -> None:
        """Let others know that this process lives, before it takes anything."""
        self._alive.acquire()

    async def drain(self, seconds: float | None = None) -> None:
        """Wait until no turn is in flight, or for some seconds."""
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        while self._running:
            left = None if deadline is None else deadline - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                return
            await asyncio.wait([*self._running], timeout=left)

    async def close(self) -> None:
        """Stop what still runs so that it goes on later; what only waits begins then."""
        for session_id, run in [*self._app.runs.items()] if self._running else ():
            if run.envelope is not None and address_of(run.envelope)[0].startswith("trigger:"):
                await self._app.park(session_id)
        await self.drain(PARKING if self._app.runs else 0)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait([*self._running])
        self._alive.release(forget=True)

    def start(
        self, record: Record, envelope: Envelope, *, recovered: bool = False
    ) -> asyncio.Task[Settled]:
        """Make the turn of an event that was taken."""
        work = self._settle(record, envelope, recovered=recovered)
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _settle(self, record: Record, envelope: Envelope, *, recovered: bool) -> Settled:
        """Make the turn, and write down what became of the event."""
        event = record.event
        try:
            async with self._slots:
                result = await (self._continue if recovered else self.process)(envelope)
            if result.outcome == "cancelled" and await self._app.is_cut_off(result.session_id):
                return Settled("started", result)  # parked: it goes on at the next start
        except Exception as error:
            return await self._fail(record, error)
        await self._ledger.settle(event, "done", result.stopped or "")
        self._count += 1
        if self._count % FORGET_EVERY == 0:
            await self._ledger.forget(event.trigger)
        return Settled("done", result)

    async def _fail(self, record: Record, error: Exception) -> Settled:
        tries, backoff = self._settings_of(record.event.trigger).patience()
        log.warning(
            "trigger.turn_failed trigger=%s id=%s try=%d of %d: %s",
            record.event.trigger, record.event.id, record.tries, tries, error_text(error),
        )  # fmt: skip
        if record.tries >= tries:
            await self._ledger.settle(record.event, "dead", error_text(error))
            return Settled("dead", error=error)
        due = self._clock.now() + backoff * 2 ** (record.tries - 1)
        await self._ledger.settle(record.event, "failed", error_text(error), due=due)
        return Settled("failed", error=error, due=due)

    async def _through_the_app(self, envelope: Envelope) -> TurnResult:
        return await self._app.process_inbound(envelope, exchange=Exchange())

    # --- after a crash ------------------------------------------------------------------------

    def _lock_of(self, owner: str) -> Path:
        return self._app.home / "triggers" / f"{owner}.lock"

    async def recover(self, envelope_of: Callable[[TriggerEvent], Envelope]) -> None:
        """Take over the events whose process is gone."""
        for record in await self._ledger.unfinished():
            if record.owner == self.owner or Lock(self._lock_of(record.owner)).is_held():
                continue
            taken = await self._ledger.take_over(record, self.owner)
            if taken is None:
                continue
            if taken.tries > TAKEN_OVER + self._settings_of(taken.event.trigger).patience()[0]:
                note = f"{TAKEN_OVER + 1} processes ended in the middle of it"
                await self._ledger.settle(taken.event, "dead", note)
                continue
            try:
                envelope = envelope_of(taken.event)
            except TriggerError as error:  # the settings have changed since
                await self._ledger.settle(taken.event, "dead", str(error))
            else:
                self.start(taken, envelope, recovered=True)

    async def _continue(self, envelope: Envelope) -> TurnResult:
        """Go on with a turn as far as it came: from its start, from the middle, or not at all."""
        session_id = await self._app.pipeline.resolve_session(envelope)
        status = await self._begun(session_id, envelope["message_id"])
        if status is None:
            return await self.process(envelope)
        if status == "failed":
            raise TriggerError("its turn had failed when the process ended")
        if status == "started":
            result = await self._app.resume(session_id, exchange=Exchange())
            if result is not None:
                return result
        return TurnResult(session_id, outcome="handled", stopped="its turn was over already")

    async def _begun(self, session_id: str, message_id: str) -> str | None:
        """How the turn of a message ended, `started` where it did not; None where none was begun."""
        ends: dict[str, str] = {}
        for entry in await self._app.store().entries(
            session_id, kinds={TURN, INBOUND}, limit=LOOK_BACK, newest_first=True
        ):
            envelope: dict[str, Any] = entry.payload.get("envelope") or {}
            turn_id, ours = entry.payload.get("turn_id", ""), envelope.get("message_id") == message_id
            if ours and entry.kind == INBOUND:
                return "completed"
            if ours:
                return ends.get(turn_id, "started")
            if entry.kind == TURN and entry.payload["status"] != "started":
                ends[turn_id] = entry.payload["status"]
        return None
