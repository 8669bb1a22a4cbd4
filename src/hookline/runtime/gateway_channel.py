"""A channel of the gateway: a service with many chats.

    class Mailbox(GatewayChannel):
        name = "mail"

        async def start(self, handle):
            ...                         # from now on: await handle({"content": text, ...})

        async def send(self, outbound):
            ...                         # one whole answer
            return True

`reply_to` gives the `Channel` of one message. The base class's sends whole answers; a channel that
streams, notifies or asks gives one of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from hookline.channel import Channel
from hookline.types import Envelope

if TYPE_CHECKING:
    from fastapi import APIRouter

Handle: TypeAlias = Callable[[Envelope], Awaitable[Any]]
"""Takes a message over. When it returns, the message was accepted and is kept; the answer comes later.
It says False where a message with this id was accepted before: that one is answered, not this."""


class GatewayChannel:
    """One way in and out of the gateway."""

    name: str = ""
    debounced: bool = True
    """Whether messages that follow each other quickly may become one (`[gateway] debounce`)."""
    public: tuple[str, ...] = ()
    """The paths of its own routes that need no token, since the channel guards them itself."""

    async def start(self, handle: Handle) -> None:
        """Begin to receive; return when ready."""

    async def stop(self) -> None:
        """Receive nothing more and let go of everything."""

    def routes(self) -> APIRouter | None:
        """What the channel serves over HTTP, if anything."""
        return None

    async def send(self, outbound: Envelope) -> bool:
        """Deliver an envelope to the chat that it names; False where it is not for this channel."""
        return False

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of one message: shows its answer as it comes, notes and questions.

        The message may be from an earlier process; one without a `message_id` only names a chat.
        """
        return WholeAnswers(self)


class WholeAnswers(Channel):
    """Sends the answer to a message when it is complete, and nothing else."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    async def send(self, message: Envelope) -> bool:
        """Deliver a message."""
        return await self._channel.send(message)
