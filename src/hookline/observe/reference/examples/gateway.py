"""The gateway, its channels and their messages."""

import logging
from collections import Counter

from hookline.events import (
    ChannelConnectEvent,
    ChannelDisconnectEvent,
    GatewayErrorEvent,
    GatewayStartupEvent,
    GatewayStopEvent,
    MessageCancelEvent,
    MessageReceiveEvent,
    MessageReceiveResult,
    MessageSendEvent,
    MessageSendResult,
)
from hookline.hooks import hookimpl
from hookline.types import AudioPart, HookContext, Part, TextPart

log = logging.getLogger(__name__)


class Voice:
    """Hears and speaks if the user spoke."""

    @hookimpl(specname="message:receive")
    async def transcribe(self, event: MessageReceiveEvent) -> MessageReceiveResult | None:
        """Put text in the place of speech."""
        if any(isinstance(part, AudioPart) for part in event.parts):
            return MessageReceiveResult("transform", [await self.written(p) for p in event.parts])
        return None

    @hookimpl(specname="message:send")
    async def read_out(self, event: MessageSendEvent) -> MessageSendResult | None:
        """Answer speech with speech."""
        if not event.is_voice:
            return None
        return MessageSendResult(parts=[AudioPart(await self.say(event.response_text))])

    async def written(self, part: Part) -> Part:
        """Stands for a transcription service."""
        return TextPart(f"({len(part.data)} bytes)") if isinstance(part, AudioPart) else part

    async def say(self, text: str) -> bytes:
        """Stands for a synthesiser."""
        return text.encode()


class Watch:
    """Knows which channels are up, and how they do."""

    def __init__(self) -> None:
        self.up: set[str] = set()
        self.errors: Counter[str] = Counter()
        self.cancelled = 0

    @hookimpl(specname="gateway:startup")
    def gateway_startup(self, event: GatewayStartupEvent) -> None:
        """Print what is being served."""
        log.info("serving %s", ", ".join(event.channel_ids))

    @hookimpl(specname="channel:connect")
    def channel_connect(self, event: ChannelConnectEvent) -> None:
        """Count a channel in."""
        self.up.add(event.channel_id)

    @hookimpl(specname="channel:disconnect")
    def channel_disconnect(self, event: ChannelDisconnectEvent) -> None:
        """Count a channel out."""
        self.up.discard(event.channel_id)

    @hookimpl(specname="message:cancel", when="telegram*")
    def message_cancel(self, event: MessageCancelEvent, ctx: HookContext) -> None:
        """Confirm that the turn was stopped, on one kind of channel."""
        self.cancelled += 1
        ctx.notify("Stopped.")

    @hookimpl(specname="gateway:error")
    def gateway_error(self, event: GatewayErrorEvent) -> None:
        """Raise an alarm at the tenth error of a channel."""
        self.errors[event.channel_id] += 1
        if self.errors[event.channel_id] == 10:
            log.critical("%s keeps failing: %s", event.channel_id, event.error)

    @hookimpl(specname="gateway:stop")
    def gateway_stop(self, event: GatewayStopEvent) -> None:
        """Report at the end."""
        log.info("%d errors, %d cancelled turns", self.errors.total(), self.cancelled)
