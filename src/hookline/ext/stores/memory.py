"""Notes about users in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection
from typing import Any

from hookline.tape.sqlite.file import SQLiteFile, StoreHealth

from . import filters, values
from .fulltext import asked, indexed
from .protocols import Json, MemoryNote, Where

_SELECT = "SELECT id, user, session, notes.text, created, metadata"


def _version_1(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE notes (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            user TEXT NOT NULL,
            session TEXT NOT NULL,
            created REAL NOT NULL,
            metadata TEXT NOT NULL,
            text TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX notes_users ON notes (user, session)")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")


class SQLiteMemory:
    """A `MemoryStore` in one SQLite file, with recall by FTS5."""

    def __init__(self, path: str) -> None:
        self._file = SQLiteFile(path, "memory", [_version_1])

    async def add(
        self, text: str, *, user: str, session: str = "", metadata: Json | None = None
    ) -> MemoryNote:
        """Remember something; without a session it holds in all sessions of the user."""
        note = MemoryNote(
            values.new_id(),
            values.name(user, "the user"),
            values.name(session, "the session") if session else "",
            values.text(text, "the note"),
            time.time(),
            metadata or {},
        )
        known = values.fields(note.metadata, "the metadata")
        row = (note.id, note.user, note.session, note.created, known, note.text)

        def keep(db: sqlite3.Connection) -> None:
            number = db.execute(
                "INSERT INTO notes (id, user, session, created, metadata, text) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            ).lastrowid
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, indexed(text)))

        await self._file.write(keep)
        return note

    async def update(
        self, note_id: str, *, user: str, text: str | None = None, metadata: Json | None = None
    ) -> bool:
        """Change a note's text or metadata. Return whether the user has such a note."""
        wanted = values.name(note_id, "the id"), values.name(user, "the user")
        new_text = None if text is None else values.text(text, "the note")
        known = None if metadata is None else values.fields(metadata, "the metadata")

        def change(db: sqlite3.Connection) -> bool:
            row = db.execute(
                "UPDATE notes SET text = coalesce(?, text), metadata = coalesce(?, metadata) "
                "WHERE id = ? AND user = ? RETURNING number",
                (new_text, known, *wanted),
            ).fetchone()
            if row is not None and new_text is not None:
                db.execute("UPDATE words SET text = ? WHERE rowid = ?", (indexed(new_text), *row))
            return row is not None

        return await self._file.write(change)

    async def get(self, note_id: str, *, user: str) -> MemoryNote | None:
        """The user's note with this id."""
        wanted = values.name(note_id, "the id"), values.name(user, "the user")

        def select(db: sqlite3.Connection) -> MemoryNote | None:
            row = db.execute(f"{_SELECT} FROM notes WHERE id = ? AND user = ?", wanted).fetchone()
            return row and _note(row)

        return await self._file.read(select)

    async def delete(self, ids: Collection[str], *, user: str) -> int:
        """Forget notes of the user; how many there were."""
        owner = values.name(user, "the user")
        wanted = [(values.name(note_id, "the id"), owner) for note_id in ids]

        def remove(db: sqlite3.Connection) -> int:
            return sum(_remove(db, "id = ? AND user = ?", each) for each in wanted)

        return await self._file.write(remove)

    async def forget(self, *, user: str, session: str | None = None) -> int:
        """Forget all notes of a user, or those of one session; how many there were."""
        clause, wanted = "user = ?", [values.name(user, "the user")]
        if session is not None:
            clause += " AND session = ?"
            wanted.append(values.text(session, "the session"))
        return await self._file.write(lambda db: _remove(db, clause, wanted))

    async def recall(
        self,
        text: str,
        *,
        user: str,
        session: str | None = None,
        where: Where | None = None,
        limit: int = 20,
    ) -> list[MemoryNote]:
        """The user's notes with any of these words, the best first."""
        clause, given = _scope(user, session, where)
        looked_for = asked(values.text(text, "the search"), any_word=True)
        wanted = (looked_for, *given, values.limit(limit))
        if looked_for is None:
            return []
        statement = (
            f"{_SELECT}, -words.rank FROM words CROSS JOIN notes ON number = words.rowid "
            f"WHERE words MATCH ? AND {clause} ORDER BY words.rank, number DESC LIMIT ?"
        )
        return await self._file.read(lambda db: [_note(row) for row in db.execute(statement, wanted)])

    async def recent(
        self,
        *,
        user: str,
        session: str | None = None,
        where: Where | None = None,
        limit: int = 20,
    ) -> list[MemoryNote]:
        """The user's notes, newest first."""
        clause, given = _scope(user, session, where)
        statement = f"{_SELECT} FROM notes WHERE {clause} ORDER BY number DESC LIMIT ?"
        wanted = (*given, values.limit(limit))
        return await self._file.read(lambda db: [_note(row) for row in db.execute(statement, wanted)])

    async def health(self) -> StoreHealth:
        """Whether the file works and how many notes it has."""
        return await self._file.health("SELECT count(*) FROM notes")

    async def close(self) -> None:
        """Close the file."""
        await self._file.close()


def _scope(user: str, session: str | None, where: Where | None) -> tuple[str, list[Any]]:
    clause, given = "user = ?", [values.name(user, "the user")]
    if session is not None:
        clause += " AND session IN ('', ?)"
        given.append(values.text(session, "the session"))
    filtered, more = filters.sql(filters.conditions(where), "metadata")
    return clause + filtered, [*given, *more]


def _remove(db: sqlite3.Connection, clause: str, wanted: Collection[str]) -> int:
    gone = db.execute(f"DELETE FROM notes WHERE {clause} RETURNING number", tuple(wanted)).fetchall()
    db.executemany("DELETE FROM words WHERE rowid = ?", gone)
    return len(gone)


def _note(row: tuple[Any, ...]) -> MemoryNote:
    note_id, user, session, text, created, metadata, *score = row
    return MemoryNote(note_id, user, session, text, created, json.loads(metadata), *score)
