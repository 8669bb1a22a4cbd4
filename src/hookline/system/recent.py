"""`Recent`: a bounded cache for facts that can be read again, such as those of a session's tape."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A dictionary of the entries that were set last; the oldest one is dropped if there are too many.

    A process serves any number of sessions and remembers this many. Use `[key] = value` to set.
    """

    def __init__(self, most: int = 256) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self.most:
            del self[next(iter(self))]
