"""Vectors in one SQLite file, searched by sqlite-vec.

Some builds of Python have an `sqlite3` that cannot load extensions; there `pysqlite3`, the same module
with an SQLite of its own, takes its place.
"""

from __future__ import annotations

import json
import math
import sqlite3
import struct
from collections.abc import Collection, Sequence
from typing import Any, Literal

from hookline.tape.sqlite.file import Migration, SQLiteFile, StoreHealth

from . import filters, values
from .errors import BadStoreValue, MissingStoreLibrary, StoreMisconfigured
from .protocols import Vector, Where

MOST_NEAR = 4096
"""The largest number of neighbours that sqlite-vec looks for."""

_LARGEST = 3.4e38  # of a 32-bit float
_SELECT = "SELECT id, embedding, text, metadata"


class SQLiteVectors:
    """A `VectorStore` in one SQLite file: vectors of one length under one metric."""

    def __init__(
        self,
        path: str,
        *,
        dimensions: int,
        metric: Literal["cosine", "l2"] = "cosine",
        name: str = "vectors",
    ) -> None:
        self.dimensions = dimensions
        self.metric = metric
        self._name = name
        driver = _driver()
        self._file = SQLiteFile(
            path,
            "vector",
            [_version_1(dimensions, metric)],
            connect=_connecting(driver),
            errors=driver.Error,
            opened=self._check,
        )

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuse a file that was made for other vectors."""
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'shape'").fetchone() is None:
            return
        shape = db.execute("SELECT dimensions, metric FROM shape").fetchone()
        if shape != (self.dimensions, self.metric):
            raise StoreMisconfigured(
                self._name,
                f"{self._file.path} holds vectors of {shape[0]} dimensions under {shape[1]}, and the "
                f"configuration says {self.dimensions} under {self.metric}; change it, or the path",
            )

    async def upsert(self, vectors: Sequence[Vector]) -> None:
        """Store vectors by id, replacing those with the same ids."""
        rows = [
            (
                values.name(vector.id, "the id"),
                values.text(vector.text, "the text"),
                values.fields(vector.metadata, f"the metadata of {vector.id!r}"),
                self._packed(vector.values, f"the vector {vector.id!r}"),
            )
            for vector in vectors
        ]

        def keep(db: sqlite3.Connection) -> None:
            for vector_id, text, metadata, packed in rows:
                (number,) = db.execute(
                    "INSERT INTO items (id, text, metadata) VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET text = excluded.text, metadata = excluded.metadata RETURNING number",
                    (vector_id, text, metadata),
                ).fetchone()
                db.execute("DELETE FROM vectors WHERE rowid = ?", (number,))
                db.execute("INSERT INTO vectors (rowid, embedding) VALUES (?, ?)", (number, packed))

        await self._file.write(keep)

    async def get(self, vector_id: str) -> Vector | None:
        """The vector with this id."""
        wanted = (values.name(vector_id, "the id"),)

        def select(db: sqlite3.Connection) -> Vector | None:
            statement = f"{_SELECT} FROM items JOIN vectors ON vectors.rowid = number WHERE id = ?"
            row = db.execute(statement, wanted).fetchone()
            return row and _vector(row)

        return await self._file.read(select)

    async def delete(self, ids: Collection[str]) -> int:
        """Delete vectors; how many there were."""
        wanted = [values.name(vector_id, "the id") for vector_id in ids]

        def remove(db: sqlite3.Connection) -> int:
            gone = 0
            for vector_id in wanted:
                rows = db.execute(
                    "DELETE FROM items WHERE id = ? RETURNING number", (vector_id,)
                ).fetchall()
                for row in rows:
                    db.execute("DELETE FROM vectors WHERE rowid = ?", row)
                gone += len(rows)
            return gone

        return await self._file.write(remove)

    async def search(
        self, near: Sequence[float], *, where: Where | None = None, limit: int = 10
    ) -> list[Vector]:
        """The nearest vectors whose metadata meets the filter, the nearest first."""
        packed = self._packed(near, "the vector searched for")
        if values.limit(limit) > MOST_NEAR:
            raise BadStoreValue(
                f"limit must be at most {MOST_NEAR:,} in a search of vectors, not {limit}"
            )
        clause, given = filters.sql(filters.conditions(where), "metadata")
        among = f" AND rowid IN (SELECT number FROM items WHERE 1{clause})" if clause else ""
        statement = (
            f"{_SELECT}, distance FROM (SELECT rowid, embedding, distance FROM vectors "
            f"WHERE embedding MATCH ? AND k = ?{among}) AS found JOIN items ON number = found.rowid "
            "ORDER BY distance, id"
        )
        wanted = (packed, limit, *given)
        return await self._file.read(lambda db: [_vector(row) for row in db.execute(statement, wanted)])

    async def query(self, where: Where | None = None, *, limit: int = 100) -> list[Vector]:
        """The vectors whose metadata meets the filter, in the order of their ids."""
        clause, given = filters.sql(filters.conditions(where), "metadata")
        statement = (
            f"{_SELECT} FROM (SELECT * FROM items WHERE 1{clause} ORDER BY id LIMIT ?) "
            "JOIN vectors ON vectors.rowid = number ORDER BY id"
        )
        wanted = (*given, values.limit(limit))
        return await self._file.read(lambda db: [_vector(row) for row in db.execute(statement, wanted)])

    async def health(self) -> StoreHealth:
        """Whether the file works and how many vectors it has."""
        return await self._file.health("SELECT count(*) FROM items")

    async def close(self) -> None:
        """Close the file."""
        await self._file.close()

    def _packed(self, given: Sequence[float], what: str) -> bytes:
        if len(given) != self.dimensions:
            raise BadStoreValue(
                f"{what} has {len(given)} dimensions, and the store {self._name!r} keeps vectors of "
                f"{self.dimensions}"
            )
        for value in given:
            if not abs(values.number(value, f"each value of {what}")) <= _LARGEST:
                raise BadStoreValue(f"{what} has the value {value!r}, too large for a 32-bit float")
        packed = struct.pack(f"<{self.dimensions}f", *given)
        if self.metric == "cosine" and not any(struct.unpack(f"<{self.dimensions}f", packed)):
            raise BadStoreValue(
                f"{what} is all zeros, which has no direction: cosine cannot compare it"
            )
        return packed


def _version_1(dimensions: int, metric: str) -> Migration:
    def make(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE shape (dimensions INTEGER NOT NULL, metric TEXT NOT NULL)")
        db.execute("INSERT INTO shape VALUES (?, ?)", (dimensions, metric))
        db.execute(
            """
            CREATE TABLE items (
                number INTEGER PRIMARY KEY,
                id TEXT NOT NULL UNIQUE,
                metadata TEXT NOT NULL,
                text TEXT NOT NULL
            )
            """
        )
        db.execute(
            "CREATE VIRTUAL TABLE vectors USING vec0 "
            f"(embedding float[{dimensions}] distance_metric={metric})"
        )

    return make


def _driver() -> Any:
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        import pysqlite3  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise MissingStoreLibrary("sqlite-vec", "pysqlite3") from error
    return pysqlite3


def _connecting(driver: Any) -> Any:
    try:
        import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise MissingStoreLibrary("sqlite-vec", "sqlite-vec") from error

    def connect(*args: Any, **options: Any) -> Any:
        db = driver.connect(*args, **options)
        try:
            db.enable_load_extension(True)
            sqlite_vec.load(db)  # pyright: ignore[reportUnknownMemberType]
            db.enable_load_extension(False)
        except BaseException:
            db.close()
            raise
        return db

    return connect


def _vector(row: tuple[Any, ...]) -> Vector:
    vector_id, packed, text, metadata, *distance = row
    unpacked = struct.unpack(f"<{len(packed) // 4}f", packed)
    near = [0.0 if math.isclose(each, 0.0, abs_tol=1e-7) else each for each in distance]
    return Vector(vector_id, unpacked, text, json.loads(metadata), *near)
