"""A channel of the gateway: a service with many chats.

    class Mailbox(GatewayChannel):
        name = "mail"

        async def start(self, handle):
            ...                         # from now on: await handle({"content": text, ...})

        async def send(self, outbound):
            ...                         # one whole answer
            return True

`reply_to` gives the `Channel` of one message. The base class's sends whole answers; a channel that
streams, notifies or asks gives one of its own. A plugin brings its channels to every gateway:

    @hookimpl
    def register_channels(self):
        return [ChannelSpec("mail", lambda gateway: Mailbox(gateway))]
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from hookline.channel import Channel, Question
from hookline.errors import PluginError
from hookline.policy.approvals import bound_to, sessions_of
from hookline.types import Envelope

if TYPE_CHECKING:
    import asyncio

    from fastapi import APIRouter

    from .app import Hookline

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
        """Stop receiving, and release all resources."""

    def routes(self) -> APIRouter | None:
        """What the channel serves over HTTP, if anything."""
        return None

    async def send(self, outbound: Envelope) -> bool:
        """Deliver an envelope to the chat it names. Return False if it is not for this channel."""
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


# --- what the gateway offers a channel ---------------------------------------------------------


@dataclass(slots=True)
class Pending:
    """One open question."""

    id: str
    request: dict[str, Any]
    answer: asyncio.Future[str]

    @property
    def question(self) -> Question:
        """The question as a channel shows it."""
        return Question.of(self.request)

    @property
    def session_id(self) -> str:
        """The session that a person talks to; a subagent asks for it."""
        return sessions_of(self.request)[-1]

    @property
    def hash(self) -> str:
        """The hash of the displayed call, to which an answer is bound."""
        return bound_to(self.request)


class GatewayQuestions(Protocol):
    """The questions that wait for a person: approvals, and what hooks ask."""

    async def ask(self, question: Question, show: Callable[[Pending], Any]) -> str:
        """Show a question and wait for its answer, which may come from another door."""
        ...

    async def answer(self, approval_id: str, answer: str, *, by: str) -> bool:
        """Answer a question in someone's name; False if it is not open any more."""
        ...

    async def of(self, session_id: str) -> list[Pending]:
        """The open questions of a session."""
        ...


class GatewayServices(Protocol):
    """What the gateway offers every channel; `make` of a `ChannelSpec` gets it."""

    @property
    def app(self) -> Hookline:
        """The app, with its settings and hooks."""
        ...

    @property
    def approvals(self) -> GatewayQuestions:
        """The questions that wait for a person."""
        ...

    async def handle(self, envelope: Envelope) -> bool:
        """Accept a message. False if one with its id was accepted before."""
        ...

    async def cancel(self, session_id: str, channel: str = "", chat_id: str = "") -> bool:
        """Stop the running turn of a session; returns whether there was one."""
        ...

    async def failed(self, channel: str, error: Exception) -> None:
        """Report that something failed: to the log, the metrics and `gateway:error`."""
        ...

    def audit(self, record: dict[str, Any]) -> None:
        """Record that someone was refused."""
        ...

    def leave(self) -> None:
        """Ask the gateway to stop."""
        ...


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel that a plugin brings to gateways."""

    name: str
    make: Callable[[Any], GatewayChannel]
    """Makes the channel for a gateway (`GatewayServices`), if it is enabled."""
    default: bool = False
    """Whether it is enabled where `[gateway] channels` is not set. Otherwise its table
    `[channels.<name>]` enables it."""


def channel_spec(given: Any) -> ChannelSpec:
    """A spec as a plugin gave it: a `ChannelSpec`, or a mapping with its fields."""
    spec: Any = given
    if isinstance(given, Mapping):
        try:
            spec = ChannelSpec(**cast("Mapping[str, Any]", given))
        except TypeError as error:
            raise PluginError(f"a channel needs name and make: {error}") from None
    if not isinstance(spec, ChannelSpec):
        raise PluginError(f"register_channels gives ChannelSpec, not {given!r}")
    if not isinstance(cast("Any", spec.name), str) or not spec.name or not callable(spec.make):
        raise PluginError(f"a channel needs a name and a function that makes it, not {given!r}")
    return spec
