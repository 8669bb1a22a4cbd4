"""Segments: what is held back of an answer while it streams, and what of it may go on.

A gate that can block an answer has to see it before anybody else does. `Streaming()` holds the whole
answer back and has it judged once. `Streaming(segment=200)` has it judged whenever 200 characters have
come in, together with all the text before them, and lets go of what was judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from hookline.catalog.stream import StreamEvent

from .errors import Blocked


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


class HeldBack:
    """The part of one answer that nobody may see yet, and the text that went out before it."""

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
        """What is judged: the text that went out, and the text that is held back."""
        return self.released + "".join(self._text)

    def add(self, event: StreamEvent) -> None:
        """Hold an event back."""
        self.events.append(event)
        if event.kind == "text":
            self._text.append(event.data["delta"])
            self._size += len(event.data["delta"])

    def release(self, content: str) -> list[StreamEvent]:
        """Let go of what a verdict left of the text, less the overlap.

        Reasoning goes with it. Tool calls stay: they are judged with the whole answer.
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
        """The part of a judged text that has not gone out; what has gone out cannot be changed."""
        if not content.startswith(self.released):
            why = "a handler of model_result changed text that had gone out; the rest is cut off"
            raise Blocked("the model's answer", why, None)
        return content[len(self.released) :]
