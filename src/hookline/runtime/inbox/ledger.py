"""The ledger: what was accepted and must be processed once, and which process has it in hand.

A message of a channel and an event of a trigger are recorded alike, under a source and an id there. It
is not part of the tape: an id must be unique across all sessions and processes before a turn starts,
and records change their state.

| state | meaning |
|---|---|
| `queued` | waits for a process to take it |
| `started` | a process took it and makes its turn |
| `failed` | its turn failed, and it may be tried again |
| `done` | its turn is over |
| `dead` | its turn failed for the last time, or no turn can be made of it |

Both databases run the same statements. A call of several is a generator, which the storage drives in
one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from os import urandom
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

LedgerState: TypeAlias = Literal["queued", "started", "failed", "done", "dead"]
Values: TypeAlias = dict[str, Any]


class StepResult(NamedTuple):
    """What the database answers to one statement."""

    rows: list[tuple[Any, ...]]
    changed: int
    """How many rows were changed."""
    number: int = 0
    """The number of a row that was inserted, if the database gives it without being asked."""


Steps: TypeAlias = Generator[tuple[str, Values], StepResult, T]
"""The statements of one call, each with its values; it returns the result of the call."""


class LedgerStorage(Protocol):
    """A database that holds a ledger: it fills in the fields of `{table}`, `{marks}` and `{now}`."""

    async def step(self, statement: str, values: Values) -> StepResult:
        """Execute one statement; on a lost connection, again."""
        ...

    async def run(self, call: Callable[[], Steps[T]]) -> T:
        """Execute the steps of a call in one transaction; on a lost connection, start it again."""
        ...


class LedgerRecord(NamedTuple):
    """One message or event, and its state."""

    number: int
    """Grows with every record: the order in which they were accepted."""
    source: str
    id: str
    state: LedgerState
    body: str
    """JSON; empty once it is done."""
    time: float
    owner: str = ""
    tries: int = 0
    note: str = ""
    """Why it failed, or how it ended."""


_FIELDS: Final = ", ".join(LedgerRecord._fields)

# `stamp` is the call that changed a row last: a call that is repeated knows its own work by it.
# `due` is the time when a failed one may be tried again, or when a settled one was settled.
TABLES: Final = """
    CREATE TABLE IF NOT EXISTS {table} (
        number {serial}, source {text} NOT NULL, id {text} NOT NULL, state {text} NOT NULL,
        body {text} NOT NULL, time {real} NOT NULL, owner {text} NOT NULL, tries integer NOT NULL,
        due {real} NOT NULL, note {text} NOT NULL, stamp {text} NOT NULL, UNIQUE (source, id)
    );
    CREATE INDEX IF NOT EXISTS {prefix}_owners ON {table} (owner, number) WHERE state = 'started';
"""
QUEUES: Final = """
    CREATE INDEX IF NOT EXISTS {prefix}_states ON {table} (source, state, number)
        WHERE state IN ('queued', 'failed', 'dead');
    CREATE TABLE IF NOT EXISTS {marks} (source {text} PRIMARY KEY, at {real} NOT NULL);
"""
"""What sources need whose records wait, fail or are bound to a time; messages do without it."""

_INSERT = """
    INSERT INTO {table} AS known (source, id, state, body, time, owner, tries, due, note, stamp)
    VALUES (:source, :id, :state, :body, :time, :owner, :tries, 0, :note, :stamp)
    ON CONFLICT (source, id) DO
"""
_ACCEPT = f"{_INSERT} NOTHING"
_CLAIM = f"""{_INSERT} UPDATE SET state = 'started', owner = excluded.owner, tries = known.tries + 1,
        stamp = excluded.stamp
    WHERE :again AND known.state IN ('queued', 'failed')
"""
_ENQUEUE = f"{_INSERT} UPDATE SET stamp = known.stamp WHERE known.stamp = excluded.stamp"
_BURY = f"""{_INSERT} UPDATE SET state = 'dead', note = excluded.note, stamp = excluded.stamp
    WHERE known.state IN ('queued', 'failed')
"""
_SELECT = f"SELECT {_FIELDS} FROM {{table}}"
_FIND = f"SELECT {_FIELDS}, stamp FROM {{table}} WHERE source = :source AND id = :id"
_WAITING = f"""{_SELECT} WHERE source = :source AND state IN ('queued', 'failed') AND due <= {{now}}
    ORDER BY number LIMIT 1
"""
_UNFINISHED = f"""{_SELECT} WHERE state = 'started' AND owner = :owner AND number > :after
    ORDER BY number LIMIT :limit
"""
_DEAD = f"{_SELECT} WHERE source = :source AND state = 'dead' ORDER BY number"
_SETTLE = """
    UPDATE {table} SET state = :state, note = :note, stamp = :stamp, due = {now} + :after,
        body = CASE WHEN :state = 'done' THEN '' ELSE body END
    WHERE source = :source AND id = :id
        AND (state = 'started' AND (owner = :owner OR :owner = '') OR stamp = :stamp)
"""
_TAKE_OVER = """
    UPDATE {table} SET owner = :owner, tries = :tries, stamp = :stamp
    WHERE source = :source AND id = :id AND state = 'started' AND (owner = :former OR stamp = :stamp)
"""
_TAKE_OVER_ALL = "UPDATE {table} SET owner = :owner WHERE owner = :former AND state = 'started'"
_REVIVE = """
    UPDATE {table} SET state = 'queued', tries = 0, due = 0, note = '', stamp = :stamp
    WHERE source = :source AND id = :id AND (state = 'dead' OR stamp = :stamp)
"""
_FORGET_BEYOND = """
    DELETE FROM {table} WHERE source = :source AND state = 'done' AND number <= (
        SELECT number FROM {table} WHERE source = :source ORDER BY number DESC LIMIT 1 OFFSET :keep)
"""
_FORGET_BEFORE = "DELETE FROM {table} WHERE state = 'done' AND due < :before"
_OWNERS = "SELECT owner FROM {table} WHERE state = 'started' GROUP BY owner ORDER BY min(number)"
_COUNTS = "SELECT state, count(*) FROM {table} WHERE source = :source GROUP BY state"
_MARK = "INSERT INTO {marks} VALUES (:source, :at) ON CONFLICT (source) DO NOTHING"
_READ_MARK = "SELECT at FROM {marks} WHERE source = :source"
_MOVE = """
    INSERT INTO {marks} AS known VALUES (:source, :at)
    ON CONFLICT (source) DO UPDATE SET at = excluded.at WHERE known.at < excluded.at
"""
_MOVE_BACK = "UPDATE {marks} SET at = :at WHERE source = :source"


class Ledger:
    """The records of all sources; several processes may use it at once."""

    def __init__(self, storage: LedgerStorage) -> None:
        self._storage = storage

    async def claim(
        self, record: LedgerRecord, *, again: bool = False, mark: float | None = None
    ) -> tuple[bool, LedgerRecord]:
        """Take a record for its owner, atomically. Returns whether that succeeded, and the record.

        `again` takes one that is queued or failed. With a `mark`, the mark of the source moves there
        too, and nothing is taken once the mark is there or further.
        """
        values = _stamped(record, again=again, at=mark)
        if not again and mark is None:  # the usual case, in one statement
            done = await self._storage.step(_ACCEPT, values)
            if done.changed:
                return True, record._replace(number=done.number)

        def call() -> Steps[tuple[bool, LedgerRecord]]:
            taken = (yield _CLAIM, values).changed == 1
            if taken and mark is not None and not (yield _MOVE, values).changed:
                raise _MarkPassed
            [(*found, stamp)] = (yield _FIND, values).rows
            return taken or stamp == values["stamp"], LedgerRecord(*found)

        try:
            return await self._storage.run(call)
        except _MarkPassed:
            return False, await self.find(record.source, record.id) or record._replace(state="done")

    async def enqueue(self, record: LedgerRecord) -> bool:
        """Let a record wait. Returns False if its id is known."""
        return await self._change(_ENQUEUE, _stamped(record)) == 1

    async def bury(self, record: LedgerRecord) -> None:
        """Make a dead letter of a record that no process has in hand."""
        await self._change(_BURY, _stamped(record))

    async def settle(
        self, source: str, name: str, owner: str, state: LedgerState, note: str = "", after: float = 0.0
    ) -> bool:
        """Set the state of a record that an owner has. Returns False if another owner has it.

        No owner means whoever has it. A failed one is due again `after` some seconds.
        """
        values = {"source": source, "id": name, "owner": owner, "state": state, "note": note}
        return await self._change(_SETTLE, {**values, "after": after, "stamp": _new_stamp()}) == 1

    async def take_over(self, record: LedgerRecord, owner: str) -> LedgerRecord | None:
        """Take a started record from its owner. Returns None if another process was faster."""
        taken = record._replace(owner=owner, tries=record.tries + 1)
        changed = await self._change(_TAKE_OVER, _stamped(taken, former=record.owner))
        return taken if changed else None

    async def take_over_all(self, former: str, owner: str) -> int:
        """Take everything that an owner has started. Returns how many records that are."""
        return await self._change(_TAKE_OVER_ALL, {"former": former, "owner": owner})

    async def revive(self, source: str, name: str) -> bool:
        """Let a dead letter wait again, as if it had never been tried."""
        return await self._change(_REVIVE, {"source": source, "id": name, "stamp": _new_stamp()}) == 1

    async def find(self, source: str, name: str) -> LedgerRecord | None:
        """One record."""
        rows = await self._read(_FIND, {"source": source, "id": name})
        return LedgerRecord(*rows[0][:-1]) if rows else None

    async def waiting(self, source: str) -> LedgerRecord | None:
        """The record that waited longest, of those that are due."""
        rows = await self._read(_WAITING, {"source": source})
        return LedgerRecord(*rows[0]) if rows else None

    async def unfinished(
        self, owner: str, *, after: int = 0, limit: int = 1_000_000
    ) -> list[LedgerRecord]:
        """The records that an owner took and did not settle, in order."""
        values = {"owner": owner, "after": after, "limit": limit}
        return [LedgerRecord(*row) for row in await self._read(_UNFINISHED, values)]

    async def dead(self, source: str) -> list[LedgerRecord]:
        """The dead letters of a source, the oldest first."""
        return [LedgerRecord(*row) for row in await self._read(_DEAD, {"source": source})]

    async def owners(self) -> list[str]:
        """The owners of unfinished records, the one with the oldest first."""
        return [owner for (owner,) in await self._read(_OWNERS, {})]

    async def counts(self, source: str) -> dict[str, int]:
        """How many records of a source are in each state."""
        return {row[0]: row[1] for row in await self._read(_COUNTS, {"source": source})}

    async def forget_beyond(self, source: str, keep: int) -> None:
        """Delete the oldest records of a source that are done, beyond those to keep."""
        await self._change(_FORGET_BEYOND, {"source": source, "keep": keep})

    async def forget_before(self, before: float) -> int:
        """Delete the records that were done before a time. Returns how many."""
        return await self._change(_FORGET_BEFORE, {"before": before})

    async def mark(self, source: str, now: float) -> float:
        """The mark of a source: how far it has come in time. A new source starts `now`."""
        values = {"source": source, "at": now}

        def call() -> Steps[float]:
            yield _MARK, values
            return (yield _READ_MARK, values).rows[0][0]

        return await self._storage.run(call)

    async def move_mark(self, source: str, at: float, *, back: bool = False) -> None:
        """Move the mark of a source forward, or `back` if the clock had been wrong."""
        await self._change(_MOVE_BACK if back else _MOVE, {"source": source, "at": at})

    async def _read(self, statement: str, values: Values) -> list[tuple[Any, ...]]:
        return (await self._storage.step(statement, values)).rows

    async def _change(self, statement: str, values: Values) -> int:
        return (await self._storage.step(statement, values)).changed


class _MarkPassed(Exception):
    """The mark of a source is there or further: the call is rolled back."""


def _new_stamp() -> str:
    return urandom(16).hex()


def _stamped(record: LedgerRecord, **more: Any) -> Values:
    """The values of a record, with a stamp of this call."""
    return record._asdict() | more | {"stamp": _new_stamp()}
