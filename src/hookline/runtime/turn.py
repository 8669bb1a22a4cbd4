"""One turn's result, and the small steps between its stages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from types import CoroutineType
from typing import Any, Literal, TypeAlias, cast

from hookline.channel import finished
from hookline.types import (
    AsyncStreamEvents,
    AudioPart,
    Envelope,
    EnvelopeError,
    ImagePart,
    Part,
    Prompt,
    StreamEvent,
    TextPart,
    address_of,
    field_of,
)

Listener = Callable[[StreamEvent], Any]
"""Is shown each event of a stream as it comes; may be async."""


Outcome: TypeAlias = Literal[
    "answered", "handled", "blocked", "rejected", "dropped", "steered", "cancelled", "failed"
]
"""What became of a message: an answer; a plugin took it over or stopped it; the channel's hooks
rejected it; it was dropped, or joined a running turn; its turn was cancelled. `process` raises what
failed; a gateway tells its sender with `failed`."""


@dataclass(slots=True)
class TurnResult:
    """What became of one inbound message."""

    session_id: str
    prompt: Prompt = ""
    model_output: str = ""
    outbounds: list[Envelope] = field(default_factory=list[Any])
    usage: dict[str, int] = field(default_factory=dict[str, int])
    outcome: Outcome = "answered"
    stopped: str | None = None
    """Why there is no answer: the reason that whoever stopped it gave."""
    parts: list[Part] = field(default_factory=list[Part])
    """What handlers added to the answer, such as speech."""


class StreamedAnswer:
    """Puts an answer together from its stream, and shows the stream while it comes.

    The answer is what was said after the last tool result. Where it may still be blocked it is `held`:
    nothing of it is shown before `release`.
    """

    def __init__(self, listener: Listener | None, *, held: bool) -> None:
        self._listener = listener
        self._hold = held
        self._kept: list[StreamEvent] = []
        self._said: list[str] = []
        self._before: list[str] = []

    @property
    def text(self) -> str:
        """What was said last."""
        return "".join(self._said) or "".join(self._before)

    async def take(self, event: StreamEvent) -> None:
        """Take one event; an error in the stream is raised."""
        if event.kind == "error":
            raise event.data["error"]
        if event.kind == "text":
            self._said.append(event.data["delta"])
        elif event.kind in ("tool_result", "user") and self._said:
            self._before, self._said = self._said, []
        if self._hold and event.kind in ("text", "reasoning", "final"):
            self._kept.append(event)
        elif self._listener is not None:
            shown = self._listener(event)
            if type(shown) is CoroutineType:
                await shown
            elif shown is not None:
                await finished(shown)

    async def release(self, text: str) -> None:
        """Show what was held back: as it came, or the text that took its place."""
        kept, self._kept = self._kept, []
        if text != self.text:
            final = [StreamEvent("final", {**e.data, "text": text}) for e in kept if e.kind == "final"]
            kept = [StreamEvent("text", {"delta": text}), *final]
        if self._hold and self._listener is not None:
            for event in kept:
                await finished(self._listener(event))


def one_chunk(text: str) -> AsyncStreamEvents:
    """A text as a stream of one chunk."""

    async def chunks() -> AsyncIterator[StreamEvent]:
        yield StreamEvent("text", {"delta": text})
        yield StreamEvent("final", {"text": text, "finish_reason": "stop"})

    return AsyncStreamEvents(chunks())


def echo(message: Envelope, session_id: str, model_output: str) -> Envelope:
    """The answer as an envelope to where the message came from."""
    channel, chat_id = address_of(message)
    return {
        "content": model_output,
        "session_id": session_id,
        "channel": channel,
        "chat_id": chat_id,
    }


def with_delivery_ids(message: Envelope, outbounds: list[Envelope]) -> list[Envelope]:
    """The outbound envelopes of a message, each with an id that is the same when they are sent again.

    A turn that was cut off after it sent its answer sends it once more; a channel drops what it knows.
    """
    message_id = field_of(message, "message_id")
    if not message_id:
        return outbounds
    return [
        {"delivery_id": f"{message_id}/{number}", **cast("Mapping[str, Any]", outbound)}
        if isinstance(outbound, Mapping)
        else outbound
        for number, outbound in enumerate(outbounds)
    ]


def with_content(message: Envelope, text: str) -> Envelope:
    """The same message with another text; the given one is not changed."""
    if isinstance(message, Mapping):
        return {**cast("Mapping[str, Any]", message), "content": text}
    if is_dataclass(message) and not isinstance(message, type):
        return replace(message, content=text)
    changed: Any = copy(message)
    try:
        changed.content = text
    except AttributeError:
        raise EnvelopeError(f"the content of a {type(message).__name__} cannot be changed") from None
    return changed


def with_context(prompt: Prompt, context: str) -> Prompt:
    """A prompt with what session_start handlers add to the first one."""
    if not context:
        return prompt
    if isinstance(prompt, str):
        return f"{context}\n\n{prompt}"
    parts = any(isinstance(part, TextPart | ImagePart | AudioPart) for part in prompt)
    return [TextPart(context) if parts else {"type": "text", "text": context}, *prompt]
