"""Segments: what is held back of an answer while it streams, and what of it may go on.

A gate that can block an answer has to see it before anybody else does. `Streaming()` holds the whole
answer back and has it judged once. `Streaming(segment=200)` has it judged whenever 200 characters have
come in, together with all the text before them, and lets go of what was judged.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from hookline.errors import Blocked
from hookline.types import StreamEvent


@dataclass(frozen=True, slots=True)
class Streaming:
    """How `model_result` judges an answer that streams."""

    segment: int = 0
    """Characters that are judged at a time, at least: each segment is judged with its prefix, so that
    small ones cost much. 0: the whole answer at once."""
    overlap: int = 0
    """Characters that stay held back after a verdict: whatever is no longer than this is judged in one
    piece before any of it goes out."""


WHOLE = Streaming()
COMPARED: Final = ("text", "reasoning", "tool_call")
"""The events that make up an answer."""


class HeldBack:
    """The part of one answer that is held back, and the text that was released before it."""

    def __init__(self, streaming: Streaming = WHOLE) -> None:
        self.released = ""
        self.judged = False
        """Whether a verdict covers the beginning of the answer."""
        self.events: list[StreamEvent] = []
        self._text: list[str] = []
        self._size = 0
        self._overlap = streaming.overlap
        self._enough = streaming.segment + streaming.overlap if streaming.segment else 0

    @property
    def is_full(self) -> bool:
        """Whether so much is held back that it should be judged before more comes."""
        return 0 < self._enough <= self._size

    @property
    def content(self) -> str:
        """The text to judge: the released part and the held-back part."""
        return self.released + "".join(self._text)

    def add(self, event: StreamEvent) -> None:
        """Hold an event back."""
        self.events.append(event)
        if event.kind == "text":
            self._text.append(event.data["delta"])
            self._size += len(event.data["delta"])

    def pass_on(self, event: StreamEvent) -> None:
        """Count a judged event as released."""
        self.judged = True
        if event.kind == "text":
            self.released += event.data["delta"]

    def release(self, content: str) -> list[StreamEvent]:
        """Release what a verdict left of the text, without the overlap, together with its reasoning.

        Tool calls stay: they are judged with the whole answer.
        """
        self.judged = True
        tail = self.tail(content)
        end = max(len(tail) - self._overlap, 0)
        ready, kept = tail[:end], tail[end:]
        going = [event for event in self.events if event.kind == "reasoning"]
        staying = [event for event in self.events if event.kind not in ("reasoning", "text")]
        self.events, self._text, self._size = staying, [], 0
        if kept:
            self.add(StreamEvent("text", {"delta": kept}))
        if ready:
            self.released += ready
            going.append(StreamEvent("text", {"delta": ready}))
        return going

    def tail(self, content: str) -> str:
        """The unreleased part of a judged text; released text cannot be changed."""
        if not content.startswith(self.released):
            why = "a handler of model_result changed text that had gone out; the rest is cut off"
            raise Blocked("the model's answer", why, None)
        return content[len(self.released) :]


class Released:
    """What `model_result` released of each call inside `around_model_call`.

    A handler of that hook may return another stream than it was given: an answer of its own, or one
    that it changed. Comparing the two tells which part nobody has judged.
    """

    def __init__(self) -> None:
        self.streams: list[AsyncIterable[StreamEvent]] = []
        self._unread: dict[int, AsyncIterable[StreamEvent]] = {}
        self._calls: list[list[StreamEvent]] = []
        self._compared: list[StreamEvent] | None = None
        self._next = 0

    def kept(self, stream: AsyncIterable[StreamEvent]) -> AsyncIterable[StreamEvent]:
        """The stream of another call; a copy of what passes through it is kept."""
        events: list[StreamEvent] = []
        number = len(self._calls)

        async def through() -> AsyncIterator[StreamEvent]:
            del self._unread[number]
            async with closing(stream):
                async for event in stream:
                    if event.kind in COMPARED:
                        events.append(deepcopy(event))
                    yield event

        self._calls.append(events)
        self._unread[number] = stream
        self.streams.append(made := through())
        return made

    def plain(self, stream: AsyncIterable[StreamEvent]) -> AsyncIterable[StreamEvent]:
        """The stream of the call itself if it has not been read yet: there is nothing to compare."""
        return self._unread.get(self.streams.index(stream), stream)

    def has_next(self, event: StreamEvent) -> bool:
        """Whether the call continues with this event, or ends with it."""
        if self._compared is None:
            self._compared = next((call for call in self._calls if event in call[:1]), None)
        if event.kind not in COMPARED:
            rest = self._compared[self._next :] if self._compared is not None else self._calls
            return bool(self._calls) and (event.kind != "final" or not any(rest))
        self._next += 1
        return self._compared is not None and self._compared[self._next - 1 : self._next] == [event]


class closing:  # noqa: N801  # read as a verb, like those of contextlib; a generator costs more
    """Close a stream when it is left, read to its end or not: that stops the model."""

    __slots__ = ("_stream",)

    def __init__(self, stream: AsyncIterable[StreamEvent]) -> None:
        self._stream = stream

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()
