"""What is happening in a session, for a page opened in the middle of a turn.

The tape has a complete turn when it is over. Until then the frames sent since the session was idle are
kept, so that a page can show the tape up to that point and the frames after it.
"""

from __future__ import annotations

from typing import Any

from hookline.tape import new_id

from .frames import Frame
from .outbox import shown_in

LARGEST = 4_000_000
"""Characters kept for one session. Beyond that, a page shows only what is on the tape."""
GROWING = ("text", "reasoning")
LARGE = ("content", "part", "text", "arguments")
"""Fields that may be large."""


class LiveSession:
    """The frames of one session since it was idle. Consecutive pieces of text are merged into one
    frame.
    """

    __slots__ = ("_frames", "_pending", "_size", "base")

    def __init__(self) -> None:
        self.base: str | None = new_id()
        """The tape entry after which the frames begin; None if there was too much to keep."""
        self._frames: list[tuple[Frame, list[str]]] = []
        self._pending: set[Any] = set()
        self._size = 0

    @property
    def is_over(self) -> bool:
        """Whether every message has its outcome."""
        return not self._pending

    def add(self, frame: Frame) -> None:
        """Keep a frame."""
        kind, name = frame["type"], frame["id"]
        (self._pending.discard if kind in ("end", "error") else self._pending.add)(name)
        if self.base is None:
            return
        if kind in GROWING:
            last = self._frames[-1] if self._frames else None
            if last is not None and last[0]["type"] == kind and last[0]["id"] == name:
                last[1].append(frame["delta"])
            else:
                self._frames.append((frame, [frame["delta"]]))
            self._size += len(frame["delta"])
        else:
            self._frames.append((frame, []))
            self._size += 200 + sum(len(str(frame.get(name, ""))) for name in LARGE)
        if self._size > LARGEST:
            self.base, self._frames = None, []

    def frames(self, namespace: str) -> list[Frame]:
        """The frames, as a user of this namespace sees them."""
        found = ({**frame, "delta": "".join(said)} if said else frame for frame, said in self._frames)
        return [shown_in(namespace, frame) for frame in found]


class LiveSessions:
    """The active sessions of a channel."""

    def __init__(self) -> None:
        self._sessions: dict[str, LiveSession] = {}
        self.number = 0
        """The number of frames so far. A page skips frames that it already has."""

    def add(self, session: str, frame: Frame) -> Frame:
        """Keep a frame, and return it with its number."""
        self.number += 1
        live = self._sessions.get(session)
        if live is None:
            live = self._sessions[session] = LiveSession()
        live.add(frame)
        if live.is_over:
            del self._sessions[session]
        return {**frame, "n": self.number}

    def of(self, session: str) -> LiveSession | None:
        """The frames of a session, or None if it is idle."""
        return self._sessions.get(session)
