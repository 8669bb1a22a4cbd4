"""A worker's channel to a sender who is connected to another process."""

from __future__ import annotations

import asyncio
import logging

from hookline.channel import Channel, Note, Question
from hookline.errors import TapeError
from hookline.runtime.inbox import packed
from hookline.types import Envelope, StreamEvent, address_of

from .cluster import Bundle, Queued, Relay
from .cluster.answer_batches import Gathering, Pieces
from .cluster.items import Item, address, end_item, stream_item
from .cluster.queue import End

log = logging.getLogger("hookline.serve.worker")


class RemoteChannel(Channel):
    """The answer to one message, on its way to the gateway of its sender.

    Pieces are sent as they come. What must not be lost, the end and everything with it, is held until
    the message is settled: both are one transaction.
    """

    def __init__(self, relay: Relay, gathering: Gathering, queued: Queued) -> None:
        self.name = address_of(queued.envelope)[0]
        self.gateway = queued.gateway
        self.to = address(queued.envelope)
        self._relay = relay
        self._gathering = gathering
        self._pieces = Pieces(self.gateway, self.to)
        self._held: list[Item] = []
        self._ending: Item | None = None

    @property
    def has_ended(self) -> bool:
        """Whether there is an end, or a reason why there is no answer."""
        return self._ending is not None

    def stream(self, event: StreamEvent) -> None:
        """Send a piece of the answer, or keep its end."""
        if event.kind == "end":
            self._ending = end_item(event.data["result"])
        elif event.kind != "error":
            self._show(stream_item(event))

    async def send(self, message: Envelope) -> bool:
        """Send a message to the place this one came from, with its end."""
        self._held.append(("send", packed(message)))
        return True

    def notify(self, note: Note) -> None:
        """Show the sender a note."""
        self._show(("notify", [note.text, note.session_id]))

    async def ask(self, question: Question) -> str | None:
        """Ask the sender. The answer is stored with the question, where any process finds it."""
        await self._hand(("ask", dict(question.request or {})))
        try:
            await asyncio.Event().wait()
        finally:
            self._show(("asked", question.id))

    async def closed(self) -> End:
        """What remains to be delivered at the end."""
        pieces = await self._gathering.rest(self._pieces)
        ending = [] if self._ending is None else [self._ending]
        bundle = Bundle(self.to, [*pieces, *self._held, *ending])
        return End(self.gateway, self.name, bundle.encode())

    def _show(self, item: Item) -> None:
        self._gathering.show(self._pieces, item)

    async def _hand(self, item: Item) -> None:
        """Send an item that the gateway must not miss, after the pieces."""
        bundle = Bundle(self.to, [*await self._gathering.rest(self._pieces), item])
        try:
            await self._relay.hand(self.gateway, self.name, bundle)
        except TapeError as error:  # the question may still be answered elsewhere
            log.warning("reply.not_asked channel=%s error=%s", self.name, error)
