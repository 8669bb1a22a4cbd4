"""Connections to PostgreSQL: a pool, time limits, and going on after the connection was lost."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from .errors import TapeClosed, TapeError, TapeUnavailable, TapeUncertain
from .postgres_errors import is_final, place_of, told

T = TypeVar("T")

# What the pool says about a lost connection is for logs; people are told by the error.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

Connection: TypeAlias = AsyncConnection[TupleRow]


class Lost(Exception):
    """The connection broke: what was under way may or may not have been done."""


class Database:
    """One PostgreSQL database, reached through a pool of connections of one event loop.

    Connections commit each statement by itself, unless `connection.transaction()` says otherwise.
    `timeout` is how long to wait for the database when it cannot be reached, or for a connection of
    the pool; `statement_timeout` how long one call may take.
    """

    def __init__(
        self, url: str, *, pool_size: int = 10, timeout: float = 10.0, statement_timeout: float = 60.0
    ) -> None:
        self.place = place_of(url)
        """Where it is, without the password."""
        self._timeout = timeout
        self._statement_timeout = statement_timeout
        self._url = url
        self._options: dict[str, Any] = {
            "autocommit": True,
            "application_name": "hookline",
            "connect_timeout": max(2, round(timeout / 2)),
            "tcp_user_timeout": round(timeout * 1000),
            "keepalives_idle": 30,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        }
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            kwargs=self._options,
            min_size=0,
            max_size=pool_size,
            open=False,
            configure=self._configure,
            timeout=timeout,
            reconnect_timeout=timeout,
            name="tape",
        )

    async def open(self) -> None:
        """Begin to connect when needed."""
        await self._pool.open()

    async def close(self) -> None:
        """Close all connections. Closing twice does no harm."""
        await self._pool.close(timeout=self._timeout)

    async def connect(self) -> Connection:
        """A connection of its own, outside the pool; what is wrong is told."""
        try:
            connection = await AsyncConnection.connect(self._url, **self._options)
            await self._configure(connection)
        except psycopg.Error as error:
            raise told(error, self.place, "open") from error
        return connection

    async def _configure(self, connection: Connection) -> None:
        # They also free what a client held that vanished without a word.
        limits = {
            "statement_timeout": self._statement_timeout,
            "idle_in_transaction_session_timeout": self._timeout,
        }
        for name, seconds in limits.items():
            milliseconds = str(max(1, round(seconds * 1000)))
            await connection.execute("SELECT set_config(%s, %s, false)", (name, milliseconds))

    @contextmanager
    def telling(self, doing: str) -> Generator[None]:
        """Raise what the database raises as an error of the tape."""
        try:
            yield
        except Lost as lost:
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
        pause = 0.01
        while True:
            try:
                async with self._lent() as connection:
                    began = True
                    return await action(connection)
            except Lost as lost:
                deadline = deadline or clock() + self._timeout
                if clock() > deadline:
                    raise self._gave_up(_cause(lost), doing, sure) from lost.__cause__
            except psycopg.Error as error:
                raise told(error, self.place, doing) from error
            except TapeUnavailable as error:
                if began and not sure:
                    raise TapeUncertain(f"{error}; {_UNKNOWN}") from error
                raise
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 0.5)

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[Connection]:
        """A connection of the pool, which hangs up when it takes too long."""
        try:
            connection = await self._pool.getconn()
        except PoolClosed as error:
            raise TapeClosed from error
        except PoolTimeout as error:
            raise await self._reason() from error
        timer = asyncio.get_running_loop().call_later(self._statement_timeout, _hang_up, connection)
        try:
            yield connection
        except psycopg.Error as error:
            if connection.closed or connection.broken:
                raise Lost from error
            if error.sqlstate == "25006":  # after a failover: the next one may reach the primary
                await connection.close()
            raise
        finally:
            timer.cancel()
            await self._pool.putconn(connection)

    async def _reason(self) -> TapeError:
        """Why there was no connection: the pool does not say."""
        try:
            connection = await self.connect()
        except TapeError as error:
            return error
        await connection.close()
        return TapeUnavailable(
            f"cannot use the tape: {self.place} had no free connection for {self._timeout:g} s; "
            "raise [tape] pool_size"
        )

    def _gave_up(self, cause: Exception, doing: str, sure: bool) -> TapeError:
        error = told(cause, self.place, doing)
        return error if sure or is_final(cause) else TapeUncertain(f"{error}; {_UNKNOWN}")


_UNKNOWN = "whether it was appended is not known: refresh the tape, and see"


def _cause(lost: Lost) -> Exception:
    return lost.__cause__ if isinstance(lost.__cause__, Exception) else lost


def _hang_up(connection: Connection) -> None:
    """End the connection under whoever waits for it; a cancellation would wait for the server."""
    if connection.closed:
        return
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
        try:
            line.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was faster
