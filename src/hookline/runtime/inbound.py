"""A message on its way through the pipeline, with the channel that it came by.

`message:receive` comes before anything else of a turn, `message:send` after the answer was sent and
before its end is marked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from hookline.channel import NOWHERE, Channel, finished
from hookline.events import MessageReceiveEvent, MessageSendEvent
from hookline.hooks import HookRegistry
from hookline.types import (
    AudioPart,
    Envelope,
    Identity,
    Part,
    StreamEvent,
    TextPart,
    address_of,
    content_of,
    field_of,
)

from .turn import TurnResult, echo, with_content

if TYPE_CHECKING:
    from hookline.types import HookContext

Command: TypeAlias = Callable[[str, Envelope], Awaitable[str | None]]
"""Runs the slash command that a message of a session is, and returns what to answer."""


@dataclass(slots=True)
class Inbound:
    """One message, and what the pipeline needs to know about it."""

    message: Envelope
    identity: Identity
    channel: Channel = NOWHERE
    session_id: str = ""
    command: Command | None = None
    """None: a slash in front of a message means nothing here."""
    on_placed: Callable[[], None] | None = None
    """Called once, when the message has its place in the session: the next one may be received."""
    screened: bool = False
    """Whether `input` has judged the message."""
    said: str = ""
    is_voice: bool = False

    async def receive(self, hooks: HookRegistry, ctx: HookContext) -> str | None:
        """Let `message:receive` change the message; the reason if a handler rejects it."""
        message, hook = self.message, hooks["message:receive"]
        self.said = content_of(message)
        parts = field_of(message, "parts")
        if parts:
            self.is_voice = any(isinstance(part, AudioPart) for part in parts)
        if not hook.live:
            return None
        channel, chat_id = address_of(message)
        user = str(field_of(message, "sender_id") or "")
        event = MessageReceiveEvent(channel, chat_id, user, self.said, parts_of(message))
        verdict: Any = await hook.fire(event, ctx)
        if verdict.denied:
            return verdict.reason or ""
        if "parts" in verdict.changes:
            self.said = verdict.event.text
            self.message = with_parts(message, verdict.event.parts, self.said)
        return None

    def place(self) -> None:
        """The message has its place: no later one of its chat overtakes it now."""
        placed, self.on_placed = self.on_placed, None
        if placed is not None:
            placed()

    async def end(self, hooks: HookRegistry, result: TurnResult, ctx: HookContext) -> None:
        """Send what handlers add to an answer, then mark its end."""
        hook = hooks["message:send"]
        if hook.live and result.outcome == "answered":
            channel, chat_id = address_of(self.message)
            event = MessageSendEvent(channel, chat_id, self.said, result.model_output, self.is_voice)
            for added in await hook.fire(event, ctx):
                result.parts.extend(added.parts or ())
            if result.parts:
                added = echo(self.message, result.session_id, "")
                await self.channel.send({**added, "parts": list(result.parts)})
        if self.channel.streams:
            await finished(self.channel.stream(StreamEvent("end", {"result": result})))


def parts_of(message: Envelope) -> list[Part]:
    """The parts of a message: its own, or its text as one."""
    parts = field_of(message, "parts")
    if parts:
        return list(parts)
    text = content_of(message)
    return [TextPart(text)] if text else []


def with_parts(message: Envelope, parts: list[Part], text: str) -> Envelope:
    """The same message with other parts; the given one is not changed."""
    changed = with_content(message, text)
    if isinstance(changed, Mapping):
        return {**cast("Mapping[str, Any]", changed), "parts": parts}
    if is_dataclass(changed) and not isinstance(changed, type) and hasattr(changed, "parts"):
        return replace(changed, parts=parts)
    if hasattr(changed, "parts"):
        setattr(changed, "parts", parts)  # noqa: B010  (an object of somebody's own class)
    return changed
