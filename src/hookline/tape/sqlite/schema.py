"""The SQLite file of a tape: its tables, its version, opening it, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from hookline.errors import (
    NotATape,
    TapeClosed,
    TapeCorrupt,
    TapeError,
    TapeFull,
    TapeLocked,
    TapeReadOnly,
    TapeUnavailable,
    TapeVersionMismatch,
)
from hookline.system.private_files import private_file

from ..placement import declared_columns

APPLICATION_ID: Final = 0x484B4C4E  # "HKLN", in the header of the file


MARKS: Final = frozenset({"anchor", "switch", "fork", "merge", "label", "name", "model"})
"""The rare kinds, which are looked for in long sessions: the only ones with an index by kind."""

MARKS_ONLY: Final = "kind IN ('anchor', 'switch', 'fork', 'merge', 'label', 'name', 'model')"


def _version_1(db: sqlite3.Connection) -> None:
    columns = declared_columns(real="REAL", flag="INTEGER", text="TEXT")
    db.execute("CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)")
    db.execute(f"CREATE TABLE entries (seq INTEGER PRIMARY KEY, {columns}, UNIQUE (id))")
    db.execute("CREATE INDEX entries_jumps ON entries (parent_id) WHERE jump = 1")
    # The jumps by place: the runs of places that a branch is made of are found without reading them.
    db.execute("CREATE INDEX entries_jump_places ON entries (seq, parent_id) WHERE jump = 1")
    db.execute(f"CREATE INDEX entries_marks ON entries (kind) WHERE {MARKS_ONLY}")
    # A search indexes the text of each session up to a position: an append pays nothing for it.
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content='', columnsize=0)")
    db.execute("CREATE TABLE texts (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL)")
    db.execute("CREATE TABLE indexed (session INTEGER PRIMARY KEY, next INTEGER NOT NULL)")


MIGRATIONS: Final[list[Callable[[sqlite3.Connection], None]]] = [_version_1]
"""What leads from each version of the file to the next. Never change one that was released."""


def connect(path: str, synchronous: str, patience: float) -> sqlite3.Connection:
    """Open the file, make it when it is new, and bring it to the present version."""
    with telling(path, "open"):
        if path != ":memory:":
            with suppress(OSError):  # SQLite explains better what is wrong with the path
                private_file(path)
        db = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        with telling(path, "open"):
            _check(db, path)
            _write_ahead(db, patience)
            db.execute(f"PRAGMA synchronous = {synchronous}")
            db.execute("PRAGMA secure_delete = ON")  # a settled message leaves no copy behind
            _migrate(db)
            db.execute("PRAGMA busy_timeout = 0")  # from here on, waiting does not block
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection, path: str) -> None:
    """Refuse a file that is not ours to write, before anything is changed."""
    db.execute("BEGIN")  # one view of the file: another process may be making it
    version = _pragma(db, "user_version")
    application = _pragma(db, "application_id")
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    db.execute("COMMIT")
    if application != APPLICATION_ID and (tables or version or application):
        raise NotATape(
            f"{path} is a database of another program, not a tape; "
            "name another file, it was left as it is"
        )
    if version > len(MIGRATIONS):
        raise TapeVersionMismatch(
            f"{path} is a tape of version {version}, and this Hookline knows versions up to "
            f"{len(MIGRATIONS)}; update Hookline, the file was left as it is"
        )


def _write_ahead(db: sqlite3.Connection, patience: float) -> None:
    """Change the file's mode, for which the database itself does not wait."""
    deadline = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def _migrate(db: sqlite3.Connection) -> None:
    if _pragma(db, "user_version") == len(MIGRATIONS):
        return
    with transaction(db):  # another process may have done it while we waited: look again inside
        for version in range(_pragma(db, "user_version"), len(MIGRATIONS)):
            MIGRATIONS[version](db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


@contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None]:
    """Write all or nothing; inside another transaction, as a part of it that can fail alone."""
    inner = db.in_transaction
    db.execute("SAVEPOINT part" if inner else "BEGIN IMMEDIATE")
    try:
        yield
        db.execute("RELEASE part" if inner else "COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK TO part" if inner else "ROLLBACK")
            if inner:
                db.execute("RELEASE part")
        raise


# --- What errors of SQLite mean ---

_MEANINGS: Final[dict[int, tuple[type[TapeError], str]]] = {
    sqlite3.SQLITE_BUSY: (TapeLocked, "is in use by another process; wait for it, or end it"),
    sqlite3.SQLITE_LOCKED: (TapeLocked, "is in use by another process; wait for it, or end it"),
    sqlite3.SQLITE_FULL: (TapeFull, "cannot grow, the disk is full; make room and try again"),
    sqlite3.SQLITE_READONLY: (
        TapeReadOnly,
        "cannot be written; check the permissions of the file and its directory",
    ),
    sqlite3.SQLITE_PERM: (
        TapeReadOnly,
        "cannot be written; check the permissions of the file and its directory",
    ),
    sqlite3.SQLITE_CORRUPT: (
        TapeCorrupt,
        "is damaged; move it away, and restore a copy or import an export",
    ),
    sqlite3.SQLITE_NOTADB: (NotATape, "is not a tape, nor any database; name another file"),
    sqlite3.SQLITE_CANTOPEN: (
        TapeUnavailable,
        "cannot be opened; check that its directory exists and that you may use it",
    ),
    sqlite3.SQLITE_IOERR: (TapeUnavailable, "cannot be read or written; check the disk"),
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether trying again later may help."""
    return meaning_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def told(error: sqlite3.Error, path: str, doing: str) -> TapeError:
    """Explain an error of the database in one line, with what to do."""
    if "closed database" in str(error):
        return TapeClosed()
    kind, advice = _MEANINGS.get(meaning_of(error), (TapeError, "failed; run `hookline doctor`"))
    return kind(f"cannot {doing} the tape: {path} {advice} (SQLite: {error})")


def meaning_of(error: Exception) -> int:
    """The code of an error of SQLite, without the extended part."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # there is no room for the file that processes share
        return sqlite3.SQLITE_FULL
    return code & 0xFF


@contextmanager
def telling(path: str, doing: str) -> Generator[None]:
    """Raise what the database raises as an error of the tape."""
    try:
        yield
    except sqlite3.Error as error:
        raise told(error, os.fspath(path), doing) from error
