"""The gateway, its channels, and the messages that pass through them."""

from dataclasses import field
from typing import Literal, TypeAlias

from hookline.hooks import Event, Result, Ruling, collect, event, gate, notify, record

from ..parts import Part, text_of
from ..results import check_action, denied_if

ReceiveAction: TypeAlias = Literal["continue", "transform", "reject"]


@event(notify, family="gateway", fires="once, when all enabled channels are started")
@record
class GatewayStartupEvent(Event[None]):
    """The gateway is up."""

    type: Literal["gateway:startup"] = field(default="gateway:startup", init=False)
    channel_ids: list[str] = field(default_factory=list[str])


@event(notify, family="gateway", match="channel_id", fires="when a channel joins the gateway")
@record
class ChannelConnectEvent(Event[None]):
    """A channel was registered."""

    type: Literal["channel:connect"] = field(default="channel:connect", init=False)
    channel_id: str = ""


@record
class MessageReceiveResult(Result):
    """Let a message through, replace its parts, or reject it; a reason goes back to the sender."""

    action: ReceiveAction = "continue"
    parts: list[Part] | None = None
    reason: str | None = None

    def verdict(self) -> Ruling:
        """`reject` denies; new parts bring their text with them."""
        check_action(self, self.action, ReceiveAction, transform="parts", given=self.parts)
        changes = {} if self.parts is None else {"parts": self.parts, "text": text_of(self.parts)}
        return Ruling(denied_if(self.action == "reject"), self.reason, changes)


@event(
    gate, family="gateway", match="channel_id", fires="once per message, before its session is known"
)
@record
class MessageReceiveEvent(Event[MessageReceiveResult]):
    """A message arrived from a channel."""

    type: Literal["message:receive"] = field(default="message:receive", init=False)
    channel_id: str = ""
    chat_id: str = ""
    user_id: str = ""
    text: str = ""
    parts: list[Part] = field(default_factory=list[Part])


@record
class MessageSendResult(Result):
    """Further parts for the channel."""

    parts: list[Part] | None = None


@event(collect, family="gateway", match="channel_id", fires="once per answer, before its end is marked")
@record
class MessageSendEvent(Event[MessageSendResult]):
    """An answer went out; parts can still be added to it."""

    type: Literal["message:send"] = field(default="message:send", init=False)
    channel_id: str = ""
    chat_id: str = ""
    input_text: str = ""
    response_text: str = ""
    is_voice: bool = False
    """Whether the message had audio when it arrived, before anything transformed it."""


@event(notify, family="gateway", match="channel_id", fires="when a running turn is cancelled")
@record
class MessageCancelEvent(Event[None]):
    """A turn in progress was stopped from its channel."""

    type: Literal["message:cancel"] = field(default="message:cancel", init=False)
    channel_id: str = ""
    chat_id: str = ""


@event(
    notify,
    family="gateway",
    match="channel_id",
    fires="when a channel's message could not be processed",
)
@record
class GatewayErrorEvent(Event[None]):
    """Processing a channel's message failed."""

    type: Literal["gateway:error"] = field(default="gateway:error", init=False)
    channel_id: str = ""
    error: Exception | None = None


@event(notify, family="gateway", match="channel_id", fires="when a channel leaves the gateway")
@record
class ChannelDisconnectEvent(Event[None]):
    """A channel was unregistered."""

    type: Literal["channel:disconnect"] = field(default="channel:disconnect", init=False)
    channel_id: str = ""


@event(notify, family="gateway", fires="once, before the channels are stopped")
@record
class GatewayStopEvent(Event[None]):
    """The gateway is about to go down."""

    type: Literal["gateway:stop"] = field(default="gateway:stop", init=False)
    channel_ids: list[str] = field(default_factory=list[str])
