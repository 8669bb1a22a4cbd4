"""The queue of a cluster: accepted messages, and the jobs by which workers take them.

A job stands for a session: its worker runs the turns of all waiting messages. Jobs of one session
share a lock, so that only one runs at a time. A message is stored and gets its job in one transaction;
if a job of its session already waits, the message needs no other. So the queue is as long as the
number of waiting sessions, however many messages they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

from hookline.errors import BadInput
from hookline.runtime.inbox import key_of, keys_of, packed, unpacked
from hookline.tape.postgres.connection import Connection
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.postgres.tables import within
from hookline.types import Envelope

from .engine import engine, name_of, queue_of

TASK: Final = "hookline.runtime.turn"
"""The name of the task of these jobs."""
_ACCEPT: Final = """
    SELECT {schema}.hookline_accept(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
# Orders for a turn are stored until its worker reads them: a notification may find no listener.
_CANCEL: Final = """
    WITH had AS (
        SELECT lock, worker_id FROM {schema}.procrastinate_jobs
        WHERE lock = %(session)s AND status = 'doing' AND worker_id IS NOT NULL
    ), kept AS (
        INSERT INTO {schema}.orders (session_id) SELECT lock FROM had
        ON CONFLICT (session_id) DO UPDATE SET made = excluded.made
    )
    SELECT pg_notify(%(channel)s || worker_id, json_build_object('cancel', lock)::text) FROM had
"""
_ORDERS: Final = "DELETE FROM {schema}.orders WHERE session_id = ANY(%s::text[]) RETURNING session_id"
_COLUMNS: Final = "id, number, session_id, gateway, alone, accepted, deaths, envelope"
_FOLLOWING: Final = f"""
    SELECT {_COLUMNS} FROM {{schema}}.inbox
    WHERE session_id = %s AND outcome IS NULL AND number > %s ORDER BY number LIMIT %s
"""
# Only the owner of the session's job may settle. A worker that was silent too long may have been
# replaced: this tells it so, and it records and delivers nothing. Settling the last waiting message
# also ends the job.
_SETTLE: Final = """
    WITH mine AS MATERIALIZED (
        SELECT id FROM {schema}.procrastinate_jobs
        WHERE lock = %(session)s AND status = 'doing' AND worker_id = %(worker)s FOR UPDATE
    ), done AS (
        UPDATE {schema}.inbox
        SET outcome = %(outcome)s, settled = extract(epoch FROM clock_timestamp()), envelope = NULL
        WHERE id = ANY(%(ids)s::text[]) AND outcome IS NULL AND EXISTS (SELECT FROM mine)
        RETURNING id
    ), sent AS (
        INSERT INTO {schema}.deliveries (gateway, channel, item)
        SELECT * FROM unnest(%(gateways)s::text[], %(channels)s::text[], %(items)s::text[])
        WHERE EXISTS (SELECT FROM done) RETURNING id, gateway, item
    ), told AS (
        SELECT pg_notify(%(to)s || gateway, CASE WHEN octet_length(item) < %(most)s
            THEN 'd' || id || ' ' || item ELSE 'd' || id END) FROM sent
    ), dropped AS (
        DELETE FROM {schema}.orders WHERE session_id = %(session)s AND EXISTS (SELECT FROM done)
    ), ended AS (
        SELECT procrastinate_finish_job_v1(id, 'succeeded', true) FROM mine
        WHERE %(alone)s AND EXISTS (SELECT FROM done) AND NOT EXISTS (
            SELECT FROM {schema}.inbox
            WHERE session_id = %(session)s AND outcome IS NULL AND id != ALL(%(ids)s::text[])
        )
    )
    SELECT (SELECT count(*) FROM ended), (SELECT count(*) FROM told) FROM done LIMIT 1
"""
_OUTCOME: Final = "SELECT outcome FROM {schema}.inbox WHERE id = %s"
_FORGET: Final = """
    DELETE FROM {schema}.inbox
    WHERE outcome IS NOT NULL AND settled < extract(epoch FROM clock_timestamp()) - %s
"""
_WAITING: Final = "SELECT count(*) FROM {schema}.inbox WHERE outcome IS NULL"
MOST_BYTES: Final = 7500
"""Bytes of one notification; PostgreSQL's own limit is 8000."""
Settled: TypeAlias = Literal["settled", "over", "too late"]
"""The result of settling: done (perhaps with the job), settled before, or owned by another worker."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that is not settled."""

    id: str
    number: int
    session_id: str
    gateway: str
    """The gateway that accepted it and is connected to its sender."""
    alone: bool
    """Whether it is never merged with others."""
    accepted: float
    deaths: int
    """How many workers died while processing it."""
    envelope: dict[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """The end of an answer, for the gateway that is connected to the sender."""

    gateway: str
    channel: str
    item: str
    """An encoded bundle."""


class Queue:
    """Accepts messages, hands them to workers, and stores their outcomes."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.engine = engine(store)
        self._name = queue_of(store)
        self._worker = name_of(store, "w")
        self._gateway = name_of(store, "g")
        self.silence = 30.0
        """Seconds of silence after which a worker is no longer notified."""
        statements = (
            _ACCEPT,
            _CANCEL,
            _ORDERS,
            _FOLLOWING,
            _SETTLE,
            _OUTCOME,
            _FORGET,
            _WAITING,
        )
        self._sql = {text: within(text, store.schema) for text in statements}

    def worker_channel(self, worker: int | str) -> str:
        """The notification channel of a worker; for `""`, the common prefix."""
        return f"{self._worker}{worker}"

    def gateway_channel(self, gateway: str) -> str:
        """The notification channel of a gateway."""
        return f"{self._gateway}{gateway}"

    # --- in -----------------------------------------------------------------------------------

    async def accept(
        self, envelope: Envelope, session_id: str, gateway: str, *, alone: bool = False
    ) -> bool:
        """Store a message and create its job. Returns False if it was accepted before."""
        key, ticket, said = key_of(envelope), uuid4().hex, packed(envelope)
        _check("channel, chat_id or message_id", key)
        _check("session", session_id)
        message = (key, ticket, session_id, gateway, alone, said)
        told = (self._name, TASK, self._worker, self.silence)
        return (await self._fetch(_ACCEPT, (*message, *told), "keep a message in"))[0][0]

    async def cancel(self, session_id: str) -> bool:
        """Ask the worker of a session to stop its turn. Returns whether the session has one."""
        values = {"session": session_id, "channel": self._worker}
        return bool(await self._fetch(_CANCEL, values, "stop a turn in"))

    async def cancelled(self, sessions: Sequence[str]) -> list[str]:
        """Return which of these sessions should stop their turns, each one once."""
        return [name for (name,) in await self._fetch(_ORDERS, ([*sessions],))] if sessions else []

    # --- out ----------------------------------------------------------------------------------

    async def following(self, session_id: str, number: int, limit: int) -> list[Queued]:
        """A session's messages after a given number, in order."""
        return [_queued(row) for row in await self._fetch(_FOLLOWING, (session_id, number, limit))]

    async def settle(
        self,
        envelope: Envelope,
        outcome: str,
        *,
        session_id: str,
        worker: int,
        ends: Sequence[End],
        alone: bool = False,
    ) -> Settled:
        """Record the outcome of a message and of those merged into it, and send the ends of their
        answers.

        With `alone`, nothing else is in progress in the session: if nothing waits either, its job ends
        too.
        """
        values: dict[str, Any] = {
            "outcome": outcome,
            "session": session_id,
            "worker": worker,
            "alone": alone,
            "ids": keys_of(envelope),
            "gateways": [end.gateway for end in ends],
            "channels": [end.channel for end in ends],
            "items": [end.item for end in ends],
            "to": self.gateway_channel(""),
            "most": MOST_BYTES,
        }
        rows = await self._fetch(_SETTLE, values)
        if not rows:
            return "too late"
        return "over" if rows[0][0] else "settled"

    async def outcome_of(self, envelope: Envelope) -> str | None:
        """The outcome of a message, or None while it is unknown."""
        rows = await self._fetch(_OUTCOME, (key_of(envelope),))
        return rows[0][0] if rows else None

    async def waiting(self) -> int:
        """The number of unsettled messages."""
        return (await self._fetch(_WAITING, ()))[0][0]

    async def forget(self, seconds: float) -> None:
        """Delete the keys of messages settled longer ago than this."""

        async def drop(connection: Connection) -> None:
            await connection.execute(self._sql[_FORGET], (seconds,))

        await self.store.database.run("forget messages of", drop)

    async def _fetch(
        self, statement: str, values: Any, doing: str = "use the queue of"
    ) -> list[tuple[Any, ...]]:
        async def fetch(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(self._sql[statement], values)).fetchall()

        return await self.store.database.run(doing, fetch)


def _check(what: str, text: str) -> None:
    """Reject text that PostgreSQL cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"the {what} {text!r} has half of a character in it") from None
    if "\0" in text:
        raise BadInput(f"the {what} {text!r} has a NUL character in it; leave that out")


def _queued(row: tuple[Any, ...]) -> Queued:
    return Queued(*row[:-1], envelope=unpacked(row[-1]))
