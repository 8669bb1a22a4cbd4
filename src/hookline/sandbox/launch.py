"""`Launch`: a command as it is started in a sandbox, and the hold that it waits at."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .settings import Profile


class Hold:
    """Keeps a child from starting before its parent has registered it.

    The child reads a line from `waiting` first. Only the parent can write one, so that a child whose
    parent is killed before reads the end of the file instead, and ends.
    """

    def __init__(self) -> None:
        self.waiting, self._ours = os.pipe()
        self._open = [self.waiting, self._ours]

    def keep(self, file: int) -> int:
        """Close a file together with this."""
        self._open.append(file)
        return file

    def hand_over(self, name: str, content: bytes) -> int:
        """A file in memory that the child reads; other processes see arguments, but not this."""
        file = self.keep(os.memfd_create(name))
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        return file

    @property
    def files(self) -> tuple[int, ...]:
        """What the child inherits."""
        return tuple(file for file in self._open if file != self._ours)

    def release(self) -> None:
        """Let the child start."""
        if self._open:
            with suppress(OSError):  # it has ended already
                os.write(self._ours, b"\n")
            self.close()

    def close(self) -> None:
        """Close everything: a child that still waits ends."""
        while self._open:
            os.close(self._open.pop())


@dataclass(frozen=True)
class Launch:
    """How to start a child. Then call `begin`, and `close` when it has ended or did not start."""

    argv: list[str]
    env: dict[str, str]
    """The environment of what sets up the sandbox. That runs outside, so the command's own variables,
    such as `LD_PRELOAD`, are not in it."""
    cwd: Path
    profile: Profile
    pass_fds: tuple[int, ...] = ()
    note: str = ""
    """Why the child may do less than its profile says."""
    _hold: Hold | None = field(default=None, repr=False)
    _closing: Callable[[], None] | None = field(default=None, repr=False)
    _unchanged: Callable[[], bool] | None = field(default=None, repr=False)

    @property
    def ends_everything(self) -> bool:
        """Whether all that the command started ends with it, as in a process namespace of its own."""
        return self._unchanged is not None

    def is_current(self) -> bool:
        """Whether a child that starts now would be confined in the same way; False if in doubt."""
        return self._unchanged is not None and self._unchanged()

    def begin(self) -> None:
        """Let the child run, once something sees to its end."""
        if self._hold is not None:
            self._hold.release()

    def close(self) -> None:
        """Release what the child needed."""
        if self._closing is not None:
            self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
