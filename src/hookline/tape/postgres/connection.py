"""Connections to PostgreSQL: a pool, time limits, and going on after the connection was lost."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from hookline.errors import TapeClosed, TapeUnavailable, TapeUncertain
from hookline.system.retry import RetryPolicy

from .failures import is_final, place_of, told

T = TypeVar("T")

RECONNECT: Final = RetryPolicy(first=0.02, max=1.0)

Connection: TypeAlias = AsyncConnection[TupleRow]


class _Lost(Exception):
    """The connection broke: the statement may or may not have been executed."""


class Database:
    """One PostgreSQL database, reached through a pool of connections of one event loop.

    Connections commit each statement by itself, unless `connection.transaction()` says otherwise.
    `timeout` is how long to wait for the database when it cannot be reached, or for a connection of
    the pool; `statement_timeout` how long one call may take. Names without a schema are looked for in
    `schema`.

    The caller that needs a connection makes it, and so learns at once why it cannot. `psycopg_pool`
    connects in tasks of its own, and its callers wait for the timeout and get no reason.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "",
        pool_size: int = 10,
        timeout: float = 10.0,
        statement_timeout: float = 60.0,
        retry: RetryPolicy = RECONNECT,
    ) -> None:
        self.place = place_of(url)
        """Its address, without the password."""
        self.retry = retry
        """The delays between attempts to reach it; `timeout` ends them."""
        self._schema = schema
        self._timeout = timeout
        self._statement_timeout = statement_timeout
        self.url = url
        """Its address with the password, for another connection; never show it."""
        self._options = options_of(timeout)
        self.on_connect: list[Callable[[], None]] = []
        """Called when the pool has a new connection: after a failover it leads to another server, which
        may lack the last that the old one had."""
        self._slots = asyncio.Semaphore(pool_size)
        self._idle: list[Connection] = []
        self._closed = False

    async def close(self) -> None:
        """Close all connections, those in use when they are given back. Twice does no harm."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def connect(self) -> Connection:
        """A separate connection, outside the pool; errors are explained."""
        with self.telling("open"):
            return await self._connect()

    async def _connect(self) -> Connection:
        connection = await AsyncConnection.connect(self.url, **self._options)
        try:
            # These limits also free resources of a client that vanished silently.
            await connection.execute(
                "SELECT set_config('statement_timeout', %s, false), "
                "set_config('idle_in_transaction_session_timeout', %s, false), "
                "set_config('search_path', coalesce(nullif(%s, ''), current_setting('search_path')), "
                "false)",
                (_milliseconds(self._statement_timeout), _milliseconds(self._timeout), self._schema),
            )
        except BaseException:
            await connection.close()
            raise
        return connection

    @contextmanager
    def telling(self, doing: str) -> Generator[None]:
        """Raise what the database raises as an error of the tape."""
        try:
            yield
        except _Lost as lost:
            raise told(_cause(lost), self.place, doing) from lost.__cause__
        except psycopg.Error as error:
            raise told(error, self.place, doing) from error

    @asynccontextmanager
    async def connection(self, doing: str = "use") -> AsyncGenerator[Connection]:
        """A connection of the pool; errors of the database are raised as errors of the tape."""
        with self.telling(doing):
            async with self._lent() as connection:
                yield connection

    async def run(
        self, doing: str, action: Callable[[Connection], Awaitable[T]], *, sure: bool = True
    ) -> T:
        """Do it, and again when the connection was lost, until the time is over.

        `action` may be called more than once, and may find done what an earlier call did. Where that
        is an append, `sure` is False: when the time is over the outcome is not known.
        """
        clock = asyncio.get_running_loop().time
        deadline = 0.0
        began = False
        failures = 0
        while True:
            try:
                async with self._lent() as connection:
                    began = True
                    return await action(connection)
            except _Lost as lost:
                deadline = deadline or clock() + self._timeout
                if clock() > deadline:
                    error = told(_cause(lost), self.place, doing)
                    if sure or not began:
                        raise error from lost.__cause__
                    raise TapeUncertain(f"{error}; {_UNKNOWN}") from lost.__cause__
            except psycopg.Error as error:
                raise told(error, self.place, doing) from error
            failures += 1
            await asyncio.sleep(self.retry.delay(failures))

    def _lent(self) -> _Lent:
        """A connection of the pool, which hangs up when it takes too long."""
        return _Lent(self)

    async def lend(self) -> tuple[Connection, asyncio.TimerHandle]:
        """A connection of the pool, and the timer that hangs it up."""
        if self._closed:
            raise TapeClosed
        await self._take_slot()
        try:
            connection = await self._ready()
        except BaseException:
            self._slots.release()
            raise
        # The server ends a long statement itself, and says so; this is for one that says nothing.
        limit = 1.5 * self._statement_timeout
        return connection, asyncio.get_running_loop().call_later(limit, hang_up, connection)

    async def _take_slot(self) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(self._timeout):
                await self._slots.acquire()
        except TimeoutError:
            raise TapeUnavailable(
                f"cannot use the tape: {self.place} had no free connection for {self._timeout:g} s; "
                "raise [tape] pool_size"
            ) from None

    async def _ready(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        try:
            connection = await self._connect()
        except psycopg.OperationalError as error:
            if is_final(error):
                raise
            raise _Lost from error
        for tell in self.on_connect:
            tell()
        return connection

    async def give_back(self, connection: Connection) -> None:
        """Take back a connection; an unusable one is closed."""
        try:
            idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
            if idle and not self._closed:
                self._idle.append(connection)
            else:  # broken, or in the middle of something
                await connection.close()
        finally:
            self._slots.release()


class _Lent:
    """A connection while it is lent. A class, since each statement of each turn comes through here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __aenter__(self) -> Connection:
        self._connection, self._timer = await self._database.lend()
        return self._connection

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._timer.cancel()
        connection = self._connection
        try:
            if isinstance(error, psycopg.Error):
                if connection.closed:
                    raise _Lost from error
                if error.sqlstate == "25006":  # after a failover: the next one may reach the primary
                    await connection.close()
        finally:
            await self._database.give_back(connection)


_UNKNOWN = "whether it was appended is not known: refresh the tape, and see"


def options_of(timeout: float) -> dict[str, Any]:
    """The arguments of a connection that waits this many seconds for its server."""
    return {
        "autocommit": True,
        "application_name": "hookline",
        "connect_timeout": max(2, round(timeout / 2)),
        "tcp_user_timeout": round(timeout * 1000),
        "keepalives_idle": 30,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


def _cause(lost: _Lost) -> Exception:
    return lost.__cause__ if isinstance(lost.__cause__, Exception) else lost


def hang_up(connection: Connection | psycopg.Connection[TupleRow]) -> None:
    """Close the connection that someone waits on; a cancellation would wait for the server."""
    try:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
            line.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        pass  # it ended by itself, or the other side was faster
