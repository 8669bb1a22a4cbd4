"""`Turns`: one turn for each event that was taken, also after a crash."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from hookline.agent.journal import cut_off_turn
from hookline.hooks.errors import HooklineError, error_text
from hookline.hookspecs import TriggerEvent
from hookline.runtime.inbox import fates_of
from hookline.runtime.turn import TurnResult
from hookline.system.retry import RetryPolicy
from hookline.types import Envelope, address_of, field_of

from .context import Settled
from .errors import TriggerError
from .ledger import EventRecord, LedgerState, TriggerLedger
from .settings import TriggerSettings

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from .clock import Clock

log = logging.getLogger("hookline.ext.triggers")

Process: TypeAlias = Callable[[Envelope], Awaitable[TurnResult]]
"""Takes one envelope through the app, to its result."""
Key: TypeAlias = tuple[str, str]
"""What an event is known by: its trigger, and its id there."""

AT_ONCE = 64
"""Turns of triggers that run at the same time; further events are recorded and wait."""
PARKING = 5.0
"""Seconds that parked turns get to write down where they stopped."""
FORGET_EVERY = 1000
"""Turns after which events that are long over are forgotten."""


class Turns:
    """The turns of one process's triggers."""

    def __init__(
        self,
        app: Hookline,
        ledger: TriggerLedger,
        clock: Clock,
        settings_of: Callable[[str], TriggerSettings],
    ) -> None:
        self._app = app
        self._ledger = ledger
        self._clock = clock
        self._settings_of = settings_of
        self.process: Process = self._through_the_app
        self.elsewhere = False
        """Whether turns are made by workers: they go on with what was cut off, and this one waits."""
        self.owner = uuid4().hex
        """The name under which this process takes events."""
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._running: dict[asyncio.Task[Settled], tuple[Key, Envelope]] = {}
        self._settling: set[asyncio.Task[Any] | None] = set()
        """Those whose turn is over."""
        self._taking: Counter[Key] = Counter()
        """The events that are being asked for, how often."""
        self._count = 0

    async def open(self) -> None:
        """Let others know that this process lives, before it takes anything."""
        await self._ledger.join(self.owner)

    def retry_policy(self, trigger: str) -> RetryPolicy:
        """How a turn of a trigger that fails is tried again."""
        return self._settings_of(trigger).retry_policy()

    async def take(
        self, event: TriggerEvent, *, again: bool = False, mark: float | None = None
    ) -> tuple[bool, EventRecord]:
        """Take an event in the ledger, see `Ledger.claim`; whoever gets it calls `start` at once."""
        await self.open()
        key = key_of(event)
        self._taking[key] += 1
        try:
            return await self._ledger.claim(event, self.owner, again=again, mark=mark)
        finally:
            self._taking[key] -= 1
            if not self._taking[key]:
                del self._taking[key]

    def has(self, event: TriggerEvent) -> bool:
        """Whether this process knows that the event is its own."""
        key = key_of(event)
        return key in self._taking or any(key == running for running, _ in self._running.values())

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
        own = self._running and not self.elsewhere
        for session_id, run in self._app.sessions.runs.items() if own else ():
            if run.envelope is not None and address_of(run.envelope)[0].startswith("trigger:"):
                await self._app.park(session_id)
        await self.drain(PARKING if own and self._app.sessions.runs else 0)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait([*self._running])
        await self._ledger.leave()

    def start(
        self, record: EventRecord, envelope: Envelope, *, recovered: bool = False
    ) -> asyncio.Task[Settled]:
        """Make the turn of an event that was taken."""
        work = self._settle(record, envelope, recovered=recovered)
        task = asyncio.get_running_loop().create_task(work)
        self._running[task] = (key_of(record.event), envelope)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Settled]) -> None:
        self._running.pop(task)
        self._settling.discard(task)

    async def _settle(self, record: EventRecord, envelope: Envelope, *, recovered: bool) -> Settled:
        """Make the turn, and write down what became of the event."""
        event = record.event
        try:
            async with self._slots:
                work = self._continue(record, envelope) if recovered else self.process(envelope)
                result = await work
            if result.outcome == "cancelled" and await self._app.sessions.is_cut_off(result.session_id):
                return Settled("started", result)  # parked: it goes on at the next start
        except Exception as error:
            return await self._fail(record, error)
        if not await self._note(record, "done", result.stopped or ""):
            return Settled("started", result)
        self._count += 1
        if self._count % FORGET_EVERY == 0:
            await self._ledger.forget(event.trigger)
        return Settled("done", result)

    async def _fail(self, record: EventRecord, error: Exception) -> Settled:
        policy = self.retry_policy(record.event.trigger)
        log.warning(
            "trigger.turn_failed trigger=%s id=%s attempt=%d of %s: %s",
            record.event.trigger, record.event.id, record.tries, policy.attempts, error_text(error),
        )  # fmt: skip
        is_last = policy.gives_up(record.tries)
        after = 0.0 if is_last else policy.delay(record.tries)
        state: LedgerState = "dead" if is_last else "failed"
        if not await self._note(record, state, error_text(error), after=after):
            return Settled("started", error=error)
        return Settled(state, error=error, due=0.0 if is_last else self._clock.now() + after)

    async def _note(
        self, record: EventRecord, state: LedgerState, note: str, *, after: float = 0.0
    ) -> bool:
        """Write down what became of an event; False where that cannot be said from here.

        Another process may have taken it over. Where the ledger is away, `Recovery` comes back to it.
        """
        event = record.event
        self._settling.add(asyncio.current_task())
        try:
            if await self._ledger.settle(event, self.owner, state, note, after=after):
                return True
            why = "another process took it over"
        except HooklineError as error:
            why = error_text(error)
        log.warning("trigger.not_settled trigger=%s id=%s: %s", event.trigger, event.id, why)
        return False

    async def _through_the_app(self, envelope: Envelope) -> TurnResult:
        return await self._app.process(envelope)

    # --- after a crash ------------------------------------------------------------------------

    async def give_up_lost(self) -> None:
        """Stop the turns that others have taken over, who could not see that this process lives."""
        before = {**self._running}
        ours = {key_of(record.event) for record in await self._ledger.unfinished(self.owner)}
        for task, (key, envelope) in before.items():
            if key in ours or task in self._settling or task.done():
                continue
            log.warning("trigger.lost trigger=%s id=%s: another process took it over", *key)
            runs = {} if self.elsewhere else self._app.sessions.runs
            sessions = [s for s, run in runs.items() if _is_of(run.envelope, envelope)]
            for session_id in sessions:
                await self._app.park(session_id)
            if not sessions:
                task.cancel()

    async def _continue(self, record: EventRecord, envelope: Envelope) -> TurnResult:
        """Go on with a turn as far as it came: from its start, from the middle, or not at all."""
        if self.elsewhere:
            return await self.process(envelope)
        session_id = await self._app.pipeline.resolve_session(envelope)
        fates = await fates_of(self._app.store(), session_id, record.event.time)
        fate = fates.get(field_of(envelope, "message_id"))
        if fate is None:
            return await self.process(envelope)
        if fate == "failed":
            raise TriggerError("its turn had failed when the process ended")
        if fate == "started":
            cut = await cut_off_turn(await self._app.tape(session_id))
            if cut is not None and _is_of(cut.envelope, envelope):  # not a turn of somebody else
                result = await self._app.resume(session_id)
                if result is not None:
                    return result
        return TurnResult(session_id, outcome="handled", stopped="its turn was over already")


def key_of(event: TriggerEvent) -> Key:
    """What an event is known by."""
    return event.trigger, event.id


def _is_of(found: Envelope | None, envelope: Envelope) -> bool:
    """Whether an envelope is the message that another one is."""
    return found is not None and field_of(found, "message_id") == field_of(envelope, "message_id")
