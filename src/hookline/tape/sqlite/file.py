"""The SQLite file of a store: opening it, its version, its calls, and what its errors mean.

A file holds one store. It may be used by several processes at the same time; a commit survives the
death of the process.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from hookline.errors import StoreDamaged, StoreError, StoreLocked, StoreUnavailable
from hookline.system.private_files import private_file, private_folder

from .schema import meaning_of, transaction
from .store_worker import StoreWorker

T = TypeVar("T")
Migration = Callable[[sqlite3.Connection], None]

PATIENCE: Final = 10.0
"""Seconds that a call waits for another process that writes."""

_KINDS: Final = {  # in the header of the file
    "doc": 0x484B4C44,
    "memory": 0x484B4C4D,
    "fact": 0x484B4C46,
    "vector": 0x484B4C56,
    "trigger": 0x484B4C54,
}


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """Whether a store can be used, how much it holds, and where."""

    ok: bool
    count: int
    place: str
    problem: str = ""


class SQLiteFile:
    """One file and the thread that works on it. It is opened, or made, by the first call."""

    def __init__(
        self,
        path: str,
        kind: str,
        migrations: Sequence[Migration],
        *,
        connect: Callable[..., Any] = sqlite3.connect,
        errors: type[Exception] = sqlite3.Error,
        opened: Migration | None = None,
    ) -> None:
        self.path = path
        self._kind = kind
        self._migrations = migrations
        self._connect = connect
        self._errors = errors
        self._opened = opened
        self._db: Any = None
        self._worker = StoreWorker(path)

    async def read(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do something that changes nothing, on one view of the file."""
        return await self._worker.run(lambda: self._telling("read", lambda db: _viewing(db, action)))

    async def write(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do something, all or nothing."""
        return await self._worker.run(lambda: self._telling("write", lambda db: _writing(db, action)))

    async def health(self, count: str) -> StoreHealth:
        """Whether the file can be opened and read through, and what a statement counts in it."""

        def look(db: sqlite3.Connection) -> StoreHealth:
            problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            number = db.execute(count).fetchone()[0]
            return StoreHealth(problem == "ok", number, self.path, "" if problem == "ok" else problem)

        try:
            return await self.read(look)
        except StoreError as error:
            return StoreHealth(False, 0, self.path, str(error))

    async def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        await self._worker.close(self._close)

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # --- In the thread ---

    def _telling(self, doing: str, action: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return action(self._open())
        except self._errors as error:
            raise self._told(error, doing) from error

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._make_folder()
            db = self._connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._check(db)
                _write_ahead(db, self._errors)
                db.execute("PRAGMA synchronous = NORMAL")
                if self._opened is not None:
                    self._opened(db)
                self._migrate(db)
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def _make_folder(self) -> None:
        if self.path == ":memory:":
            return
        try:
            private_folder(Path(self.path).parent)
            private_file(self.path)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot open the store {self.path}: its folder cannot be made ({error}); "
                "name another path"
            ) from error

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuse a file that is not ours to write, before anything is changed."""
        db.execute("BEGIN")  # one view of the file: another process may be making it
        version, application = _pragma(db, "user_version"), _pragma(db, "application_id")
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        db.execute("COMMIT")
        if application != _KINDS[self._kind] and (tables or version or application):
            ours = next((kind for kind, number in _KINDS.items() if number == application), None)
            what = f"a {ours} store" if ours else "a database of another program"
            raise StoreDamaged(
                f"{self.path} is {what}, not a {self._kind} store; name another path, "
                "it was left as it is"
            )
        if version > len(self._migrations):
            raise StoreDamaged(
                f"{self.path} is a {self._kind} store of version {version}, and this Hookline knows "
                f"versions up to {len(self._migrations)}; update Hookline, it was left as it is"
            )

    def _migrate(self, db: sqlite3.Connection) -> None:
        if _pragma(db, "user_version") == len(self._migrations):
            return
        with transaction(db):  # another process may have done it while we waited: look again inside
            for version in range(_pragma(db, "user_version"), len(self._migrations)):
                self._migrations[version](db)
            db.execute(f"PRAGMA application_id = {_KINDS[self._kind]}")
            db.execute(f"PRAGMA user_version = {len(self._migrations)}")

    def _told(self, error: Exception, doing: str) -> StoreError:
        doing = "open" if self._db is None else doing
        kind, advice = _MEANINGS.get(meaning_of(error), (StoreError, "failed"))
        return kind(f"cannot {doing} the store: {self.path} {advice} (SQLite: {error})")


def _viewing(db: sqlite3.Connection, action: Callable[[sqlite3.Connection], T]) -> T:
    db.execute("BEGIN")
    try:
        return action(db)
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _writing(db: sqlite3.Connection, action: Callable[[sqlite3.Connection], T]) -> T:
    with transaction(db):
        return action(db)


def _write_ahead(db: sqlite3.Connection, errors: type[Exception]) -> None:
    """Change the file's mode, for which the database itself does not wait."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except errors as error:
            if meaning_of(error) not in _BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_IN_USE: Final = (StoreLocked, "is in use by another process; wait for it, or end it")
_NO_WRITING: Final = (
    StoreUnavailable,
    "cannot be written; check the permissions of the file and its folder",
)
_MEANINGS: Final[dict[int, tuple[type[StoreError], str]]] = {
    sqlite3.SQLITE_BUSY: _IN_USE,
    sqlite3.SQLITE_LOCKED: _IN_USE,
    sqlite3.SQLITE_READONLY: _NO_WRITING,
    sqlite3.SQLITE_PERM: _NO_WRITING,
    sqlite3.SQLITE_FULL: (StoreUnavailable, "cannot grow, the disk is full; make room and try again"),
    sqlite3.SQLITE_CORRUPT: (StoreDamaged, "is damaged; move it away, and restore a copy"),
    sqlite3.SQLITE_NOTADB: (StoreDamaged, "is not a store, nor any database; name another path"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "cannot be opened; check that you may use it"),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "cannot be read or written; check the disk"),
    sqlite3.SQLITE_TOOBIG: (StoreError, "cannot hold a value this large; keep it in a file"),
}
