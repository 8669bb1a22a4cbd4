"""Storage of approvals: a SQLite file of the home, or another database with the same statements.

A statement has `?` for each value, and `{questions}` and `{grants}` for the two tables.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final, Protocol, TypeAlias
from weakref import finalize

from hookline.errors import ApprovalError
from hookline.system.private_files import private_file, private_folder

Rows: TypeAlias = list[tuple[Any, ...]]

SCHEMA: Final = """
create table if not exists questions (
    id text primary key, asked real not null, expires real not null, hash text not null,
    session_id text not null, call_id text not null, request text not null,
    answered real, approved integer, answer text, reason text, by text
);
create table if not exists grants (
    id text primary key, question text, hash text not null, tool text not null, call text not null,
    session_id text not null, call_id text, workspace text not null, who text not null,
    scope text not null, until real, by text not null, made real not null, used real, revoked real
);
create index if not exists grants_by_hash on grants (hash);
"""


class ApprovalTransaction(Protocol):
    """Several statements: all of them are kept, or none is."""

    def read(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a statement."""
        ...

    def write(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Change something; how many rows it changed."""
        ...


class ApprovalStorage(Protocol):
    """Stores questions and grants. Failures raise `ApprovalError`."""

    @property
    def empty(self) -> bool:
        """Whether it is plain to see that nothing was ever kept."""
        ...

    def now(self) -> float:
        """The time, the same for all who share this storage."""
        ...

    def read(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a single statement."""
        ...

    def transaction(self, *, alone: bool = False) -> AbstractContextManager[ApprovalTransaction]:
        """Run changes. With `alone`, other exclusive changes wait."""
        ...

    def close(self) -> None:
        """Close connections; the next call opens them again."""
        ...


class SQLiteApprovals:
    """Approvals in a file that only its owner reads. It is made when there is something to keep."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def empty(self) -> bool:
        """Whether there is no file."""
        return not self.path.exists()

    def now(self) -> float:
        """The time of this machine."""
        return time.time()

    def read(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a single statement."""
        with self._open() as opened:
            return opened.read(statement, values)

    @contextmanager
    def transaction(self, *, alone: bool = False) -> Generator[ApprovalTransaction]:
        """Change something; a file has one writer at a time, who is always alone."""
        with self._open() as opened:
            opened.write("begin immediate")
            try:
                yield opened
            except BaseException:
                opened.write("rollback")
                raise
            opened.write("commit")

    def close(self) -> None:
        """Nothing to do: the file is open only while it is used."""

    @contextmanager
    def _open(self) -> Generator[_Opened]:
        try:
            private_folder(self.path.parent)
            private_file(self.path)
            db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None)
            try:
                db.execute("pragma secure_delete = on")  # deleted data does not stay in free pages
                db.executescript(SCHEMA)
                yield _Opened(db)
            finally:
                db.close()
        except (OSError, UnicodeError, sqlite3.Error) as error:
            raise ApprovalError(f"the approvals in {self.path} cannot be used: {error}") from error


class MemoryApprovals(SQLiteApprovals):
    """Approvals in memory, for an app without a home."""

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))
        self._lock = RLock()
        self._db: sqlite3.Connection | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was kept yet."""
        return self._db is None

    @contextmanager
    def _open(self) -> Generator[_Opened]:
        with self._lock:
            if self._db is None:
                self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
                finalize(self, self._db.close)  # they have no other end than the agent's own
                self._db.executescript(SCHEMA)
            yield _Opened(self._db)


class _Opened:
    """The file while it is open."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def read(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        return self._execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._execute(statement, values).rowcount

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self._db.execute(statement.format(questions="questions", grants="grants"), values)
