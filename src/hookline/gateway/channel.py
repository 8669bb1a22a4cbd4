"""A channel: one way in and out.

    class Mailbox(Channel):
        name = "mail"

        async def start(self, handle):
            ...                         # from now on: await handle({"content": text, ...})

        async def send(self, outbound):
            ...                         # one whole answer
            return True

Anything with these methods is a channel; the base class has what is optional.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from hookline.catalog.envelope import Envelope, address_of, field_of
from hookline.catalog.parts import Part
from hookline.catalog.stream import StreamEvent
from hookline.channel import Note, Question
from hookline.turn import TurnResult

if TYPE_CHECKING:
    from fastapi import APIRouter

Handle: TypeAlias = Callable[[Envelope], Awaitable[Any]]
"""Takes a message over. When it returns, the message was accepted and is kept; the answer comes later.
It says False where a message with this id was accepted before: that one is answered, not this."""

inbound: ContextVar[Envelope | None] = ContextVar("hookline_inbound", default=None)
"""The message that is being answered, for whatever happens on its behalf."""


def is_answer(outbound: Envelope) -> bool:
    """Whether an outbound envelope answers the message at hand, of which pieces were shown already."""
    current = inbound.get()
    if current is None or field_of(outbound, "unprompted"):
        return False
    return address_of(current) == address_of(outbound)


class Channel:
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
        """Deliver one whole outbound envelope; False where it is not for this channel."""
        return False

    async def stream(self, inbound: Envelope, event: StreamEvent) -> None:
        """Show a piece of the answer as it comes."""

    async def publish(self, inbound: Envelope, parts: list[Part]) -> None:
        """Send further parts of an answer, before its end."""

    async def end(self, inbound: Envelope, result: TurnResult) -> None:
        """Mark the end of an answer, and what became of the message."""

    async def error(self, inbound: Envelope, message: str) -> None:
        """Tell the sender that the message could not be processed."""

    async def notify(self, inbound: Envelope, note: Note) -> None:
        """Show the sender a note."""

    async def ask(self, inbound: Envelope, question: Question) -> str | None:
        """Ask the sender, and wait for the answer; None where nobody can be asked."""
        return None
