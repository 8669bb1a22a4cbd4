"""The queue of a cluster: messages that were accepted, and the jobs by which workers take them.

A job stands for a session: whoever takes it makes the turns of all its messages that wait. Jobs of one
session have one lock, so that they are taken one at a time, whoever takes them. A message is kept and
has a job in one transaction; where a job of its session waits already, that is its job too. So the
queue is as long as there are sessions that wait, however much was said in them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from procrastinate.exceptions import ConnectorException
from psycopg import Rollback

from hookline.catalog.envelope import Envelope, EnvelopeError
from hookline.inbox import key_of, keys_of, packed, unpacked
from hookline.tape.postgres import PostgresStore
from hookline.tape.postgres_connecting import Connection
from hookline.tape.postgres_schema import within

from .engine import engine, name_of, queue_of

TASK: Final = "hookline.turn"
"""The name of the jobs' task."""
_KEPT: Final = """
    INSERT INTO {schema}.inbox (id, ticket, session_id, gateway, alone, envelope)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING RETURNING number
"""
# Nobody takes the job before the message is there: to take one, it must be locked.
_JOB: Final = """
    SELECT id FROM {schema}.procrastinate_jobs
    WHERE lock = %s AND status = 'todo' AND queue_name = %s ORDER BY id LIMIT 1 FOR SHARE
"""
_WAKE: Final = """
    SELECT pg_notify('procrastinate_queue_v1#' || %s,
        json_build_object('type', 'job_inserted', 'job_id', %s::bigint)::text)
"""
_TICKET: Final = "SELECT ticket FROM {schema}.inbox WHERE id = %s"
_TELL_WORKER: Final = """
    SELECT pg_notify(%s || worker_id, %s) FROM {schema}.procrastinate_jobs
    WHERE lock = %s AND status = 'doing' AND worker_id IS NOT NULL
"""
_COLUMNS: Final = "id, number, session_id, gateway, alone, accepted, deaths, envelope"
_FOLLOWING: Final = f"""
    SELECT {_COLUMNS} FROM {{schema}}.inbox
    WHERE session_id = %s AND outcome IS NULL AND number > %s ORDER BY number LIMIT %s
"""
# Only the worker that has the session's job may settle. One that was silent for too long, and is told
# so by this, may have been replaced: it notes nothing and delivers nothing.
_SETTLE: Final = """
    WITH done AS (
        UPDATE {schema}.inbox
        SET outcome = %(outcome)s, settled = extract(epoch FROM clock_timestamp()), envelope = NULL
        WHERE id = ANY(%(ids)s::text[]) AND outcome IS NULL AND EXISTS (
            SELECT FROM {schema}.procrastinate_jobs j
            WHERE j.lock = session_id AND j.status = 'doing' AND j.worker_id = %(worker)s
        )
        RETURNING id
    ), sent AS (
        INSERT INTO {schema}.deliveries (gateway, channel, item)
        SELECT * FROM unnest(%(gateways)s::text[], %(channels)s::text[], %(items)s::text[])
        WHERE EXISTS (SELECT FROM done) RETURNING id, gateway, item
    ), told AS (
        SELECT pg_notify(%(to)s || gateway, CASE WHEN octet_length(item) < %(most)s
            THEN 'd' || id || ' ' || item ELSE 'd' || id END) FROM sent
    )
    SELECT id, (SELECT count(*) FROM told) FROM done
"""
_OUTCOME: Final = "SELECT outcome FROM {schema}.inbox WHERE id = %s"
_FORGET: Final = """
    DELETE FROM {schema}.inbox
    WHERE outcome IS NOT NULL AND settled < extract(epoch FROM clock_timestamp()) - %s
"""
_WAITING: Final = "SELECT count(*) FROM {schema}.inbox WHERE outcome IS NULL"
MOST_BYTES: Final = 7500
"""What a notice may carry; PostgreSQL's own limit is 8000."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that is not done with."""

    id: str
    number: int
    session_id: str
    gateway: str
    """The gateway that accepted it, and has its sender."""
    alone: bool
    """Whether it is never taken together with others."""
    accepted: float
    deaths: int
    """How many workers ended in the middle of it."""
    envelope: dict[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """The end of an answer, for the gateway that has its sender."""

    gateway: str
    channel: str
    item: str
    """A bundle, encoded."""


class Queue:
    """Accepts messages, gives them to workers, and keeps what became of them."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.engine = engine(store)
        self._name = queue_of(store)
        self._worker = name_of(store, "w")
        self._gateway = name_of(store, "g")
        statements = (
            _KEPT,
            _TICKET,
            _TELL_WORKER,
            _JOB,
            _WAKE,
            _FOLLOWING,
            _SETTLE,
            _OUTCOME,
            _FORGET,
            _WAITING,
        )
        self._sql = {text: within(text, store.schema) for text in statements}

    def worker_channel(self, worker: int) -> str:
        """What a worker listens to."""
        return f"{self._worker}{worker}"

    def gateway_channel(self, gateway: str) -> str:
        """What a gateway listens to."""
        return f"{self._gateway}{gateway}"

    # --- in -----------------------------------------------------------------------------------

    async def accept(
        self, envelope: Envelope, session_id: str, gateway: str, *, alone: bool = False
    ) -> bool:
        """Keep a message and have it taken; False where it was accepted before."""
        key, ticket, said = key_of(envelope), uuid4().hex, packed(envelope)
        _check("channel, chat_id or message_id", key)
        _check("session", session_id)

        async def keep(connection: Connection) -> bool:
            known = await (await connection.execute(self._sql[_TICKET], (key,))).fetchone()
            if known is not None:
                return known[0] == ticket
            async with connection.transaction() as transaction:
                job = await self._waiting_job(connection, session_id)
                if job is None:
                    await self._defer(connection, session_id)
                row = (key, ticket, session_id, gateway, alone, said)
                kept = await (await connection.execute(self._sql[_KEPT], row)).fetchone()
                if kept is None:
                    raise Rollback(transaction)
                told = await self._tell(connection, session_id, {"arrived": session_id})
                if job is not None and not told:  # whoever looked meanwhile found it locked
                    await connection.execute(self._sql[_WAKE], (self._name, job))
                return True
            return False  # another gateway was faster

        return await self.store.database.run("keep a message in", keep)

    async def _waiting_job(self, connection: Connection, session_id: str) -> int | None:
        """The job of a session that nobody has taken, kept from being taken."""
        found = await connection.execute(self._sql[_JOB], (session_id, self._name))
        row = await found.fetchone()
        return None if row is None else row[0]

    async def _defer(self, connection: Connection, session_id: str) -> None:
        configured = self.engine.configure_task(
            TASK, queue=self._name, lock=session_id, connection=connection
        )
        try:
            await configured.defer_async()
        except ConnectorException as error:  # the pool must see what it was, to try again
            raise error.__cause__ or error from None

    async def cancel(self, session_id: str) -> bool:
        """Ask whoever runs a session's turn to stop it; whether there is one."""

        async def ask(connection: Connection) -> bool:
            return await self._tell(connection, session_id, {"cancel": session_id})

        return await self.store.database.run("stop a turn in", ask)

    async def _tell(self, connection: Connection, session_id: str, what: dict[str, Any]) -> bool:
        values = (self._worker, json.dumps(what), session_id)
        return bool((await connection.execute(self._sql[_TELL_WORKER], values)).rowcount)

    # --- out ----------------------------------------------------------------------------------

    async def following(self, session_id: str, number: int, limit: int) -> list[Queued]:
        """A session's messages after one, in order."""
        return [_queued(row) for row in await self._fetch(_FOLLOWING, (session_id, number, limit))]

    async def settle(
        self, envelope: Envelope, outcome: str, *, worker: int, ends: Sequence[End]
    ) -> bool:
        """Note what became of a message and of those in it, and send their ends on their way.

        False where it was settled before, or is another worker's.
        """
        values: dict[str, Any] = {
            "outcome": outcome,
            "worker": worker,
            "ids": keys_of(envelope),
            "gateways": [end.gateway for end in ends],
            "channels": [end.channel for end in ends],
            "items": [end.item for end in ends],
            "to": self.gateway_channel(""),
            "most": MOST_BYTES,
        }
        return bool(await self._fetch(_SETTLE, values))

    async def outcome_of(self, envelope: Envelope) -> str | None:
        """What became of a message; None as long as it is not known."""
        rows = await self._fetch(_OUTCOME, (key_of(envelope),))
        return rows[0][0] if rows else None

    async def waiting(self) -> int:
        """How many messages are not done with."""
        return (await self._fetch(_WAITING, ()))[0][0]

    async def forget(self, seconds: float) -> None:
        """Forget the keys of messages that were done with so long ago."""

        async def drop(connection: Connection) -> None:
            await connection.execute(self._sql[_FORGET], (seconds,))

        await self.store.database.run("forget messages of", drop)

    async def _fetch(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        async def fetch(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(self._sql[statement], values)).fetchall()

        return await self.store.database.run("use the queue of", fetch)


def _check(what: str, text: str) -> None:
    """Refuse what PostgreSQL cannot keep as text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise EnvelopeError(f"the {what} {text!r} has half of a character in it") from None
    if "\0" in text:
        raise EnvelopeError(f"the {what} {text!r} has a NUL character in it; leave that out")


def _queued(row: tuple[Any, ...]) -> Queued:
    return Queued(*row[:-1], envelope=unpacked(row[-1]))
