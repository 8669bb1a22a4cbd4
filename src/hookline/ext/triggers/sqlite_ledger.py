"""The ledger of a home: `triggers.db`, for the processes of one machine."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hookline.hookspecs import TriggerEvent
from hookline.system.file_lock import Lock
from hookline.tape.sqlite.file import SQLiteFile

from .clock import Clock, SystemClock
from .ledger import KEPT, EventRecord, State

_LET_GO: Final = (
    "UPDATE events SET payload = '{}', message = NULL WHERE trigger = ? AND id = ? AND state = 'done'"
)
"""An event that is done with is kept for its id alone."""
_COLUMNS: Final = "trigger, id, state, payload, time, message, session, owner, tries, note"


def _version_1(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            trigger TEXT NOT NULL,
            id TEXT NOT NULL,
            state TEXT NOT NULL,
            payload TEXT NOT NULL,
            time REAL NOT NULL,
            message TEXT,
            session TEXT,
            owner TEXT NOT NULL DEFAULT '',
            tries INTEGER NOT NULL DEFAULT 0,
            due REAL NOT NULL DEFAULT 0,
            note TEXT NOT NULL DEFAULT '',
            UNIQUE (trigger, id)
        )
        """
    )
    db.execute("CREATE INDEX events_states ON events (trigger, state, seq)")
    db.execute("CREATE TABLE marks (trigger TEXT PRIMARY KEY, at REAL NOT NULL)")


def _durable(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA secure_delete = ON")  # an event that is done with leaves no copy behind
    db.execute("PRAGMA synchronous = FULL")  # what was accepted survives a loss of power too


class SQLiteLedger:
    """A `Ledger` in a file of the home. Owners hold locks beside it, which end with their processes."""

    look_every: float | None = None

    def __init__(self, home: Path, clock: Clock | None = None) -> None:
        self._file = SQLiteFile(str(home / "triggers.db"), "trigger", [_version_1], opened=_durable)
        self._locks = home / "triggers"
        self._clock = clock or SystemClock()
        self._joined: Lock | None = None

    async def close(self) -> None:
        """Close the file."""
        await self.leave()
        await self._file.close()

    # --- owners -------------------------------------------------------------------------------

    async def join(self, owner: str) -> None:
        """Let others know that an owner lives."""
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

    async def owners(self) -> list[str]:
        """Those who took events and did not settle them, in the order of the events."""
        statement = "SELECT owner FROM events WHERE state = 'started' GROUP BY owner ORDER BY min(seq)"
        return await self._file.read(lambda db: [owner for (owner,) in db.execute(statement)])

    def _lock_of(self, owner: str) -> Lock:
        return Lock(self._locks / f"{owner}.lock")

    # --- events -------------------------------------------------------------------------------

    async def claim(
        self, event: TriggerEvent, owner: str, *, again: bool = False, mark: float | None = None
    ) -> tuple[bool, EventRecord]:
        """Take an event, all or nothing; False where somebody has it or had it, and its record.

        `again` takes one that waits or that failed. With a `mark`, the trigger's mark moves there too,
        and an event is not taken once the mark is there or further.
        """

        def take(db: sqlite3.Connection) -> tuple[bool, EventRecord]:
            free = ("queued", "failed") if again else ()
            known = _find(db, event)
            taken = known is None or known.state in free
            if taken and mark is not None:
                taken = _move(db, event.trigger, mark)
            if taken and known is None:
                _insert(db, event, "started", owner=owner, tries=1)
            elif taken:
                db.execute(
                    "UPDATE events SET state = 'started', owner = ?, tries = tries + 1 "
                    "WHERE trigger = ? AND id = ?",
                    (owner, event.trigger, event.id),
                )
            return taken, _find(db, event) or EventRecord(event, "done")

        return await self._file.write(take)

    async def enqueue(self, event: TriggerEvent) -> bool:
        """Let an event wait in its trigger's table; False where its id is known already."""

        def put(db: sqlite3.Connection) -> bool:
            return _find(db, event) is None and _insert(db, event, "queued")

        return await self._file.write(put)

    async def waiting(self, trigger: str) -> TriggerEvent | None:
        """The event that waited longest, of those that are due."""
        now = self._clock.now()

        def look(db: sqlite3.Connection) -> TriggerEvent | None:
            rows = _select(
                db,
                "trigger = ? AND state IN ('queued', 'failed') AND due <= ? ORDER BY seq LIMIT 1",
                (trigger, now),
            )
            return rows[0].event if rows else None

        return await self._file.read(look)

    async def settle(
        self, event: TriggerEvent, owner: str, state: State, note: str = "", *, after: float = 0.0
    ) -> bool:
        """Say what became of an event that an owner has; False where another has taken it over."""
        due = self._clock.now() + after

        def put(db: sqlite3.Connection) -> bool:
            changed = db.execute(
                "UPDATE events SET state = ?, note = ?, due = ? "
                "WHERE trigger = ? AND id = ? AND state = 'started' AND owner = ?",
                (state, note, due, event.trigger, event.id, owner),
            )
            if state == "done":
                db.execute(_LET_GO, (event.trigger, event.id))
            return changed.rowcount == 1

        return await self._file.write(put)

    async def bury(self, event: TriggerEvent, note: str) -> None:
        """Make a dead letter of an event that nobody has in hand."""

        def put(db: sqlite3.Connection) -> None:
            if _find(db, event) is None:
                _insert(db, event, "queued")
            db.execute(
                "UPDATE events SET state = 'dead', note = ? "
                "WHERE trigger = ? AND id = ? AND state IN ('queued', 'failed')",
                (note, event.trigger, event.id),
            )

        await self._file.write(put)

    async def unfinished(self, owner: str) -> list[EventRecord]:
        """The events that an owner took and did not settle."""
        return await self._file.read(
            lambda db: _select(db, "state = 'started' AND owner = ? ORDER BY seq", (owner,))
        )

    async def take_over(self, record: EventRecord, owner: str) -> EventRecord | None:
        """Take an unfinished event from an owner who is gone; None where another was faster."""

        def take(db: sqlite3.Connection) -> EventRecord | None:
            changed = db.execute(
                "UPDATE events SET owner = ?, tries = tries + 1 "
                "WHERE trigger = ? AND id = ? AND state = 'started' AND owner = ?",
                (owner, record.event.trigger, record.event.id, record.owner),
            ).rowcount
            return replace(record, owner=owner, tries=record.tries + 1) if changed else None

        return await self._file.write(take)

    async def find(self, trigger: str, event_id: str) -> EventRecord | None:
        """One event's record."""
        event = TriggerEvent(trigger, id=event_id)
        return await self._file.read(lambda db: _find(db, event))

    async def dead(self, trigger: str) -> list[EventRecord]:
        """The dead letters of a trigger, the oldest first."""
        return await self._file.read(
            lambda db: _select(db, "trigger = ? AND state = 'dead' ORDER BY seq", (trigger,))
        )

    async def revive(self, trigger: str, event_id: str) -> bool:
        """Let a dead letter wait again, as if it had never been tried."""

        def put(db: sqlite3.Connection) -> bool:
            changed = db.execute(
                "UPDATE events SET state = 'queued', tries = 0, due = 0, note = '' "
                "WHERE trigger = ? AND id = ? AND state = 'dead'",
                (trigger, event_id),
            )
            return changed.rowcount == 1

        return await self._file.write(put)

    async def counts(self, trigger: str) -> dict[str, int]:
        """How many events of a trigger are in each state."""
        statement = "SELECT state, count(*) FROM events WHERE trigger = ? GROUP BY state"
        return await self._file.read(lambda db: dict(db.execute(statement, (trigger,)).fetchall()))

    async def forget(self, trigger: str, keep: int = KEPT) -> None:
        """Forget the oldest events that are over, beyond those that are kept."""

        def drop(db: sqlite3.Connection) -> None:
            db.execute(
                "DELETE FROM events WHERE trigger = ? AND state = 'done' AND seq <= ("
                "SELECT seq FROM events WHERE trigger = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
                (trigger, trigger, keep),
            )

        await self._file.write(drop)

    # --- marks --------------------------------------------------------------------------------

    async def mark(self, trigger: str, now: float) -> float:
        """How far a trigger has come in time; from now on, where it was never seen."""

        def read(db: sqlite3.Connection) -> float:
            db.execute("INSERT OR IGNORE INTO marks VALUES (?, ?)", (trigger, now))
            return db.execute("SELECT at FROM marks WHERE trigger = ?", (trigger,)).fetchone()[0]

        return await self._file.write(read)

    async def move_mark(self, trigger: str, at: float, *, back: bool = False) -> None:
        """Move a trigger's mark forward, or `back` where the clock had been wrong."""

        def move(db: sqlite3.Connection) -> None:
            if back:
                db.execute("UPDATE marks SET at = ? WHERE trigger = ?", (at, trigger))
            else:
                _move(db, trigger, at)

        await self._file.write(move)


def _find(db: sqlite3.Connection, event: TriggerEvent) -> EventRecord | None:
    found = _select(db, "trigger = ? AND id = ?", (event.trigger, event.id))
    return found[0] if found else None


def _select(db: sqlite3.Connection, where: str, values: tuple[Any, ...] = ()) -> list[EventRecord]:
    return [
        EventRecord(TriggerEvent(trigger, json.loads(payload), id_, *said), state, owner, tries, note)
        for trigger, id_, state, payload, *said, owner, tries, note in db.execute(
            f"SELECT {_COLUMNS} FROM events WHERE {where}", values
        )
    ]


def _insert(
    db: sqlite3.Connection, event: TriggerEvent, state: State, *, owner: str = "", tries: int = 0
) -> bool:
    said = json.dumps(event.payload), event.time, event.message, event.session
    db.execute(
        f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')",
        (event.trigger, event.id, state, *said, owner, tries),
    )
    return True


def _move(db: sqlite3.Connection, trigger: str, at: float) -> bool:
    db.execute("INSERT OR IGNORE INTO marks VALUES (?, 0)", (trigger,))
    moved = db.execute("UPDATE marks SET at = ? WHERE trigger = ? AND at < ?", (at, trigger, at))
    return moved.rowcount == 1
