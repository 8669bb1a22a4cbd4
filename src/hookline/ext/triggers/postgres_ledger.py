"""The ledger beside tapes in PostgreSQL, for the processes of several machines.

Every step is one statement or one transaction, so that of many who want an event one gets it. A call is
made again when the connection was lost: it knows its own work by a stamp. Owners are present while
their connections live. When an event is due again is a matter of the server's clock, which all share.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import uuid4

from psycopg import Rollback

from hookline.hookspecs import TriggerEvent
from hookline.tape.postgres.append import storable
from hookline.tape.postgres.connection import Connection
from hookline.tape.postgres.presence import Presence, is_present
from hookline.tape.postgres.schema import check, migrate, version_of
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.postgres.tables import within

from .errors import TriggerError
from .ledger import KEPT, EventRecord, State

T = TypeVar("T")
Row = tuple[Any, ...]

PART: Final = "triggers"
LOOK_EVERY: Final = 10.0
"""Seconds between two looks for events of owners who are gone: longer than one takes to come back."""

# `stamp` is the call that changed a row last. `message` and `session` are JSON, which holds any text.
MIGRATIONS: Final[list[str]] = [
    """
    CREATE TABLE {schema}.trigger_events (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        trigger text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        state text NOT NULL,
        payload text NOT NULL,
        time double precision NOT NULL,
        message text NOT NULL,
        session text NOT NULL,
        owner text NOT NULL,
        tries integer NOT NULL,
        due timestamptz NOT NULL DEFAULT '-infinity',
        note text NOT NULL DEFAULT '',
        stamp text NOT NULL,
        UNIQUE (trigger, id)
    );
    CREATE INDEX trigger_events_states ON {schema}.trigger_events (trigger, state, seq);
    CREATE INDEX trigger_events_owners ON {schema}.trigger_events (owner) WHERE state = 'started';
    CREATE TABLE {schema}.trigger_marks (
        trigger text COLLATE "C" PRIMARY KEY, at double precision NOT NULL
    );
    """
]
"""What leads from each version of these tables to the next. Never change one that was released."""

_RECORD = "trigger, id, state, payload, time, message, session, owner, tries, note"
_INSERT = """
    INSERT INTO {schema}.trigger_events AS known
        (trigger, id, state, payload, time, message, session, owner, tries, note, stamp)
    VALUES (%(trigger)s, %(id)s, %(state)s, %(payload)s, %(time)s, %(message)s, %(session)s, %(owner)s,
        %(tries)s, %(note)s, %(stamp)s)
    ON CONFLICT (trigger, id) DO
"""
_CLAIM = f"""{_INSERT} UPDATE SET state = 'started', owner = excluded.owner, tries = known.tries + 1,
        stamp = excluded.stamp
    WHERE %(again)s AND known.state IN ('queued', 'failed')
    RETURNING {_RECORD}
"""
_ENQUEUE = f"{_INSERT} UPDATE SET stamp = known.stamp WHERE known.stamp = excluded.stamp RETURNING seq"
_BURY = f"""{_INSERT} UPDATE SET state = 'dead', note = excluded.note, stamp = excluded.stamp
    WHERE known.state IN ('queued', 'failed')
"""
_FIND = f"""
    SELECT {_RECORD}, stamp FROM {{schema}}.trigger_events WHERE trigger = %(trigger)s AND id = %(id)s
"""
_WAITING = f"""
    SELECT {_RECORD} FROM {{schema}}.trigger_events
    WHERE trigger = %(trigger)s AND state IN ('queued', 'failed') AND due <= clock_timestamp()
    ORDER BY seq LIMIT 1
"""
_SETTLE = """
    UPDATE {schema}.trigger_events SET state = %(state)s, note = %(note)s, stamp = %(stamp)s,
        due = clock_timestamp() + make_interval(secs => %(after)s),
        payload = CASE WHEN %(state)s = 'done' THEN '{{}}' ELSE payload END,
        message = CASE WHEN %(state)s = 'done' THEN 'null' ELSE message END
    WHERE trigger = %(trigger)s AND id = %(id)s
        AND (state = 'started' AND owner = %(owner)s OR stamp = %(stamp)s)
    RETURNING seq
"""
_TAKE_OVER = f"""
    UPDATE {{schema}}.trigger_events SET owner = %(owner)s, tries = %(tries)s, stamp = %(stamp)s
    WHERE trigger = %(trigger)s AND id = %(id)s AND state = 'started'
        AND (owner = %(former)s OR stamp = %(stamp)s)
    RETURNING {_RECORD}
"""
_REVIVE = """
    UPDATE {schema}.trigger_events
    SET state = 'queued', tries = 0, due = '-infinity', note = '', stamp = %(stamp)s
    WHERE trigger = %(trigger)s AND id = %(id)s AND (state = 'dead' OR stamp = %(stamp)s)
    RETURNING seq
"""
_FORGET = """
    DELETE FROM {schema}.trigger_events WHERE trigger = %(trigger)s AND state = 'done' AND seq <= (
        SELECT seq FROM {schema}.trigger_events WHERE trigger = %(trigger)s
        ORDER BY seq DESC LIMIT 1 OFFSET %(keep)s)
"""
_OWNERS = """
    SELECT owner FROM {schema}.trigger_events WHERE state = 'started' GROUP BY owner ORDER BY min(seq)
"""
_UNFINISHED = f"""
    SELECT {_RECORD} FROM {{schema}}.trigger_events
    WHERE state = 'started' AND owner = %(owner)s ORDER BY seq
"""
_DEAD = f"""
    SELECT {_RECORD} FROM {{schema}}.trigger_events
    WHERE trigger = %(trigger)s AND state = 'dead' ORDER BY seq
"""
_COUNTS = """
    SELECT state, count(*) FROM {schema}.trigger_events WHERE trigger = %(trigger)s GROUP BY state
"""
_MARK = """
    INSERT INTO {schema}.trigger_marks AS known VALUES (%(trigger)s, %(at)s)
    ON CONFLICT (trigger) DO UPDATE SET at = known.at RETURNING at
"""
_MOVE = """
    INSERT INTO {schema}.trigger_marks AS known VALUES (%(trigger)s, %(at)s)
    ON CONFLICT (trigger) DO UPDATE SET at = excluded.at WHERE known.at < excluded.at RETURNING at
"""
_MOVE_BACK = "UPDATE {schema}.trigger_marks SET at = %(at)s WHERE trigger = %(trigger)s"


class PostgresLedger:
    """A `Ledger` in the schema of a tape. Its tables are made by the first call."""

    look_every: float | None = LOOK_EVERY

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._presence: Presence | None = None
        self._opening = asyncio.Lock()
        self._is_ready = False

    async def close(self) -> None:
        """Let go of the owner who joined; the connections are the tape's."""
        await self.leave()

    # --- owners -------------------------------------------------------------------------------

    async def join(self, owner: str) -> None:
        """Let others know that an owner lives, on every machine."""
        async with self._opening:
            if self._presence is None:
                self._presence = await Presence.open(self._store, owner)

    async def leave(self) -> None:
        """Let others take over what the owner still has."""
        presence, self._presence = self._presence, None
        if presence is not None:
            await presence.close()

    async def is_present(self, owner: str) -> bool:
        """Whether an owner is connected."""
        return await is_present(self._store, owner)

    async def owners(self) -> list[str]:
        """Those who took events and did not settle them, in the order of the events."""
        return [owner for (owner,) in await self._fetch(_OWNERS, {})]

    # --- events -------------------------------------------------------------------------------

    async def claim(
        self, event: TriggerEvent, owner: str, *, again: bool = False, mark: float | None = None
    ) -> tuple[bool, EventRecord]:
        """Take an event, all or nothing; False where somebody has it or had it, and its record."""
        values = {**_values(event, "started", owner=owner, tries=1), "again": again, "at": mark}

        async def take(connection: Connection) -> tuple[bool, EventRecord]:
            async with connection.transaction():
                taken = await self._rows(connection, _CLAIM, values)
                if taken and mark is not None and not await self._rows(connection, _MOVE, values):
                    taken = []
                    raise Rollback
            if taken:
                return True, _record(taken[0])
            found = await self._rows(connection, _FIND, values)
            if not found:
                return False, EventRecord(event, "done")
            return found[0][-1] == values["stamp"], _record(found[0][:-1])

        return await self._run(take)

    async def enqueue(self, event: TriggerEvent) -> bool:
        """Let an event wait in its trigger's table; False where its id is known already."""
        return bool(await self._fetch(_ENQUEUE, _values(event, "queued")))

    async def waiting(self, trigger: str) -> TriggerEvent | None:
        """The event that waited longest, of those that are due."""
        rows = await self._fetch(_WAITING, {"trigger": trigger})
        return _record(rows[0]).event if rows else None

    async def settle(
        self, event: TriggerEvent, owner: str, state: State, note: str = "", *, after: float = 0.0
    ) -> bool:
        """Say what became of an event that an owner has; False where another has taken it over."""
        values = {**_values(event, state, owner=owner, note=note), "after": after}
        return bool(await self._fetch(_SETTLE, values))

    async def bury(self, event: TriggerEvent, note: str) -> None:
        """Make a dead letter of an event that nobody has in hand."""
        await self._execute(_BURY, _values(event, "dead", note=note))

    async def unfinished(self, owner: str) -> list[EventRecord]:
        """The events that an owner took and did not settle."""
        return [_record(row) for row in await self._fetch(_UNFINISHED, {"owner": owner})]

    async def take_over(self, record: EventRecord, owner: str) -> EventRecord | None:
        """Take an unfinished event from an owner who is gone; None where another was faster."""
        values = _values(record.event, "started", owner=owner, tries=record.tries + 1)
        rows = await self._fetch(_TAKE_OVER, {**values, "former": record.owner})
        return _record(rows[0]) if rows else None

    async def find(self, trigger: str, event_id: str) -> EventRecord | None:
        """One event's record."""
        if not storable(event_id):
            return None
        rows = await self._fetch(_FIND, {"trigger": trigger, "id": event_id})
        return _record(rows[0][:-1]) if rows else None

    async def dead(self, trigger: str) -> list[EventRecord]:
        """The dead letters of a trigger, the oldest first."""
        return [_record(row) for row in await self._fetch(_DEAD, {"trigger": trigger})]

    async def revive(self, trigger: str, event_id: str) -> bool:
        """Let a dead letter wait again, as if it had never been tried."""
        if not storable(event_id):
            return False
        values = {"trigger": trigger, "id": event_id, "stamp": uuid4().hex}
        return bool(await self._fetch(_REVIVE, values))

    async def counts(self, trigger: str) -> dict[str, int]:
        """How many events of a trigger are in each state."""
        return {row[0]: row[1] for row in await self._fetch(_COUNTS, {"trigger": trigger})}

    async def forget(self, trigger: str, keep: int = KEPT) -> None:
        """Forget the oldest events that are over, beyond those that are kept."""
        await self._execute(_FORGET, {"trigger": trigger, "keep": keep})

    # --- marks --------------------------------------------------------------------------------

    async def mark(self, trigger: str, now: float) -> float:
        """How far a trigger has come in time; from now on, where it was never seen."""
        return (await self._fetch(_MARK, {"trigger": trigger, "at": now}))[0][0]

    async def move_mark(self, trigger: str, at: float, *, back: bool = False) -> None:
        """Move a trigger's mark forward, or `back` where the clock had been wrong."""
        await self._execute(_MOVE_BACK if back else _MOVE, {"trigger": trigger, "at": at})

    # --- how a call is made -------------------------------------------------------------------

    async def _fetch(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        return await self._run(lambda connection: self._rows(connection, statement, values))

    async def _execute(self, statement: str, values: Mapping[str, Any]) -> None:
        async def execute(connection: Connection) -> None:
            await connection.execute(within(statement, self._store.schema), values)

        await self._run(execute)

    async def _rows(
        self, connection: Connection, statement: str, values: Mapping[str, Any]
    ) -> list[Row]:
        done = await connection.execute(within(statement, self._store.schema), values)
        return await done.fetchall()

    async def _run(self, action: Callable[[Connection], Awaitable[T]]) -> T:
        if not self._is_ready:
            async with self._opening:
                await self._store.database.run("keep events beside", self._prepare)
                self._is_ready = True
        return await self._store.database.run("keep events beside", action)

    async def _prepare(self, connection: Connection) -> None:
        """Make the tables where there are none, and refuse those of another version."""
        schema = self._store.schema
        version = await version_of(connection, schema, PART, MIGRATIONS)
        if version.present == 0:
            await migrate(connection, schema, PART, MIGRATIONS)
            version = await version_of(connection, schema, PART, MIGRATIONS)
        check(version, schema, self._store.database.place)


def _values(
    event: TriggerEvent, state: State, *, owner: str = "", tries: int = 0, note: str = ""
) -> dict[str, Any]:
    """What a statement needs of an event, with a stamp of this call."""
    if not storable(event.trigger) or not storable(event.id):
        raise TriggerError(
            f"the event {event.id!r} of trigger {event.trigger!r} cannot be kept in PostgreSQL; "
            "give it an id without NUL and half characters"
        )
    return {
        "trigger": event.trigger,
        "id": event.id,
        "state": state,
        "payload": json.dumps(event.payload),
        "time": event.time,
        "message": json.dumps(event.message),
        "session": json.dumps(event.session),
        "owner": owner,
        "tries": tries,
        "note": note if storable(note) else repr(note),
        "stamp": uuid4().hex,
    }


def _record(row: Row) -> EventRecord:
    trigger, event_id, state, payload, time, message, session, owner, tries, note = row
    said = json.loads(message), json.loads(session)
    event = TriggerEvent(trigger, json.loads(payload), event_id, time, *said)
    return EventRecord(event, state, owner, tries, note)
