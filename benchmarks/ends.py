"""The channel of one message in a gateway that is measured: it reports how the message ended."""

from typing import Any

from hookline.channel import Channel
from hookline.types import Envelope, StreamEvent


class Ends(Channel):
    """Calls `end` or `error` of the gateway's channel."""

    def __init__(self, channel: Any, message: Envelope) -> None:
        self.channel, self.message = channel, message

    async def send(self, message: Envelope) -> bool:
        return await self.channel.send(message)

    def stream(self, event: StreamEvent) -> None:
        if event.kind != "end":
            return
        result = event.data["result"]
        if result.outcome == "failed":
            self.channel.error(self.message, result.stopped)
        else:
            self.channel.end(self.message, result)
