"""Procrastinate on the tape's database, with the tape's connections and errors.

Two homes in one database have separate schemas. PostgreSQL notifications know neither schemas nor
privileges, so the names of queues and channels contain a key stored in the schema.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from procrastinate import App
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException, NoResult, UniqueViolation
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from hookline.errors import TapeError
from hookline.tape.postgres.connection import Connection
from hookline.tape.postgres.store import PostgresStore

from .jobs import Jobs

log = logging.getLogger("hookline.serve.cluster")

FORMAT: Final = 1
"""The version of jobs and of the inbox. A worker takes jobs of its version and earlier ones."""
_TRIES: Final = 3
QUIET: Final = 30.0
"""Seconds of silence after which a listening connection is checked."""


def name_of(store: PostgresStore, kind: str) -> str:
    """The name of a queue or notification channel of this schema. Another home cannot guess it."""
    return f"hookline_{store.channel_key[:16]}_{kind}"


def queue_of(store: PostgresStore, form: int = FORMAT) -> str:
    """The queue of jobs of one version."""
    return name_of(store, f"turns{form}")


class Connector(BaseAsyncConnector):
    """Runs procrastinate's statements on the tape's pool."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def open_async(self, pool: Any = None) -> None:
        """Do nothing: the store is already open."""

    async def close_async(self) -> None:
        """Do nothing: the store closes itself."""

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        """Run a statement."""
        await self._rows(query, arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        """Return the first row of a statement."""
        for _ in range(_TRIES):
            try:
                return _first(await self._rows(query, arguments))
            except (
                UniqueViolation
            ):  # two workers took jobs of one session at once, and the other was faster
                continue
        return _first(await self._rows(query, arguments))

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement."""
        return await self._rows(query, arguments)

    async def _rows(self, query: Any, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        values = {name: _sent(value) for name, value in arguments.items()}

        async def rows(connection: Connection) -> list[dict[str, Any]]:
            async with connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(query, values)
                return await cursor.fetchall() if cursor.description else []

        try:
            return await self._store.database.run("use", rows)
        except psycopg.errors.UniqueViolation as error:
            raise UniqueViolation(
                constraint_name=error.diag.constraint_name or "", queueing_lock=None
            ) from error
        except (TapeError, psycopg.Error) as error:
            raise ConnectorException(str(error)) from error


async def listen(
    store: PostgresStore,
    channels: list[str],
    heard: Callable[[str, str], Awaitable[None]],
    *,
    opened: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Listen until cancelled, on a separate connection that is reopened when it is lost.

    `opened` is called for each new connection: notifications sent before it are lost.
    """
    failures = 0
    while True:
        try:
            async with _listening(store, channels) as connection:
                if opened is not None:
                    await opened()
                failures = 0
                while True:
                    async for notice in connection.notifies(timeout=QUIET):
                        await heard(notice.channel, notice.payload)
                    await connection.execute("SELECT 1")
        except (TapeError, psycopg.Error) as error:
            log.warning("cluster.listening_again error=%s", error)
        failures += 1
        await asyncio.sleep(store.database.retry.delay(failures))


@asynccontextmanager
async def _listening(store: PostgresStore, channels: list[str]) -> AsyncGenerator[Connection]:
    connection = await store.database.connect()
    try:
        for name in channels:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(name)))
        yield connection
    finally:
        await connection.close()


def engine(store: PostgresStore) -> App:
    """Procrastinate for one store."""
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    made = App(connector=Connector(store))
    made.job_manager = Jobs(made.connector)
    return made


def _first(rows: list[dict[str, Any]]) -> dict[str, Any]:
    if not rows:
        raise NoResult
    return rows[0]


def _sent(value: Any) -> Any:
    """Convert objects to JSON, including those in a list of rows."""
    if isinstance(value, dict):
        return Jsonb(value)
    if isinstance(value, list):
        return [_sent(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        return tuple(_sent(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
    return value
