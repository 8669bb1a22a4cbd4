"""An outbox: frames on their way to one reader, limited in size."""

from __future__ import annotations

import json
from asyncio import Future, get_running_loop
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Protocol

from pydantic_core import PydanticSerializationError, to_json

from .frames import Frame


def encode(frame: Frame) -> str:
    """A frame as JSON."""
    if "delta" in frame:  # a piece of an answer: most frames are
        delta = frame["delta"]
        if type(delta) is str and delta.isascii():
            name = "null" if frame["id"] is None else quoted(frame["id"])
            number = f',"n":{frame["n"]}' if "n" in frame else ""
            return f'{{"type":"{frame["type"]}","id":{name},"delta":{quoted(delta)}{number}}}'
    try:
        return to_json(frame, fallback=str).decode()
    except PydanticSerializationError:  # half a surrogate pair, for example from a tool's output
        return json.dumps(frame, default=str)


def shown_in(namespace: str, frame: Frame) -> Frame:
    """A frame with its session named as the user of a namespace knows it."""
    if not namespace or "session_id" not in frame:
        return frame
    return {**frame, "session_id": frame["session_id"].removeprefix(namespace)}


class Taker(Protocol):
    """A receiver of the frames of an answer."""

    def put(self, frame: Frame) -> None:
        """Take one frame; never waits."""
        ...

    def close(self) -> None:
        """Signal the end."""
        ...


class Outbox:
    """Encoded frames, in order. A reader takes everything that waits at once.

    If more waits than the limit, the reader is too slow: later frames are dropped and `overflowed` is
    set. One frame may be larger than the limit.
    """

    __slots__ = (
        "_closed",
        "_frames",
        "_limit",
        "_loop",
        "_namespace",
        "_on_overflow",
        "_size",
        "_waiter",
        "overflowed",
    )

    def __init__(
        self, limit: int, on_overflow: Callable[[], Any] | None = None, *, namespace: str = ""
    ) -> None:
        self._namespace = namespace
        self._frames: list[str] = []
        self._limit = limit
        self._loop = get_running_loop()
        self._on_overflow = on_overflow
        self._size = 0
        self._waiter: Future[None] | None = None
        self._closed = False
        self.overflowed = False

    def encode(self, frame: Frame) -> str:
        """Encode a frame."""
        return encode(frame)

    def put(self, frame: Frame) -> None:
        """Add a frame."""
        if self._closed:
            return
        if self._size > self._limit:
            self.overflowed = True
            self.close()
            if self._on_overflow is not None:
                self._on_overflow()
            return
        self.write(self.encode(shown_in(self._namespace, frame)))

    def write(self, text: str) -> None:
        """Add an encoded frame."""
        self._frames.append(text)
        self._size += len(text)
        self._wake()

    def close(self) -> None:
        """Let the reader end once it has read what waits."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def take(self) -> list[str]:
        """Wait for frames and return them all; returns nothing at the end."""
        while not self._frames and not self._closed:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        frames, self._frames, self._size = self._frames, [], 0
        return frames


class EventOutbox(Outbox):
    """Frames as Server-Sent Events, each named by its type."""

    __slots__ = ()

    def encode(self, frame: Frame) -> str:
        """A frame as an event."""
        return f"event: {frame['type']}\ndata: {encode(frame)}\n\n"


class Gathered:
    """Keeps the end of an answer and its parts, for a caller that waits for the whole."""

    def __init__(self, *, namespace: str = "") -> None:
        self._namespace = namespace
        self.parts: list[Frame] = []
        self.done: Future[Frame] = get_running_loop().create_future()

    def put(self, frame: Frame) -> None:
        """Keep the relevant parts of a frame."""
        if frame["type"] == "part":
            self.parts.append(frame["part"])
        elif frame["type"] in ("end", "error") and not self.done.done():
            self.done.set_result(shown_in(self._namespace, frame))

    def close(self) -> None:
        """Signal the end."""
