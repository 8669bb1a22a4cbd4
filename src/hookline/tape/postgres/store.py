"""Tapes in PostgreSQL: for several processes and machines that share their sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from hookline.errors import TapeClosed, TapeCorrupt, TapeFull, TapeReadOnly, UnknownEntry
from hookline.system.retry import RetryPolicy

from ..entry import WIDTH, Entry, EntryRow, entry_of, row_of, storable
from ..outline import OutlineEntry
from ..placement import PLACES
from ..sqlite.group_commit import cancel_later
from ..store import Hit, SessionInfo
from ..text import matches, phrases_of, text_of, words_of
from .append import Appending, PostgresAppender
from .connection import RECONNECT, Connection, Database
from .index import WordIndex
from .queries import PathRange, Queries
from .schema import Version, channel_key, check, check_name, claim, migrate, version_of

T = TypeVar("T")


class PostgresStore:
    """A `TapeStore` in a schema of a PostgreSQL database. Get one by `await PostgresStore.open(url)`.

    It belongs to the event loop that it was opened in. When the connection is lost, calls wait for the
    database, for `timeout` seconds at most; an append of which the answer was lost is looked up, so
    that it is neither lost nor made twice.
    """

    def __init__(self, database: Database, schema: str, channel_key: str) -> None:
        self.database = database
        """The pool, which other parts with tables next to the tape may use too."""
        self.schema = schema
        self.channel_key = channel_key
        """Part of the name of every notice of this schema, which other homes cannot read."""
        self._appender = PostgresAppender(schema)
        database.on_connect.append(self._appender.forget)
        self._queries = Queries(schema)
        self._index = WordIndex(schema)
        self._closed = False

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        schema: str = "hookline",
        home: str | None = None,
        where: str = "",
        pool_size: int = 10,
        timeout: float = 10.0,
        statement_timeout: float = 60.0,
        retry: RetryPolicy = RECONNECT,
        migrate: bool = False,
    ) -> PostgresStore:
        """Connect, make the tables when there are none, and refuse those of another version.

        With `migrate`, older tables are brought up to date. `home` is the id of whoever's sessions
        these are, and `where` tells people of it: a schema belongs to the first home that opens it.
        """
        check_name(schema)
        database = Database(
            url,
            schema=schema,
            pool_size=pool_size,
            timeout=timeout,
            statement_timeout=statement_timeout,
            retry=retry,
        )
        async with private(database) as connection:
            await _prepare(connection, schema, database.place, allowed=migrate)
            if home is not None:
                await claim(connection, schema, home, database.place, where=where)
            key = await channel_key(connection, schema)
        return cls(database, schema, key)

    @property
    def place(self) -> str:
        """Where the tapes are, without the password."""
        return f"{self.database.place} schema {self.schema}"

    def connection(self, doing: str = "use") -> AbstractAsyncContextManager[Connection]:
        """A connection of the pool, for tables next to the tape's; `doing` appears in errors."""
        self._check_open()
        return self.database.connection(doing)

    async def append(
        self, entries: Sequence[Entry], *, expect: Mapping[str, str | None] | None = None
    ) -> None:
        """Keep the entries, all or none."""
        self._check_open()
        rows = [row_of(entry) for entry in entries]
        expected = expect or {}
        if not rows and not expected:
            return
        appending = Appending(self._appender, rows, expected)
        # A separate task: once it is running, the caller must learn its outcome.
        task = asyncio.ensure_future(self.database.run("append to", appending, sure=False))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as cancelled:
            if task.done() and task.cancelled():
                raise
            if not appending.sending:
                task.cancel()
                raise
            await _outlast(task)
            cancel_later(cancelled)
            task.result()

    async def get(self, entry_id: str) -> Entry | None:
        """The entry with this id."""
        rows = await self._fetch(self._queries.get, (entry_id,)) if self._may_have(entry_id) else []
        return self._entry(rows[0]) if rows else None

    async def leaf(self, session_id: str) -> Entry | None:
        """The entry last appended to the session."""
        rows = (
            await self._fetch(self._queries.leaf, (session_id,)) if self._may_have(session_id) else []
        )
        if not rows:
            self._appender.remember_none(session_id)
            return None
        leaf = self._entry(rows[0])
        self._appender.remember(session_id, leaf.id, rows[0][-1])
        return leaf

    async def branch(
        self, entry_id: str, *, stop_at: Collection[str] = frozenset(), until: str | None = None
    ) -> list[Entry]:
        """The path to this entry, oldest first."""
        named = self._path(entry_id, stop_at, until)
        rows = await self._fetch(self._queries.branch, named) if self._may_have(entry_id) else []
        if not rows:
            raise UnknownEntry(entry_id)
        return [self._entry(row) for row in rows]

    async def nearest(self, entry_id: str, kinds: Collection[str]) -> Entry | None:
        """The nearest entry of one of these kinds on the path to the root."""
        runs = await self._runs(entry_id, kinds)
        if runs[-1].stop is None:
            return None
        return self._entry((await self._fetch(self._queries.at, (runs[-1].stop,)))[0])

    async def entries(
        self,
        session_id: str,
        *,
        kinds: Collection[str] | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Entry]:
        """The session's entries as appended."""
        if not self._may_have(session_id) and after is None and before is None:
            return []
        named = {
            "session": session_id,
            "low": None if after is None else await self._seq(after, session_id) + 1,
            "high": None if before is None else await self._seq(before, session_id) - 1,
            "kinds": [*set(kinds or ())],
            "limit": limit,
        }
        query = self._queries.entries(of_kinds=kinds is not None, newest_first=newest_first)
        return [self._entry(row) for row in await self._fetch(query, named)]

    async def outline(self, session_id: str) -> list[OutlineEntry]:
        """The session's tree in outline."""
        places = await self._span(session_id)
        if places is None:
            return []
        own = [OutlineEntry(*row) for row in await self._fetch(self._queries.outline, places)]
        if not own or own[0].parent_id is None:
            return own
        named = self._path(own[0].parent_id)
        inherited = await self._fetch(self._queries.outline_branch, named)
        return [*(OutlineEntry(*row) for row in inherited), *own]

    async def common_ancestor(self, first_id: str, second_id: str) -> str | None:
        """The nearest entry that is on the paths to both."""
        second = {run.low: run.high for run in await self._runs(second_id)}
        for run in await self._runs(first_id):
            if run.low in second:  # where two paths share a run, they share its start
                seq = min(run.high, second[run.low])
                return self._entry((await self._fetch(self._queries.at, (seq,)))[0]).id
        return None

    async def children(self, entry_id: str) -> list[Entry]:
        """The entries whose parent this is."""
        named = {"id": entry_id, "seq": await self._seq(entry_id)}
        return [self._entry(row) for row in await self._fetch(self._queries.children, named)]

    async def sessions(
        self, *, prefix: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The sessions, the one written to last first."""
        self._check_open()
        if not storable(prefix or ""):
            return []
        rows = await self._fetch(self._queries.sessions, {"prefix": prefix or "", "limit": limit})
        said: dict[int, list[OutlineEntry]] = {}
        for number, *shape in await self._fetch(self._queries.openings, ([row[0] for row in rows],)):
            said.setdefault(number, []).append(OutlineEntry(*shape))
        infos: list[SessionInfo] = []
        for number, last, updated, *entries in rows:
            first, (is_named, *name) = self._entry(entries), entries[WIDTH:]
            named = self._entry(name) if is_named else None
            infos.append(SessionInfo.of(first, updated, last % PLACES + 1, named, said.get(number, ())))
        return infos

    async def search(
        self,
        text: str,
        *,
        session_id: str | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        """The entries with all these words, newest first."""
        self._check_open()
        phrases = phrases_of(text)
        if not phrases:
            return []
        all_indexed = await self._catch_up()
        places = None if session_id is None else await self._span(session_id)
        if session_id is not None and places is None:
            return []
        hits: list[Hit] = []
        wanted = None if kinds is None else [*kinds]
        offset = 0
        while len(hits) < limit:

            async def page(connection: Connection, offset: int = offset) -> list[int]:
                return await self._index.find(connection, phrases, places, wanted, offset)

            found = await self._run("search", page)
            rows = await self._fetch(self._queries.at_all, (found,)) if found else []
            for row in rows:
                entry = self._entry(row)
                if matches(phrases, words_of(text_of(entry.payload))):
                    hits.append(Hit.of(entry, phrases))
            if not found:
                break
            offset += len(found)
        if not all_indexed:
            known = {hit.entry.id for hit in hits}

            async def rest(connection: Connection) -> list[int]:
                return await self._index.find_unindexed(connection, phrases, places, wanted, limit)

            rows = await self._fetch(self._queries.at_all, (await self._run("search", rest),))
            others = [entry for entry in map(self._entry, rows) if entry.id not in known]
            hits += [Hit.of(entry, phrases) for entry in others]
            hits.sort(key=lambda hit: (hit.entry.time, hit.entry.id), reverse=True)
        return hits[: max(0, limit)]

    async def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        if not self._closed:
            self._closed = True
            await self.database.close()

    # --- How a call is made ---

    async def _catch_up(self) -> bool:
        """Index entries appended since the last search. Returns False if that cannot be written."""
        try:
            while await self._run("index", self._index.catch_up):
                pass
        except (TapeFull, TapeReadOnly):
            return False
        return True

    async def _run(self, doing: str, action: Callable[[Connection], Awaitable[T]]) -> T:
        self._check_open()
        return await self.database.run(doing, action)

    async def _fetch(self, statement: bytes, values: Any) -> list[tuple[Any, ...]]:
        async def fetch(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(statement, values)).fetchall()

        return await self._run("read", fetch)

    def _check_open(self) -> None:
        if self._closed:
            raise TapeClosed

    def _may_have(self, name: str) -> bool:
        self._check_open()
        return storable(name)

    def _path(
        self, entry_id: str, kinds: Collection[str] = frozenset(), until: str | None = None
    ) -> dict[str, Any]:
        stop = until if until is not None and storable(until) else None
        return {"id": entry_id, "kinds": [kind for kind in set(kinds) if storable(kind)], "until": stop}

    async def _runs(self, entry_id: str, kinds: Collection[str] = frozenset()) -> list[PathRange]:
        """The runs of places that the path to this entry is made of, the nearest first."""
        named = self._path(entry_id, kinds)
        rows = await self._fetch(self._queries.runs, named) if self._may_have(entry_id) else []
        if not rows:
            raise UnknownEntry(entry_id)
        return [PathRange(*row) for row in rows]

    async def _span(self, session_id: str) -> tuple[int, int] | None:
        """The first and the last place that a session may use; None when it does not exist."""
        if not self._may_have(session_id):
            return None
        rows = await self._fetch(self._queries.number, (session_id,))
        return (rows[0][0] * PLACES, rows[0][0] * PLACES + PLACES - 1) if rows else None

    async def _seq(self, entry_id: str, session_id: str | None = None) -> int:
        """The position of an entry, which must belong to the session if one is given."""
        rows = await self._fetch(self._queries.seq, (entry_id,)) if self._may_have(entry_id) else []
        if not rows:
            raise UnknownEntry(entry_id)
        if session_id not in (None, rows[0][1]):
            raise UnknownEntry(entry_id, session_id)
        return rows[0][0]

    def _entry(self, row: Sequence[Any]) -> Entry:
        try:
            return entry_of(row)
        except ValueError as error:
            damaged = EntryRow._make(row[:WIDTH]).id
            raise TapeCorrupt(
                f"{self.place} is damaged: entry {damaged!r} is not JSON ({error}); restore a copy"
            ) from error


@asynccontextmanager
async def private(database: Database) -> AsyncGenerator[Connection]:
    """A connection outside the pool, closed afterwards; database errors are explained."""
    connection = await database.connect()
    try:
        with database.telling("open"):
            yield connection
    finally:
        await connection.close()


async def _prepare(connection: Connection, schema: str, place: str, *, allowed: bool) -> Version:
    """Create missing tables, migrate older ones if that is allowed, refuse others."""
    version = await version_of(connection, schema)
    if version.present == 0 or (allowed and version.present < version.known):
        await migrate(connection, schema)
        version = await version_of(connection, schema)
    check(version, schema, place)
    return version


async def _outlast(task: asyncio.Future[None]) -> None:
    """Wait for it to end, however often that is cancelled: it has a time limit of its own."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
