"""Full text in PostgreSQL: indexes entries appended since the last search, and searches them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from heapq import nlargest
from typing import Any

from ..placement import PLACES
from ..sqlite.index import BATCH, LARGEST_BATCH
from ..text import Phrase, matches, text_of, words_of
from .connection import Connection
from .schema import lock_of
from .tables import within

_BEHIND = f"""
    SELECT number, coalesce(next, number * {PLACES}) FROM {{schema}}.sessions
    LEFT JOIN {{schema}}.indexed ON session = number
    WHERE EXISTS (SELECT 1 FROM {{schema}}.entries WHERE seq = coalesce(next, number * {PLACES}))
    LIMIT %s
"""
_NEW = """
    SELECT seq, time, id, payload FROM {schema}.entries
    WHERE seq BETWEEN %s AND %s ORDER BY seq LIMIT %s
"""
_INSERT = """
    INSERT INTO {schema}.words (seq, time, id, words) VALUES (%s, %s, %s, array_to_tsvector(%s::text[]))
"""
_DONE = """
    INSERT INTO {schema}.indexed VALUES (%s, %s)
    ON CONFLICT (session) DO UPDATE SET next = excluded.next
"""
_UNINDEXED = f"""
    SELECT e.time, e.id, e.seq, e.payload FROM {{schema}}.sessions
    LEFT JOIN {{schema}}.indexed ON session = number CROSS JOIN LATERAL (
        SELECT * FROM {{schema}}.entries
        WHERE seq BETWEEN coalesce(next, number * {PLACES}) AND number * {PLACES} + {PLACES - 1}
    ) e
    WHERE (%(low)s::bigint IS NULL OR number = %(low)s::bigint / {PLACES})
        AND (%(kinds)s::text[] IS NULL OR e.kind = ANY(%(kinds)s))
"""
_PAGE = 100


class WordIndex:
    """The words of all entries, without order: phrases are checked in the results."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._behind = within(_BEHIND, schema)
        self._new = within(_NEW, schema)
        self._insert = within(_INSERT, schema)
        self._done = within(_DONE, schema)
        self._unindexed = within(_UNINDEXED, schema)

    async def catch_up(self, connection: Connection) -> bool:
        """Index the next entries that are not yet; whether there may be more."""
        if not await (await connection.execute(self._behind, (1,))).fetchone():
            return False
        entries, characters = BATCH, LARGEST_BATCH
        async with connection.transaction():
            # Another process may index too: one at a time, and only what is read inside the
            # transaction counts.
            lock = lock_of(f"{self._schema}.words")
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
            behind = await (await connection.execute(self._behind, (BATCH,))).fetchall()
            for session, start in behind:
                done = start
                places = (start, (session + 1) * PLACES - 1, entries)
                new: list[tuple[Any, ...]] = []
                for seq, time, entry_id, payload in await (
                    await connection.execute(self._new, places)
                ).fetchall():
                    new.append((seq, time, entry_id, _words(payload)))
                    done = seq + 1
                    entries -= 1
                    characters -= len(payload)
                    if characters <= 0:
                        break
                await connection.cursor().executemany(self._insert, new)
                await connection.execute(self._done, (session, done))
                if entries <= 0 or characters <= 0:
                    break
        return True

    async def find(
        self,
        connection: Connection,
        phrases: Sequence[Phrase],
        places: tuple[int, int] | None,
        kinds: Sequence[str] | None,
        offset: int,
    ) -> list[int]:
        """A page of the places of entries that have all words of these phrases, newest first."""
        values: dict[str, Any] = {"query": _query(phrases), "limit": _PAGE, "offset": offset}
        where = ""
        if places is not None:
            where = " AND w.seq BETWEEN %(low)s AND %(high)s"
            values |= {"low": places[0], "high": places[1]}
        if kinds is not None:
            where += " AND (SELECT kind FROM {schema}.entries e WHERE e.seq = w.seq) = ANY(%(kinds)s)"
            values["kinds"] = list(kinds)
        statement = (
            "SELECT w.seq FROM {schema}.words w WHERE w.words @@ %(query)s::tsquery"
            f"{where} ORDER BY w.time DESC, w.id DESC LIMIT %(limit)s OFFSET %(offset)s"
        )
        found = await connection.execute(within(statement, self._schema), values)
        return [seq for (seq,) in await found.fetchall()]

    async def find_unindexed(
        self,
        connection: Connection,
        phrases: Sequence[Phrase],
        places: tuple[int, int] | None,
        kinds: Sequence[str] | None,
        limit: int,
    ) -> list[int]:
        """The places of the newest entries with these phrases that are not indexed: all are read."""
        values = {"low": places and places[0], "kinds": kinds}
        found: list[tuple[float, str, int]] = []
        async with connection.transaction(), connection.cursor("unindexed") as rows:
            await rows.execute(self._unindexed, values)
            async for time, entry_id, seq, payload in rows:
                if matches(phrases, _text(payload)):
                    found.append((time, entry_id, seq))
        return [seq for _, _, seq in nlargest(limit, found)]


def _words(payload: str) -> list[str]:
    return sorted(set(_text(payload)))


def _text(payload: str) -> list[str]:
    try:
        return words_of(text_of(json.loads(payload)))
    except ValueError:
        return []  # reading the entry says that it is damaged; the others can be found all the same


def _query(phrases: Sequence[Phrase]) -> str:
    wanted: list[str] = []
    for phrase in phrases:
        wanted += [f"'{word}'" for word in phrase.words]
        wanted[-1] += ":*" if phrase.prefix else ""
    return " & ".join(wanted)
