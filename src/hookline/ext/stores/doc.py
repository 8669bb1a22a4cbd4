"""Documents in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Mapping
from typing import Any

from hookline.tape.sqlite.file import SQLiteFile, StoreHealth

from . import filters, values
from .fulltext import asked, indexed
from .protocols import Document, Json, Where

_SELECT = "SELECT collection, id, data, updated"


def _version_1(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE documents (
            number INTEGER PRIMARY KEY,
            collection TEXT NOT NULL,
            id TEXT NOT NULL,
            updated REAL NOT NULL,
            data TEXT NOT NULL,
            UNIQUE (collection, id)
        )
        """
    )
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")


class SQLiteDocs:
    """A `DocStore` in one SQLite file, with full text by FTS5."""

    def __init__(self, path: str) -> None:
        self._file = SQLiteFile(path, "doc", [_version_1])

    async def add(self, collection: str, data: Json) -> str:
        """Keep a new document; its new id."""
        document_id = values.new_id()
        await self.upsert(collection, {document_id: data})
        return document_id

    async def upsert(self, collection: str, documents: Mapping[str, Json]) -> None:
        """Store documents by id, replacing those with the same ids."""
        values.name(collection, "the collection")
        rows = [
            (
                values.name(document_id, "the id"),
                values.fields(data, f"the document {document_id!r}"),
                indexed(data),
            )
            for document_id, data in documents.items()
        ]
        now = time.time()

        def keep(db: sqlite3.Connection) -> None:
            for document_id, data, words in rows:
                (number,) = db.execute(
                    "INSERT INTO documents (collection, id, updated, data) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET updated = excluded.updated, data = excluded.data "
                    "RETURNING number",
                    (collection, document_id, now, data),
                ).fetchone()
                db.execute("DELETE FROM words WHERE rowid = ?", (number,))
                db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, words))

        await self._file.write(keep)

    async def get(self, collection: str, document_id: str) -> Document | None:
        """The document with this id."""
        wanted = values.name(collection, "the collection"), values.name(document_id, "the id")
        statement = f"{_SELECT} FROM documents WHERE collection = ? AND id = ?"

        def select(db: sqlite3.Connection) -> Document | None:
            row = db.execute(statement, wanted).fetchone()
            return row and _document(row)

        return await self._file.read(select)

    async def delete(self, collection: str, ids: Collection[str]) -> int:
        """Delete documents; how many there were."""
        values.name(collection, "the collection")
        wanted = [values.name(document_id, "the id") for document_id in ids]

        def remove(db: sqlite3.Connection) -> int:
            gone = 0
            for document_id in wanted:
                statement = "DELETE FROM documents WHERE collection = ? AND id = ? RETURNING number"
                for row in db.execute(statement, (collection, document_id)).fetchall():
                    db.execute("DELETE FROM words WHERE rowid = ?", row)
                    gone += 1
            return gone

        return await self._file.write(remove)

    async def query(
        self, collection: str, where: Where | None = None, *, limit: int = 100, offset: int = 0
    ) -> list[Document]:
        """The documents that meet the filter, in the order of their ids."""
        clause, given = filters.sql(filters.conditions(where), "data")
        statement = (
            f"{_SELECT} FROM documents WHERE collection = ?{clause} ORDER BY id LIMIT ? OFFSET ?"
        )
        wanted = (
            values.name(collection, "the collection"),
            *given,
            values.limit(limit),
            values.limit(offset, 0, "offset"),
        )
        return await self._file.read(
            lambda db: [_document(row) for row in db.execute(statement, wanted)]
        )

    async def search(
        self,
        text: str,
        *,
        collection: str | None = None,
        where: Where | None = None,
        limit: int = 20,
    ) -> list[Document]:
        """The documents with all these words, the best first."""
        clause, given = filters.sql(filters.conditions(where), "data")
        if collection is not None:
            clause = f" AND collection = ?{clause}"
            given = [values.name(collection, "the collection"), *given]
        looked_for = asked(values.text(text, "the search"))
        wanted = (looked_for, *given, values.limit(limit))
        if looked_for is None:
            return []
        statement = (
            f"{_SELECT}, -words.rank FROM words CROSS JOIN documents ON number = words.rowid "
            f"WHERE words MATCH ?{clause} ORDER BY words.rank, id LIMIT ?"
        )
        return await self._file.read(
            lambda db: [_document(row) for row in db.execute(statement, wanted)]
        )

    async def collections(self) -> dict[str, int]:
        """Every collection and how many documents it has."""
        statement = "SELECT collection, count(*) FROM documents GROUP BY collection ORDER BY collection"
        return await self._file.read(lambda db: dict(db.execute(statement)))

    async def health(self) -> StoreHealth:
        """Whether the file works and how many documents it has."""
        return await self._file.health("SELECT count(*) FROM documents")

    async def close(self) -> None:
        """Close the file."""
        await self._file.close()


def _document(row: tuple[Any, ...]) -> Document:
    collection, document_id, data, updated, *score = row
    return Document(collection, document_id, json.loads(data), updated, *score)
