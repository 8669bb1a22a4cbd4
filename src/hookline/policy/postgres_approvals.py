"""Approvals in PostgreSQL, in tables of their own beside the tape's: for machines that share sessions.

A question that one of them asks is answered on any, and a grant counts on all.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import RLock, Timer
from time import time
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from hookline.errors import ApprovalError, TapeError
from hookline.tape.postgres.connection import Connection as AsyncConnection
from hookline.tape.postgres.connection import Database, hang_up, options_of
from hookline.tape.postgres.failures import place_of, told
from hookline.tape.postgres.schema import check, check_name, claim, lock_of, migrate, version_of
from hookline.tape.settings import TapeSettings, home_id

from .approval_storage import ApprovalTransaction, Rows

PART: Final = "approvals"
DOING: Final = "use the approvals beside"
# `rowid` is the insertion order, which SQLite provides under this name.
MIGRATIONS: Final[list[str]] = [
    """
    CREATE TABLE {schema}.approval_questions (
        rowid bigint GENERATED ALWAYS AS IDENTITY, id text COLLATE "C" PRIMARY KEY,
        asked double precision NOT NULL, expires double precision NOT NULL,
        hash text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL,
        call_id text COLLATE "C" NOT NULL, request text NOT NULL, answered double precision,
        approved boolean, answer text, reason text, by text
    );
    CREATE INDEX approval_questions_calls ON {schema}.approval_questions (session_id, call_id);
    CREATE INDEX approval_questions_ends ON {schema}.approval_questions (expires);
    CREATE TABLE {schema}.approval_grants (
        rowid bigint GENERATED ALWAYS AS IDENTITY, id text COLLATE "C" PRIMARY KEY, question text,
        hash text COLLATE "C" NOT NULL, tool text NOT NULL, call text NOT NULL,
        session_id text COLLATE "C" NOT NULL, call_id text COLLATE "C",
        workspace text COLLATE "C" NOT NULL, who text NOT NULL, scope text NOT NULL,
        until double precision,
        by text NOT NULL, made double precision NOT NULL, used double precision,
        revoked double precision
    );
    CREATE INDEX approval_grants_hashes ON {schema}.approval_grants (hash);
    """
]
"""What leads from each version of these tables to the next. Never change one that was released."""

_START = """
    SELECT set_config('statement_timeout', ?, false),
    set_config('idle_in_transaction_session_timeout', ?, false),
    extract(epoch FROM clock_timestamp())::double precision
"""

_Connection: TypeAlias = psycopg.Connection[TupleRow]


class PostgresApprovals:
    """Approvals in the schema of a tape, over one connection that is opened on first use.

    A lost connection is replaced once, before any statement has run. A loss in the middle of a change
    is an error, and the caller has no approval.
    """

    def __init__(self, settings: TapeSettings, home: Path) -> None:
        assert settings.url is not None
        self._settings = settings
        self._home = home
        self._url = settings.url.get_secret_value()
        self._schema = settings.schema_
        self._place = place_of(self._url)
        self._tables = {
            "questions": sql.Identifier(self._schema, "approval_questions"),
            "grants": sql.Identifier(self._schema, "approval_grants"),
        }
        self._lock = RLock()
        self._connection: _Connection | None = None
        self._ahead = 0.0
        """How far the clock of the database is before the one of this machine."""
        self._prepared = False

    @property
    def place(self) -> str:
        """Where the approvals are, without the password."""
        return f"{self._place} schema {self._schema}"

    @property
    def empty(self) -> bool:
        """Only the database knows."""
        return False

    def now(self) -> float:
        """The time of the database: machines may differ, and a grant ends on all of them at once."""
        with self._lock, self._telling():
            self._ready()
            return time() + self._ahead

    def read(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a single statement; it is made again where the connection was lost."""
        with self._lock, self._telling():
            try:
                return self._on(self._ready()).read(statement, values)
            except psycopg.OperationalError:
                if not self._lost():
                    raise
                return self._on(self._ready()).read(statement, values)

    @contextmanager
    def transaction(self, *, alone: bool = False) -> Generator[ApprovalTransaction]:
        """Run changes. Another change of the same row waits."""
        with self._lock, self._telling():
            db = self._begun()
            try:
                if alone:
                    db.write("SELECT pg_advisory_xact_lock(?)", (lock_of(f"{self._schema}:{PART}"),))
                yield db
            except BaseException:
                if not self._lost():
                    db.write("ROLLBACK")
                raise
            db.write("COMMIT")

    def close(self) -> None:
        """Close the connection; the next call makes another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # --- the connection -------------------------------------------------------------------------

    def _begun(self) -> _Statements:
        try:
            db = self._on(self._ready())
            db.write("BEGIN")
        except psycopg.OperationalError:
            if not self._lost():
                raise
            db = self._on(self._ready())
            db.write("BEGIN")
        return db

    def _on(self, connection: _Connection) -> _Statements:
        return _Statements(connection, self._tables, 1.5 * self._settings.statement_timeout)

    def _lost(self) -> bool:
        """Whether there was a connection, and it broke."""
        return self._connection is not None and self._connection.closed

    def _ready(self) -> _Connection:
        if not self._prepared:
            self._prepare()
            self._prepared = True
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> _Connection:
        timeout = self._settings.timeout
        connection = psycopg.connect(self._url, **options_of(timeout))
        try:
            limits = (self._settings.statement_timeout, timeout)
            values = [str(max(1, round(seconds * 1000))) for seconds in limits]
            ((_, _, there),) = self._on(connection).read(_START, values)
        except BaseException:
            connection.close()
            raise
        self._ahead = there - time()
        return connection

    def _prepare(self) -> None:
        """Make the tables, and refuse those of another version or another home."""
        check_name(self._schema)
        # The tape does this with asyncio, and where we are a loop may run: a new thread has none.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._prepared_tables()).result()

    async def _prepared_tables(self) -> None:
        settings = self._settings
        name = settings.home or home_id(self._home)
        where = f"{socket.gethostname()}:{self._home.absolute()}"

        async def prepare(connection: AsyncConnection) -> None:
            async with connection.transaction():  # who is refused has made nothing
                version = await version_of(connection, self._schema, PART, MIGRATIONS)
                if version.present < version.known:
                    await migrate(connection, self._schema, PART, MIGRATIONS)
                    version = await version_of(connection, self._schema, PART, MIGRATIONS)
                check(version, self._schema, f"the approvals in {self._place}")
                await claim(connection, self._schema, name, self._place, where=where)

        database = Database(
            self._url,
            pool_size=1,
            timeout=settings.timeout,
            statement_timeout=settings.statement_timeout,
        )
        try:
            await database.run(DOING, prepare)
        finally:
            await database.close()

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate == "25006":  # after a failover: the next one may reach the primary
                self.close()
            raise ApprovalError(str(told(error, self._place, DOING))) from error
        except TapeError as error:
            raise ApprovalError(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise ApprovalError(f"the approvals in {self.place} cannot be used: {error}") from error


class _Statements:
    """Runs statements on a connection, which is closed if the server is silent for too long."""

    def __init__(
        self, connection: _Connection, tables: dict[str, sql.Identifier], limit: float
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._limit = limit

    def read(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        with self._hanging_up():
            return self._execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Any] = ()) -> int:
        with self._hanging_up():
            return self._execute(statement, values).rowcount

    def _execute(self, statement: str, values: Sequence[Any]) -> psycopg.Cursor[TupleRow]:
        text: Any = statement.replace("?", "%s")
        return self._connection.execute(sql.SQL(text).format(**self._tables), values)

    @contextmanager
    def _hanging_up(self) -> Generator[None]:
        timer = Timer(self._limit, hang_up, (self._connection,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
