"""The databases that hold a ledger: a SQLite file, or tables beside tapes in PostgreSQL."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from functools import cache, partial
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from hookline.tape.sqlite.schema import transaction

from .ledger import QUEUES, TABLES, StepResult, Steps, Values

if TYPE_CHECKING:
    from hookline.tape.postgres.connection import Connection
    from hookline.tape.postgres.store import PostgresStore

T = TypeVar("T")

Using: TypeAlias = Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]]
"""Does something with the connection to a SQLite file."""

_SQLITE: Final = {
    "table": "inbox",
    "marks": "marks",
    "prefix": "inbox",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "text": "TEXT",
    "real": "REAL",
    "now": ":now",
}


def make_tables(db: sqlite3.Connection) -> None:
    """Make the tables of a ledger whose records may wait, in a SQLite file."""
    _make(db, TABLES + QUEUES)


def _make(db: sqlite3.Connection, tables: str = TABLES) -> None:
    for statement in tables.format_map(_SQLITE).split(";"):
        db.execute(statement)


class SQLiteLedgerStorage:
    """A ledger in a SQLite file, for the processes of one machine. The first call makes its tables."""

    def __init__(self, using: Using, *, clock: Callable[[], float] = time) -> None:
        self._use = using
        self._clock = clock
        self._is_ready = False

    async def step(self, statement: str, values: Values) -> StepResult:
        """Execute one statement."""
        values["now"] = self._clock()
        return await self._using(lambda db: _execute(db, statement, values))

    async def _using(self, action: Callable[[sqlite3.Connection], T]) -> T:
        if not self._is_ready:
            await self._use(_make)
            self._is_ready = True
        return await self._use(action)

    async def run(self, call: Callable[[], Steps[T]]) -> T:
        """Execute the steps of a call in one transaction."""

        def action(db: sqlite3.Connection) -> T:
            with transaction(db):
                steps = call()
                try:
                    step = next(steps)
                    while True:
                        step = steps.send(_execute(db, *step))
                except StopIteration as end:
                    return end.value

        return await self._using(action)


def _execute(db: sqlite3.Connection, statement: str, values: Values) -> StepResult:
    done = db.execute(_in_sqlite(statement), values)
    return StepResult(done.fetchall(), done.rowcount, done.lastrowid or 0)


@cache
def _in_sqlite(statement: str) -> str:
    return statement.format_map(_SQLITE)


class PostgresLedgerStorage:
    """A ledger in the schema of a tape, for the processes of several machines.

    The first call makes its tables. The clock is the server's, which all machines share.
    """

    def __init__(self, store: PostgresStore, part: str, name: str) -> None:
        self._store = store
        self._part = part
        self._name = name
        self._opening = asyncio.Lock()
        self._is_ready = False

    async def step(self, statement: str, values: Values) -> StepResult:
        """Execute one statement; on a lost connection, again."""
        return await self._call(lambda connection: self._execute(connection, statement, values))

    async def run(self, call: Callable[[], Steps[T]]) -> T:
        """Execute the steps of a call in one transaction; on a lost connection, start it again."""

        async def action(connection: Connection) -> T:
            async with connection.transaction():
                steps = call()
                try:
                    step = next(steps)
                    while True:
                        step = steps.send(await self._execute(connection, *step))
                except StopIteration as end:
                    return end.value

        return await self._call(action)

    async def _call(self, action: Callable[[Connection], Awaitable[T]]) -> T:
        run = partial(self._store.database.run, "keep events beside")
        if not self._is_ready:
            async with self._opening:
                await run(self._prepare)
                self._is_ready = True
        return await run(action)

    async def _execute(self, connection: Connection, statement: str, values: Values) -> StepResult:
        from hookline.tape.postgres.tables import within

        text = within(_in_postgres(statement, self._name), self._store.schema)
        done = await connection.execute(text, values)
        return StepResult(await done.fetchall() if done.description else [], done.rowcount)

    async def _prepare(self, connection: Connection) -> None:
        """Make the tables if there are none, and refuse those of another version."""
        from hookline.tape.postgres.schema import check, migrate, version_of

        schema, steps = self._store.schema, postgres_tables(self._name)
        version = await version_of(connection, schema, self._part, steps)
        if version.present == 0:
            await migrate(connection, schema, self._part, steps)
            version = await version_of(connection, schema, self._part, steps)
        check(version, schema, self._store.database.place)


def postgres_tables(name: str) -> list[str]:
    """What leads from each version of the tables to the next. Never change one that was released."""
    return [(TABLES + QUEUES).format_map(_postgres(name))]


@cache
def _in_postgres(statement: str, name: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", statement).format_map(_postgres(name))


@cache
def _postgres(name: str) -> dict[str, str]:
    return {
        "table": f"{{schema}}.{name}_events",
        "marks": f"{{schema}}.{name}_marks",
        "prefix": f"{name}_events",
        "serial": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "text": 'text COLLATE "C"',
        "real": "double precision",
        "now": "extract(epoch FROM clock_timestamp())::double precision",
    }
