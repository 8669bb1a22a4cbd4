"""An exchange: one message's way through a channel, in and out.

`message:receive` comes before anything else of a turn, `message:send` after the answer went out and
before its end is marked. A door that passes an `Exchange` to `process_inbound` gets both.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, cast

from hookline.catalog.context import HookContext
from hookline.catalog.envelope import Envelope, address_of, content_of, field_of
from hookline.catalog.events.gateway import MessageReceiveEvent, MessageSendEvent
from hookline.catalog.parts import AudioPart, Part, TextPart
from hookline.hooks import Hooks
from hookline.turn import TurnResult, with_content


@dataclass(slots=True)
class Exchange:
    """Where a message came from, and how what belongs to its answer gets there."""

    publish: Callable[[list[Part]], Any] | None = None
    """Sends further parts of the answer; may be async."""
    end: Callable[[TurnResult], Any] | None = None
    """Marks the end of the answer; may be async."""
    command: Callable[[str, Envelope], Awaitable[str | None]] | None = None
    """Carries out a slash command of a session; gives what is said to it. Without, there are none."""
    placed: Callable[[], None] | None = None
    """Is told once, when the message has its place in the session: the next one may be received."""
    said: str = ""
    is_voice: bool = False

    async def receive(
        self, hooks: Hooks, message: Envelope, ctx: HookContext
    ) -> tuple[Envelope, str | None]:
        """The message as handlers let it through, or as it was and why it was rejected."""
        parts = parts_of(message)
        self.said = content_of(message)
        self.is_voice = any(isinstance(part, AudioPart) for part in parts)
        hook = hooks["message:receive"]
        if not hook.live:
            return message, None
        channel, chat_id = address_of(message)
        user = str(field_of(message, "sender_id") or "")
        event = MessageReceiveEvent(channel, chat_id, user, self.said, parts)
        verdict: Any = await hook.fire(event, ctx)
        if verdict.denied:
            return message, verdict.reason or ""
        if "parts" in verdict.changes:
            message = with_parts(message, verdict.event.parts, verdict.event.text)
            self.said = verdict.event.text
        return message, None

    def place(self) -> None:
        """The message has its place: no later one of its chat overtakes it now."""
        placed, self.placed = self.placed, None
        if placed is not None:
            placed()

    async def send(self, hooks: Hooks, message: Envelope, result: TurnResult, ctx: HookContext) -> None:
        """Publish what handlers add to an answer, then mark its end."""
        hook = hooks["message:send"]
        if hook.live and result.outcome == "answered":
            channel, chat_id = address_of(message)
            event = MessageSendEvent(channel, chat_id, self.said, result.model_output, self.is_voice)
            for added in await hook.fire(event, ctx):
                result.parts.extend(added.parts or ())
            if result.parts and self.publish is not None:
                await finished(self.publish(list(result.parts)))
        if self.end is not None:
            await finished(self.end(result))


async def finished(given: Any) -> Any:
    """What a function gave that may be async."""
    return await given if inspect.isawaitable(given) else given


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
