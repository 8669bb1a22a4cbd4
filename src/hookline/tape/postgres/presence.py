"""Who is there: names that processes hold in PostgreSQL for as long as they live.

    presence = await Presence.open(store, "gateway-1")
    await is_present(store, "gateway-1")             # True, on every machine

A name is an advisory lock of a connection of its own. The server lets go of it when the process ends or
the connection breaks, however that happens, so no clock is needed to find out. A connection pooler that
shares connections between clients (PgBouncer's `transaction` mode) cannot keep such locks.
"""

from __future__ import annotations

import asyncio
import logging
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import psycopg

from hookline.errors import TapeError
from hookline.system.retry import RetryPolicy

from .connection import Connection

if TYPE_CHECKING:
    from .store import PostgresStore

log = logging.getLogger("hookline.tape")

RETURN: Final = RetryPolicy(first=0.05, max=2.0)
"""The delays between attempts to take a name again. No setting changes them: a process that considers
a free name to be that of a dead process must have seen it free for longer than the longest delay."""

# The lock is shared: a process that comes back before the server has noticed that its old connection is
# dead need not wait for that. No one ever takes the exclusive one.
_HOLD: Final = "SELECT pg_advisory_lock_shared(%s)"
# Machines that lose their power say no goodbye: let the server find out within half a minute. A setting
# that a server does not know is left out.
_SETTINGS: Final = """
    SELECT set_config(name, wanted, false) FROM pg_settings JOIN (VALUES
        ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
        ('tcp_user_timeout', '25000'), ('idle_session_timeout', '0')
    ) AS chosen (name, wanted) USING (name)
"""
_LOOK: Final = """
    SELECT EXISTS (SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint << 32 | objid::bigint = %s)
"""


class Presence:
    """Holds a name until it is closed, over every loss of the connection.

    Close it before the store. Several may hold the same name: it is there while one of them is.
    """

    def __init__(self, store: PostgresStore, name: str) -> None:
        self.name = name
        self._store = store
        self._connection: Connection | None = None
        self._keeping: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, store: PostgresStore, name: str) -> Presence:
        """Hold the name from now on."""
        presence = cls(store, name)
        presence._connection = await presence._taken()
        presence._keeping = asyncio.create_task(presence._keep(), name=f"presence:{name}")
        return presence

    @property
    def held(self) -> bool:
        """Whether the name is held, as far as is known here; False while the database is away."""
        return self._connection is not None

    async def close(self) -> None:
        """Release the name. Calling it twice does no harm."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
            self._keeping = None
        await self._let_go()

    async def _keep(self) -> None:
        """Wait until the connection is lost, and take the name again, forever."""
        failures = 0
        while True:
            if self._connection is not None:
                failures = 0
                await _until_lost(self._connection)
                await self._let_go()
                log.warning("presence.lost name=%s: the connection broke", self.name)
            await asyncio.sleep(RETURN.delay(failures + 1))
            try:
                self._connection = await self._taken()
                log.info("presence.regained name=%s", self.name)
            except TapeError as error:
                if not failures:
                    log.warning("presence.waiting name=%s: %s", self.name, error)
                failures += 1

    async def _taken(self) -> Connection:
        """A connection that holds the name."""
        database = self._store.database
        connection = await database.connect()
        try:
            with database.telling("be known to"):
                await connection.execute(_SETTINGS)
                await connection.execute(_HOLD, (_key(self._store.schema, self.name),))
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def is_present(store: PostgresStore, name: str) -> bool:
    """Whether a process on any machine holds the name."""

    async def look(connection: Connection) -> bool:
        found = await connection.execute(_LOOK, (_key(store.schema, name),))
        row = await found.fetchone()
        return row is not None and bool(row[0])

    return await store.database.run("look who uses", look)


async def _until_lost(connection: Connection) -> None:
    """Sleep until the connection breaks: an idle connection receives nothing."""
    loop = asyncio.get_running_loop()
    while not connection.closed:
        spoke = asyncio.Event()
        line = connection.pgconn.socket
        loop.add_reader(line, spoke.set)
        try:
            await spoke.wait()
        finally:
            loop.remove_reader(line)
        try:
            await connection.execute("SELECT")  # reads what came; raises at the end
        except psycopg.Error:
            return


def _key(schema: str, name: str) -> int:
    """The number of the lock for a name: 64 bits, so that no two names meet."""
    digest = blake2b(f"hookline\0{schema}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
