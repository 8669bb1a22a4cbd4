"""Facts with provenance and time in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection
from typing import Any

from hookline.tape.sqlite.file import SQLiteFile, StoreHealth

from . import filters, values
from .fulltext import asked, indexed
from .protocols import Fact, Json, Where

_SELECT = (
    "SELECT id, subject, predicate, object, source, since, until, retracted_by, recorded, metadata"
)
_HOLDS = "since <= ? AND (until IS NULL OR until > ?)"
_SAME = "subject = ? AND predicate = ? AND object = ? AND source = ?"


def _version_1(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE facts (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            subject TEXT NOT NULL,
            predicate TEXT NOT NULL,
            object TEXT NOT NULL,
            source TEXT NOT NULL,
            since REAL NOT NULL,
            until REAL,
            retracted_by TEXT NOT NULL DEFAULT '',
            recorded REAL NOT NULL,
            metadata TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX facts_subjects ON facts (subject, predicate)")
    db.execute("CREATE INDEX facts_predicates ON facts (predicate, object)")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")


class SQLiteFacts:
    """A `FactStore` in one SQLite file, with full text by FTS5."""

    def __init__(self, path: str) -> None:
        self._file = SQLiteFile(path, "fact", [_version_1])

    async def assert_fact(
        self,
        subject: str,
        predicate: str,
        obj: Any,
        *,
        source: str,
        since: float | None = None,
        metadata: Json | None = None,
    ) -> Fact:
        """State a fact from a time on, now by default."""
        now = time.time()
        key = (
            values.name(subject, "the subject"),
            values.name(predicate, "the predicate"),
            values.encoded(obj, "the object", sort_keys=True),
            values.name(source, "the source"),
        )
        begin = now if since is None else values.number(since, "since")
        known = values.fields(metadata or {}, "the metadata")
        words = indexed([subject, predicate, obj])

        def state(db: sqlite3.Connection) -> Fact:
            held = f"{_SELECT} FROM facts WHERE {_SAME} AND {_HOLDS}"
            row = db.execute(held, (*key, begin, begin)).fetchone()
            if row is not None:
                return _fact(row)
            # Stated again from a later time on: the earlier fact ends where the later one begins.
            later = f"SELECT min(since) FROM facts WHERE {_SAME} AND since > ?"
            (until,) = db.execute(later, (*key, begin)).fetchone()
            fact_id = values.new_id()
            number = db.execute(
                "INSERT INTO facts (id, subject, predicate, object, source, since, until, recorded, "
                "metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (fact_id, *key, begin, until, now, known),
            ).lastrowid
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, words))
            return _fact(db.execute(f"{_SELECT} FROM facts WHERE id = ?", (fact_id,)).fetchone())

        return await self._file.write(state)

    async def retract(
        self,
        subject: str,
        predicate: str,
        obj: Any = ...,
        *,
        source: str,
        of: str | None = None,
        at: float | None = None,
    ) -> int:
        """End facts at a time, now by default; how many were ended."""
        end = time.time() if at is None else values.number(at, "at")
        by = values.name(source, "the source")
        clause, given = _matching(subject, predicate, obj, of)

        def end_them(db: sqlite3.Connection) -> int:
            statement = f"UPDATE facts SET until = ?, retracted_by = ? WHERE {_HOLDS}{clause}"
            return db.execute(statement, (end, by, end, end, *given)).rowcount

        return await self._file.write(end_them)

    async def get(self, fact_id: str) -> Fact | None:
        """The fact with this id."""
        wanted = (values.name(fact_id, "the id"),)

        def select(db: sqlite3.Connection) -> Fact | None:
            row = db.execute(f"{_SELECT} FROM facts WHERE id = ?", wanted).fetchone()
            return row and _fact(row)

        return await self._file.read(select)

    async def query(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        obj: Any = ...,
        *,
        source: str | None = None,
        as_of: float | None = None,
        where: Where | None = None,
        limit: int = 100,
    ) -> list[Fact]:
        """The facts that hold at a time, now by default, oldest first."""
        at = time.time() if as_of is None else values.number(as_of, "as_of")
        clause, given = _matching(subject, predicate, obj, source)
        filtered, more = filters.sql(filters.conditions(where), "metadata")
        statement = (
            f"{_SELECT} FROM facts WHERE {_HOLDS}{clause}{filtered} ORDER BY since, number LIMIT ?"
        )
        wanted = (at, at, *given, *more, values.limit(limit))
        return await self._file.read(lambda db: [_fact(row) for row in db.execute(statement, wanted)])

    async def history(
        self, subject: str, predicate: str | None = None, *, limit: int = 100
    ) -> list[Fact]:
        """Everything ever stated of a subject, retracted or not, oldest first."""
        clause, given = _matching(subject, predicate, ..., None)
        statement = f"{_SELECT} FROM facts WHERE 1{clause} ORDER BY since, number LIMIT ?"
        wanted = (*given, values.limit(limit))
        return await self._file.read(lambda db: [_fact(row) for row in db.execute(statement, wanted)])

    async def search(self, text: str, *, as_of: float | None = None, limit: int = 20) -> list[Fact]:
        """The facts that hold and have all these words, the best first."""
        at = time.time() if as_of is None else values.number(as_of, "as_of")
        looked_for = asked(values.text(text, "the search"))
        wanted = (looked_for, at, at, values.limit(limit))
        if looked_for is None:
            return []
        statement = (
            f"{_SELECT} FROM words CROSS JOIN facts ON number = words.rowid "
            f"WHERE words MATCH ? AND {_HOLDS} ORDER BY words.rank, number LIMIT ?"
        )
        return await self._file.read(lambda db: [_fact(row) for row in db.execute(statement, wanted)])

    async def delete(self, ids: Collection[str]) -> int:
        """Delete facts for good, with their history; how many there were."""
        wanted = [values.name(fact_id, "the id") for fact_id in ids]

        def remove(db: sqlite3.Connection) -> int:
            gone = 0
            for fact_id in wanted:
                rows = db.execute(
                    "DELETE FROM facts WHERE id = ? RETURNING number", (fact_id,)
                ).fetchall()
                db.executemany("DELETE FROM words WHERE rowid = ?", rows)
                gone += len(rows)
            return gone

        return await self._file.write(remove)

    async def health(self) -> StoreHealth:
        """Whether the file works and how many facts it has, retracted ones too."""
        return await self._file.health("SELECT count(*) FROM facts")

    async def close(self) -> None:
        """Close the file."""
        await self._file.close()


def _matching(
    subject: str | None, predicate: str | None, obj: Any, source: str | None
) -> tuple[str, list[Any]]:
    clause = ""
    given: list[Any] = []
    for column, wanted in (("subject", subject), ("predicate", predicate), ("source", source)):
        if wanted is not None:
            clause += f" AND {column} = ?"
            given.append(values.name(wanted, f"the {column}"))
    if obj is not ...:
        clause += " AND object = ?"
        given.append(values.encoded(obj, "the object", sort_keys=True))
    return clause, given


def _fact(row: tuple[Any, ...]) -> Fact:
    fact_id, subject, predicate, obj, source, since, until, retracted_by, recorded, metadata = row
    return Fact(
        fact_id,
        subject,
        predicate,
        json.loads(obj),
        source,
        since,
        until,
        retracted_by,
        recorded,
        json.loads(metadata),
    )
