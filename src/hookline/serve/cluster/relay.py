"""The relay: carries answers from the worker that produces them to the gateway of their sender.

Pieces travel as PostgreSQL notifications, or through a table if they are too large; a dead gateway
misses them. The end of an answer is stored until a gateway delivers it: the sender's own, or, if that
one is dead, another with the same channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from hookline.errors import TapeError
from hookline.tape.postgres.connection import Connection
from hookline.tape.postgres.presence import RETURN, is_present
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.postgres.tables import within

from .engine import name_of
from .items import Bundle
from .queue import MOST_BYTES, Queue

log = logging.getLogger("hookline.serve.cluster")

# Pieces need no durable write. A lost record of a delivery only means that it is sent again.
_SHOW: Final = """
    SELECT set_config('synchronous_commit', 'off', true), pg_notify(channel, piece)
    FROM unnest(%s::text[], %s::text[]) AS pieces (channel, piece)
"""
_PIECE: Final = """
    WITH kept AS (INSERT INTO {schema}.pieces (text) VALUES (%s) RETURNING id)
    SELECT pg_notify(%s, 'p' || id) FROM kept
"""
_TAKE_PIECE: Final = "DELETE FROM {schema}.pieces WHERE id = %s RETURNING text"
_KEEP: Final = """
    INSERT INTO {schema}.deliveries (gateway, channel, item) VALUES (%s, %s, %s) RETURNING id
"""
_SEND: Final = f"WITH kept AS ({_KEEP}) SELECT pg_notify(%s, '') FROM kept"
_HAND: Final = f"WITH kept AS ({_KEEP}) SELECT pg_notify(%s, 'd' || id) FROM kept"
_DELIVERY: Final = "SELECT item FROM {schema}.deliveries WHERE id = %s"
_MINE: Final = "SELECT id, item FROM {schema}.deliveries WHERE gateway = %s ORDER BY id LIMIT 1000"
_DELIVERED: Final = """
    WITH done AS (DELETE FROM {schema}.deliveries WHERE id = ANY(%s::bigint[]))
    SELECT set_config('synchronous_commit', 'off', true)
"""
_OTHERS: Final = """
    SELECT DISTINCT gateway FROM {schema}.deliveries WHERE gateway != %s AND channel = ANY(%s::text[])
"""
_TAKE_OVER: Final = """
    UPDATE {schema}.deliveries SET gateway = %s WHERE gateway = %s AND channel = ANY(%s::text[])
"""
_FORGET: Final = """
    DELETE FROM {schema}.pieces WHERE made < extract(epoch FROM clock_timestamp()) - %s
"""
_FORGET_DELIVERIES: Final = """
    DELETE FROM {schema}.deliveries WHERE made < extract(epoch FROM clock_timestamp()) - %s
"""
EVERYBODY: Final = "gateways"
"""The notification channel of all gateways: something waits for the owner of a channel."""
MISSED: Final = 1.5 * RETURN.max
"""Seconds after which a missing gateway counts as dead."""
NOTED: Final = 2.0
"""Seconds to record deliveries at shutdown."""
UNREAD: Final = 300.0
"""Seconds after which an undelivered piece is deleted."""
UNDELIVERED: Final = 7 * 86400.0
"""Seconds for which an end waits for a gateway with its channel."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Items for a gateway. Items with a number are stored until delivered."""

    number: int | None
    bundle: Bundle


class Relay:
    """Both ends of the relay."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._store: PostgresStore = queue.store
        statements = (
            _PIECE, _TAKE_PIECE, _SEND, _HAND, _DELIVERY, _MINE, _DELIVERED, _OTHERS, _TAKE_OVER,
            _FORGET, _FORGET_DELIVERIES,
        )  # fmt: skip
        self._sql = {text: within(text, self._store.schema) for text in statements}
        self._missed: dict[str, float] = {}
        """Missing gateways that have something to deliver, with the time since when."""
        self._delivered: list[int] = []
        self._noting: asyncio.Task[None] | None = None

    # --- a worker's end -----------------------------------------------------------------------

    async def show(self, shown: Iterable[tuple[str, Bundle]]) -> None:
        """Send pieces to gateways. If the database is away, they are lost."""
        small: list[tuple[str, str]] = []
        try:
            for gateway, bundle in shown:
                text, to = bundle.encode(), self._queue.gateway_channel(gateway)
                if len(text) < MOST_BYTES:  # it is ASCII
                    small.append((to, "s" + text))
                else:
                    await self._run(_PIECE, (text, to))
            if small:
                await self._run(_SHOW, [list(column) for column in zip(*small, strict=True)])
        except TapeError as error:
            log.warning("relay.pieces_lost error=%s", error)

    async def hand(self, gateway: str, channel: str, bundle: Bundle) -> None:
        """Store items for a gateway until it, or another with the channel, delivers them."""
        to = self._queue.gateway_channel(gateway)
        await self._run(_HAND, (gateway, channel, bundle.encode(), to))

    async def send(self, channel: str, bundle: Bundle) -> None:
        """Store items for a channel until a gateway that has it delivers them."""
        await self._run(_SEND, ("", channel, bundle.encode(), name_of(self._store, EVERYBODY)))

    # --- a gateway's end ----------------------------------------------------------------------

    async def read(self, notice: str) -> Parcel | None:
        """Return what a notification carries or refers to, or None if another gateway took it."""
        kind, rest = notice[:1], notice[1:]
        if kind == "s":
            return Parcel(None, Bundle.decode(rest))
        if kind == "p":
            rows = await self._run(_TAKE_PIECE, (int(rest),))
            return Parcel(None, Bundle.decode(rows[0][0])) if rows else None
        number, _, item = rest.partition(" ")
        if not item:
            rows = await self._run(_DELIVERY, (int(number),))
            if not rows:
                return None
            item = rows[0][0]
        return Parcel(int(number), Bundle.decode(item))

    async def undelivered(self, gateway: str, channels: Iterable[str]) -> list[Parcel]:
        """Return what this gateway missed, and what dead gateways left for its channels."""
        names = [*channels]
        others = [other for (other,) in await self._run(_OTHERS, (gateway, names))]
        self._missed = {name: at for name, at in self._missed.items() if name in others}
        for other in others:
            if not other or await self._is_gone(other):
                await self._run(_TAKE_OVER, (gateway, other, names))
        rows = await self._run(_MINE, (gateway,))
        return [Parcel(number, Bundle.decode(item)) for number, item in rows]

    async def _is_gone(self, gateway: str) -> bool:
        """Whether a gateway has been missing longer than a lost database connection explains."""
        if await is_present(self._store, gateway):
            self._missed.pop(gateway, None)
            return False
        now = asyncio.get_running_loop().time()
        return now - self._missed.setdefault(gateway, now) >= MISSED

    def delivered(self, number: int) -> None:
        """Mark an item as delivered. Items marked during a write are written together next."""
        self._delivered.append(number)
        if self._noting is None:
            self._noting = asyncio.get_running_loop().create_task(self._note())

    async def close(self) -> None:
        """Record deliveries, if the database is there."""
        if self._noting is not None:
            await asyncio.wait([self._noting], timeout=NOTED)
        if self._noting is not None:
            self._noting.cancel()

    async def _note(self) -> None:
        try:
            while self._delivered:
                numbers, self._delivered = self._delivered, []
                await self._run(_DELIVERED, (numbers,))
        except TapeError as error:  # the next gateway sends them again
            log.warning("relay.not_noted error=%s", error)
        finally:
            self._noting = None

    async def forget(self) -> None:
        """Delete undelivered pieces."""
        await self._run(_FORGET, (UNREAD,))
        await self._run(_FORGET_DELIVERIES, (UNDELIVERED,))

    async def _run(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        query: Any = self._sql.get(statement, statement)

        async def run(connection: Connection) -> list[tuple[Any, ...]]:
            done = await connection.execute(query, values)
            return await done.fetchall() if done.description else []

        return await self._store.database.run("use the relay of", run)
