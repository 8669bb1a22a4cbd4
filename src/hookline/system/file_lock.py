"""A lock between processes that ends with its holder, however that ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .private_files import private_file, private_folder


class Lock:
    """A lock held by one process at a time.

    It is SQLite's lock on an empty file: the system releases it when the process dies, on every
    platform, without a clock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None

    def acquire(self) -> bool:
        """Take the lock if it is free. Returns whether it was taken."""
        if self._db is not None:
            return True
        private_folder(self.path.parent)
        private_file(self.path)
        db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            db.close()
            return False
        except BaseException:
            db.close()
            raise
        self._db = db
        return True

    def release(self, *, forget: bool = False) -> None:
        """Release the lock; `forget` removes the file of a lock that is no longer needed."""
        if self._db is not None:
            if forget:
                self.path.unlink(missing_ok=True)
            self._db.close()
            self._db = None

    def is_held(self) -> bool:
        """Whether the lock is held."""
        if self._db is not None:
            return True
        if not self.path.exists():
            return False
        free = self.acquire()
        self.release(forget=True)
        return not free
