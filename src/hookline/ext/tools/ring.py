"""Ring: the last part of an output of any length, in a file of bounded size."""

from __future__ import annotations

import os
import tempfile
from threading import Condition

SIZE = 16_000_000


class Ring:
    """Bytes by their place in the whole output; the oldest make room for the newest.

    The file has no name, so that nothing of it is left, however the process ends.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._file = tempfile.TemporaryFile(prefix="hookline-job-")  # noqa: SIM115  # closed by close()
        self._changed = Condition()
        self.total = 0
        self.ended = False

    def add(self, data: bytes) -> None:
        """Put more at the end."""
        with self._changed:
            for piece in (data[n : n + self._size] for n in range(0, len(data), self._size)):
                at = self.total % self._size
                first = piece[: self._size - at]
                os.pwrite(self._file.fileno(), first, at)
                os.pwrite(self._file.fileno(), piece[len(first) :], 0)
                self.total += len(piece)
            self._changed.notify_all()

    def end(self) -> None:
        """Say that nothing more comes."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def read(self, since: int, most: int) -> tuple[int, bytes]:
        """Bytes from a position on, and the position, which is later if those bytes are gone."""
        with self._changed:
            begin = min(max(since, self.total - self._size), self.total)
            count = min(most, self.total - begin)
            at = begin % self._size
            data = os.pread(self._file.fileno(), min(count, self._size - at), at)
            return begin, data + os.pread(self._file.fileno(), count - len(data), 0)

    def wait(self, since: int, seconds: float) -> None:
        """Wait until there is something past a place, or nothing more comes."""
        with self._changed:
            self._changed.wait_for(lambda: self.total > since or self.ended, seconds)

    def close(self) -> None:
        """Give the room back."""
        self._file.close()
