"""The relay: how an answer gets from the worker that makes it to the gateway that has its sender.

Pieces go as notices of PostgreSQL, or through a table where they are too large for one; a gateway that
is gone does not get them. The end of an answer is kept until a gateway has delivered it: the one that
has the sender, or, where that is gone, another with the same channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from hookline.errors import TapeError
from hookline.tape.postgres.connection import Connection
from hookline.tape.postgres.presence import LONGEST_PAUSE, is_present
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.postgres.tables import within

from .engine import name_of
from .items import Bundle
from .queue import MOST_BYTES, Queue

log = logging.getLogger("hookline.serve.cluster")

# Pieces are worth no wait for the disk; and what is forgotten as delivered is only sent again.
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
"""What all gateways listen to: something is there for whoever has its channel."""
MISSED: Final = 1.5 * LONGEST_PAUSE
"""Seconds after which a gateway that is not there is taken for gone."""
NOTED: Final = 2.0
"""Seconds that the note of what was delivered may take at the end."""
UNREAD: Final = 300.0
"""Seconds after which a piece that nobody took is thrown away."""
UNDELIVERED: Final = 7 * 86400.0
"""Seconds for which an end waits for a gateway with its channel."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Items for a gateway; where they have a number, they are kept until they were delivered."""

    number: int | None
    bundle: Bundle


class Relay:
    """Both ends of the way back."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._store: PostgresStore = queue.store
        statements = (
            _PIECE, _TAKE_PIECE, _SEND, _HAND, _DELIVERY, _MINE, _DELIVERED, _OTHERS, _TAKE_OVER,
            _FORGET, _FORGET_DELIVERIES,
        )  # fmt: skip
        self._sql = {text: within(text, self._store.schema) for text in statements}
        self._missed: dict[str, float] = {}
        """Gateways that have something to deliver and are not there, with since when."""
        self._delivered: list[int] = []
        self._noting: asyncio.Task[None] | None = None

    # --- a worker's end -----------------------------------------------------------------------

    async def show(self, shown: Iterable[tuple[str, Bundle]]) -> None:
        """Send pieces on their way to gateways; where the database is away, they are lost."""
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
        """Keep items for a gateway, until it or another that has the channel delivered them."""
        to = self._queue.gateway_channel(gateway)
        await self._run(_HAND, (gateway, channel, bundle.encode(), to))

    async def send(self, channel: str, bundle: Bundle) -> None:
        """Keep items for a channel, until a gateway that has it delivered them."""
        await self._run(_SEND, ("", channel, bundle.encode(), name_of(self._store, EVERYBODY)))

    # --- a gateway's end ----------------------------------------------------------------------

    async def read(self, notice: str) -> Parcel | None:
        """What a notice carries or names; None where somebody else has it."""
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
        """What this gateway missed, and what gateways left for its channels that are gone."""
        names = [*channels]
        others = [other for (other,) in await self._run(_OTHERS, (gateway, names))]
        self._missed = {name: at for name, at in self._missed.items() if name in others}
        for other in others:
            if not other or await self._is_gone(other):
                await self._run(_TAKE_OVER, (gateway, other, names))
        rows = await self._run(_MINE, (gateway,))
        return [Parcel(number, Bundle.decode(item)) for number, item in rows]

    async def _is_gone(self, gateway: str) -> bool:
        """Whether a gateway was missed for longer than one needs that only lost the database."""
        if await is_present(self._store, gateway):
            self._missed.pop(gateway, None)
            return False
        now = asyncio.get_running_loop().time()
        return now - self._missed.setdefault(gateway, now) >= MISSED

    def delivered(self, number: int) -> None:
        """It need not be kept any more. What is told while that is being noted is noted together."""
        self._delivered.append(number)
        if self._noting is None:
            self._noting = asyncio.get_running_loop().create_task(self._note())

    async def close(self) -> None:
        """Note what was delivered, where the database is there."""
        if self._noting is not None:
            await asyncio.wait([self._noting], timeout=NOTED)
        if self._noting is not None:
            self._noting.cancel()

    async def _note(self) -> None:
        try:
            while self._delivered:
                numbers, self._delivered = self._delivered, []
                await self._run(_DELIVERED, (numbers,))
        except TapeError as error:  # they are sent again by whoever comes after this gateway
            log.warning("relay.not_noted error=%s", error)
        finally:
            self._noting = None

    async def forget(self) -> None:
        """Throw away what nobody took."""
        await self._run(_FORGET, (UNREAD,))
        await self._run(_FORGET_DELIVERIES, (UNDELIVERED,))

    async def _run(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        query: Any = self._sql.get(statement, statement)

        async def run(connection: Connection) -> list[tuple[Any, ...]]:
            done = await connection.execute(query, values)
            return await done.fetchall() if done.description else []

        return await self._store.database.run("use the relay of", run)
