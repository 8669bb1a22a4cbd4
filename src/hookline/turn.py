"""One turn's result, and the small steps between its stages."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from hookline.catalog.envelope import Envelope, address_of
from hookline.catalog.parts import Prompt
from hookline.catalog.stream import AsyncStreamEvents, StreamEvent

Listener = Callable[[StreamEvent], Any]
"""Is shown each event of a stream as it comes; may be async."""


@dataclass(slots=True)
class TurnResult:
    """What became of one inbound message."""

    session_id: str
    prompt: Prompt = ""
    model_output: str = ""
    outbounds: list[Envelope] = field(default_factory=list[Any])
    usage: dict[str, int] = field(default_factory=dict[str, int])
    stopped: str | None = None
    """Why no agent turn was made: a plugin handled or blocked the input."""


async def shown(listener: Listener, event: StreamEvent) -> None:
    """Show an event to a listener, sync or async."""
    answer = listener(event)
    if inspect.isawaitable(answer):
        await answer


def one_chunk(text: str) -> AsyncStreamEvents:
    """A text as a stream of one chunk."""

    async def chunks() -> AsyncIterator[StreamEvent]:
        yield StreamEvent("text", {"delta": text})
        yield StreamEvent("final", {"text": text, "finish_reason": "stop"})

    return AsyncStreamEvents(chunks())


def final_text(events: AsyncStreamEvents, text: list[str]) -> str:
    """The answer: the agent's last words where it ran, else everything that was said."""
    return getattr(events.state, "text", "") or "".join(text)


def echo(message: Envelope, session_id: str, model_output: str) -> Envelope:
    """The answer as an envelope to where the message came from."""
    channel, chat_id = address_of(message)
    return {
        "content": model_output,
        "session_id": session_id,
        "channel": channel,
        "chat_id": chat_id,
    }


def with_content(message: Envelope, text: str) -> Envelope:
    """The same message with another text; the given one is not changed."""
    if isinstance(message, dict):
        return {**message, "content": text}  # pyright: ignore[reportUnknownVariableType]
    changed = copy(message)
    changed.content = text
    return changed


def with_context(prompt: Prompt, context: str) -> Prompt:
    """A prompt with what session_start handlers add to the first one."""
    if not context:
        return prompt
    if isinstance(prompt, str):
        return f"{context}\n\n{prompt}"
    return [{"type": "text", "text": context}, *prompt]
