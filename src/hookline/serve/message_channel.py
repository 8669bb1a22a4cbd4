"""The channels that the gateway gives to the app: for one message, and for everything else."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from hookline.channel import NOWHERE, Channel, Note, Question, Router, finished
from hookline.runtime.delivery import answer_address, is_channel
from hookline.runtime.turn import TurnResult
from hookline.types import Envelope, StreamEvent, address_of, field_of

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


class Post(Protocol):
    """Reaches the channels of messages and chats: a gateway, or a worker through one."""

    app: Hookline

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message, as its sender has it; `NOWHERE` if it has none."""
        ...

    async def deliver(self, outbound: Envelope) -> bool:
        """Pass an outbound envelope to its channel. Returns whether it was sent."""
        ...

    async def notify(self, to: Envelope, note: Note) -> None:
        """Show a note in the chat of an address."""
        ...

    async def ask(self, to: Envelope, question: Question) -> str | None:
        """Ask in the chat of an address."""
        ...

    async def failed(self, channel: str, error: Exception) -> None:
        """Report a failure of a channel; everything else continues."""
        ...


class Outgoing(Router):
    """The channel for everything outside of messages: an envelope goes to its address."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def to(self, message: Envelope) -> Channel:
        """The channel of a turn that a plugin or a trigger starts."""
        return MessageChannel(self._post, message)

    async def send(self, message: Envelope) -> bool:
        """Deliver a message to the channel that it names."""
        return await self._post.deliver(message)


class MessageChannel(Channel):
    """The channel of one message.

    A turn continues if its channel fails, because it is recorded. Notes and questions of a turn
    without a sender go to the people of its session.
    """

    def __init__(self, post: Post, message: Envelope) -> None:
        self._post = post
        self._message = message
        self._name = address_of(message)[0]
        self._reply = post.reply_to(message)
        self._has_sender = is_channel(self._name)

    @property
    def streams(self) -> bool:
        """Whether the sender sees the answer while it is generated."""
        return self._reply.streams

    @property
    def asks(self) -> bool:
        """Whether there may be someone to ask."""
        return self._reply.asks or not self._has_sender

    async def send(self, message: Envelope) -> bool:
        """Send the answer to the sender. Any other message goes to its address."""
        is_answer = address_of(message) == address_of(self._message)
        if self._reply is NOWHERE or not is_answer or field_of(message, "unprompted"):
            return await self._post.deliver(message)
        return await self._reply.send(message)

    def stream(self, event: StreamEvent) -> Awaitable[None] | None:
        """Show a piece of the answer, or mark its end."""
        try:
            shown = self._reply.stream(event)
        except Exception as error:
            return self._post.failed(self._name, error)
        return None if shown is None else self._shown(shown)

    async def _shown(self, shown: Awaitable[None]) -> None:
        try:
            await shown
        except Exception as error:
            await self._post.failed(self._name, error)

    async def end(self, result: TurnResult) -> None:
        """Mark the end of a message that gets no turn of its own."""
        await finished(self.stream(StreamEvent("end", {"result": result})))

    async def fail(self, reason: str) -> None:
        """Tell the sender why there is no answer."""
        await self.end(TurnResult("", outcome="failed", stopped=reason))

    async def notify(self, note: Note) -> None:
        """Show a note."""
        if self._has_sender:
            await finished(self._reply.notify(note))
        elif (to := await answer_address(self._post.app, self._message)) is not None:
            await self._post.notify(to, note)

    async def ask(self, question: Question) -> str | None:
        """Ask, and wait for the answer."""
        if self._has_sender:
            return await self._reply.ask(question)
        to = await answer_address(self._post.app, self._message)
        return None if to is None else await self._post.ask(to, question)
