"""`AuditLog`: decisions, written down once and for all.

    log = AuditLog(home / "audit" / "audit.jsonl")
    log.append([{"kind": "decision", "tool": "shell", "outcome": "denied"}])

What `append` returned from is on the disk. Several processes may write; each takes the file's lock,
goes on from its last line, and rotates it where it is too long. A log that does not fit its head is not
written to, since that would hide what was cut off.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from hookline.errors import AuditError
from hookline.system.private_files import private_folder

from .hash_chain import Head, files_of, head_file, last_line, lines, parsed, read_head, sealed

LARGEST = 16_000_000
"""Bytes of one file; then the next one begins."""


class AuditLog:
    """One log: the current file and the rotated ones."""

    def __init__(self, path: Path, *, largest: int = LARGEST) -> None:
        self.path = path
        self.largest = largest
        self._lock = Lock()
        self._known: tuple[int, int, Head] | None = None
        """The file as this process left it: its inode, its size, its head."""

    def append(self, records: Iterable[dict[str, Any]]) -> Head:
        """Write records at once, then the head."""
        try:
            with self._lock, self._locked():
                return self._append([{"time": round(time.time(), 6), **each} for each in records])
        except (OSError, ValueError) as error:
            self._known = None
            raise AuditError(f"the audit log {self.path} cannot be written: {error}") from error

    def _append(self, records: list[dict[str, Any]]) -> Head:
        head = self._head()
        if self._known is not None and self._known[1] >= self.largest:
            self.path.rename(self.path.with_name(f"{self.path.stem}-{head.seq}{self.path.suffix}"))
        text: list[str] = []
        for record in records:
            line, head = sealed(record, head)
            text.append(line)
        data = "".join(text).encode("ascii")
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            before = os.fstat(handle).st_size
            try:
                written = os.write(handle, data)
                if written != len(data):
                    raise OSError(f"only {written} of {len(data)} bytes could be written")
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, before)  # nothing was decided on the strength of these lines
                raise
            about = os.fstat(handle)
        finally:
            os.close(handle)
        self._note(head)
        self._known = about.st_ino, about.st_size, head
        return head

    def _head(self) -> Head:
        """The end of the log by its last line, which must match the stored head."""
        try:
            about = self.path.stat()
        except FileNotFoundError:
            about = None
        if (
            about is not None
            and self._known is not None
            and self._known[:2]
            == (
                about.st_ino,
                about.st_size,
            )
        ):
            return self._known[2]
        noted = read_head(self.path)
        head = self._last()
        if noted is not None and noted != head and not self._goes_on(noted, head):
            raise ValueError(
                f"it ends at line {head.seq}, and its head says {noted.seq}: lines are missing; "
                "`hookline audit verify` tells more, and a log that was moved away as a whole, "
                "with its head, is begun anew"
            )
        if noted is None and head.seq:
            raise ValueError(f"{head_file(self.path)} is missing; `hookline audit verify` tells more")
        size = self.path.stat().st_size if about is not None else 0
        self._known = (about.st_ino if about is not None else 0, size, head)
        return head

    def _last(self) -> Head:
        """The last line of all files; one that was torn in writing is taken away."""
        for file in reversed(files_of(self.path)):
            head, torn = last_line(file)
            if torn and file == self.path:
                os.truncate(file, file.stat().st_size - torn)
            if head is not None:
                return head
        return Head()

    def _goes_on(self, noted: Head, head: Head) -> bool:
        """Whether the log has the noted line and more: a process ended before it noted those."""
        if noted.seq == 0:
            return True
        if noted.seq > head.seq:
            return False
        for _, _, line in lines(self.path):
            record = parsed(line)
            if record is not None and record.get("seq") == noted.seq:
                return record.get("hash") == noted.hash
        return False

    def _note(self, head: Head) -> None:
        """Note the head, in place: a fixed number of bytes, so that it is never half there."""
        handle = os.open(head_file(self.path), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{head.seq:020d} {head.hash}\n".encode("ascii"))
        finally:
            os.close(handle)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the log against other processes."""
        private_folder(self.path.parent)
        handle = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
            else:
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)  # which releases the lock
