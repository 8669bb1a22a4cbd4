"""The ledger of triggers: every event is recorded in it before its turn starts.

It is a file of the home, or tables beside tapes in PostgreSQL, which the processes of several machines
share.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hookline.hookspecs import TriggerEvent
from hookline.runtime.inbox.ledger import Ledger, LedgerRecord, LedgerState, LedgerStorage
from hookline.runtime.inbox.storage import PostgresLedgerStorage, SQLiteLedgerStorage, make_tables
from hookline.system.file_lock import Lock
from hookline.tape.entry import storable
from hookline.tape.open import postgres_of
from hookline.tape.sqlite.file import SQLiteFile

from .clock import Clock, SystemClock
from .errors import TriggerError

if TYPE_CHECKING:
    import sqlite3

    from hookline.runtime.app import Hookline
    from hookline.tape.postgres.presence import Presence
    from hookline.tape.postgres.store import PostgresStore

PART: Final = "triggers"
"""The name under which the version of the tables in PostgreSQL is recorded."""
TABLE: Final = "trigger"
KEPT: Final = 100_000
"""How many events of a trigger are remembered; older ones that are over are forgotten."""
LOOK_EVERY: Final = 10.0
"""Seconds between two looks for events of dead owners: longer than one takes to reconnect."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event and its state."""

    event: TriggerEvent
    state: LedgerState
    owner: str = ""
    tries: int = 0
    note: str = ""
    """Why it failed."""


class TriggerLedger:
    """The events of all triggers; several processes may use it at once."""

    look_every: float | None = None
    """Seconds between two looks for events of dead owners; None to look only at the start.

    If it is a number, an owner may be away for a moment, and is dead when it is away at two looks.
    """

    def __init__(self, storage: LedgerStorage) -> None:
        self._ledger = Ledger(storage)

    async def close(self) -> None:
        """Release everything."""
        await self.leave()

    async def join(self, owner: str) -> None:
        """Make an owner present, until it leaves or this process ends."""
        raise NotImplementedError

    async def leave(self) -> None:
        """Let others take over what the owner who joined still has."""
        raise NotImplementedError

    async def is_present(self, owner: str) -> bool:
        """Whether an owner lives, as far as can be seen."""
        raise NotImplementedError

    async def owners(self) -> list[str]:
        """The owners of unfinished events, the one with the oldest first."""
        return await self._ledger.owners()

    async def claim(
        self, event: TriggerEvent, owner: str, *, again: bool = False, mark: float | None = None
    ) -> tuple[bool, EventRecord]:
        """Take an event, atomically; see `Ledger.claim`."""
        record = self._record(event, "started", owner=owner, tries=1)
        taken, found = await self._ledger.claim(record, again=again, mark=mark)
        return taken, _event_record(found)

    async def enqueue(self, event: TriggerEvent) -> bool:
        """Let an event wait. Returns False if its id is known."""
        return await self._ledger.enqueue(self._record(event, "queued"))

    async def waiting(self, trigger: str) -> TriggerEvent | None:
        """The event that waited longest, of those that are due."""
        found = await self._ledger.waiting(trigger)
        return found and _event_record(found).event

    async def settle(
        self, event: TriggerEvent, owner: str, state: LedgerState, note: str = "", *, after: float = 0.0
    ) -> bool:
        """Set the state of an event that an owner has. Returns False if another owner has it.

        A failed one is due again `after` some seconds.
        """
        return await self._ledger.settle(event.trigger, event.id, owner, state, _text(note), after)

    async def bury(self, event: TriggerEvent, note: str) -> None:
        """Make a dead letter of an event that no process has: no turn can be made of it."""
        await self._ledger.bury(self._record(event, "dead", note=_text(note)))

    async def unfinished(self, owner: str) -> list[EventRecord]:
        """The events that an owner took and did not settle."""
        return [_event_record(record) for record in await self._ledger.unfinished(owner)]

    async def take_over(self, record: EventRecord, owner: str) -> EventRecord | None:
        """Take an unfinished event from a dead owner. Returns None if another process was faster."""
        event = self._record(record.event, "started", owner=record.owner, tries=record.tries)
        taken = await self._ledger.take_over(event._replace(note=record.note), owner)
        return taken and _event_record(taken)

    async def find(self, trigger: str, event_id: str) -> EventRecord | None:
        """One event's record."""
        found = await self._ledger.find(trigger, event_id) if self._may_have(event_id) else None
        return found and _event_record(found)

    async def dead(self, trigger: str) -> list[EventRecord]:
        """The dead letters of a trigger, the oldest first."""
        return [_event_record(record) for record in await self._ledger.dead(trigger)]

    async def revive(self, trigger: str, event_id: str) -> bool:
        """Let a dead letter wait again, as if it had never been tried."""
        return self._may_have(event_id) and await self._ledger.revive(trigger, event_id)

    async def counts(self, trigger: str) -> dict[str, int]:
        """How many events of a trigger are in each state."""
        return await self._ledger.counts(trigger)

    async def forget(self, trigger: str, keep: int = KEPT) -> None:
        """Forget the oldest events that are over, beyond those that are kept."""
        await self._ledger.forget_beyond(trigger, keep)

    async def mark(self, trigger: str, now: float) -> float:
        """How far a trigger has come in time; a new one starts `now`."""
        return await self._ledger.mark(trigger, now)

    async def move_mark(self, trigger: str, at: float, *, back: bool = False) -> None:
        """Move a trigger's mark forward, or `back` if the clock had been wrong."""
        await self._ledger.move_mark(trigger, at, back=back)

    def _may_have(self, name: str) -> bool:
        """Whether the database can hold this name."""
        return True

    def _record(
        self,
        event: TriggerEvent,
        state: LedgerState,
        *,
        owner: str = "",
        tries: int = 0,
        note: str = "",
    ) -> LedgerRecord:
        if not self._may_have(event.trigger) or not self._may_have(event.id):
            raise TriggerError(
                f"the event {event.id!r} of trigger {event.trigger!r} cannot be kept in PostgreSQL; "
                "give it an id without NUL and half characters"
            )
        body = json.dumps([event.payload, event.message, event.session])
        return LedgerRecord(0, event.trigger, event.id, state, body, event.time, owner, tries, note)


def _event_record(record: LedgerRecord) -> EventRecord:
    payload, message, session = json.loads(record.body or "[{}, null, null]")
    event = TriggerEvent(record.source, payload, record.id, record.time, message, session)
    return EventRecord(event, record.state, record.owner, record.tries, record.note)


def _text(note: str) -> str:
    """A note that every database can hold."""
    return note if storable(note) else repr(note)


class SQLiteLedger(TriggerLedger):
    """A ledger in a file of the home. Owners hold locks beside it, which end with their processes."""

    def __init__(self, home: Path, clock: Clock | None = None) -> None:
        self._file = SQLiteFile(str(home / "triggers.db"), "trigger", [make_tables], opened=_durable)
        self._locks = home / "triggers"
        self._joined: Lock | None = None
        super().__init__(SQLiteLedgerStorage(self._file.write, clock=(clock or SystemClock()).now))

    async def close(self) -> None:
        """Close the file."""
        await self.leave()
        await self._file.close()

    async def join(self, owner: str) -> None:
        """Make an owner present."""
        if self._joined is None:
            self._joined = self._lock_of(owner)
            self._joined.acquire()

    async def leave(self) -> None:
        """Let others take over what the owner still has."""
        if self._joined is not None:
            self._joined.release(forget=True)
            self._joined = None

    async def is_present(self, owner: str) -> bool:
        """Whether an owner's process lives."""
        return self._lock_of(owner).is_held()

    def _lock_of(self, owner: str) -> Lock:
        return Lock(self._locks / f"{owner}.lock")


class PostgresLedger(TriggerLedger):
    """A ledger beside tapes in PostgreSQL. Owners are present while their connections live."""

    look_every: float | None = LOOK_EVERY

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._presence: Presence | None = None
        self._joining = asyncio.Lock()
        super().__init__(PostgresLedgerStorage(store, PART, TABLE))

    async def join(self, owner: str) -> None:
        """Make an owner present on every machine."""
        from hookline.tape.postgres.presence import Presence

        async with self._joining:
            if self._presence is None:
                self._presence = await Presence.open(self._store, owner)

    async def leave(self) -> None:
        """Let others take over what the owner still has."""
        presence, self._presence = self._presence, None
        if presence is not None:
            await presence.close()

    async def is_present(self, owner: str) -> bool:
        """Whether an owner is connected."""
        from hookline.tape.postgres.presence import is_present

        return await is_present(self._store, owner)

    def _may_have(self, name: str) -> bool:
        return storable(name)


def _durable(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA secure_delete = ON")  # an event that is over leaves no copy behind
    db.execute("PRAGMA synchronous = FULL")  # what was accepted survives a loss of power too


def ledger_of(app: Hookline, clock: Clock) -> TriggerLedger:
    """The ledger of a running app: beside its tapes if those are in PostgreSQL, or in its home."""
    store = postgres_of(app.store())
    return SQLiteLedger(app.home, clock) if store is None else PostgresLedger(store)
