"""Channels of the gateway for tests, with a method for each thing that happens to a message."""

from hookline.channel import Channel
from hookline.serve import GatewayChannel


class Letters(GatewayChannel):
    """A channel that is told of everything with the message that it is about."""

    async def stream(self, inbound, event):
        """A piece of an answer came."""

    async def publish(self, inbound, parts):
        """Parts were sent beside an answer."""

    async def end(self, inbound, result):
        """A message came to its end."""

    async def error(self, inbound, message):
        """A message failed."""

    async def notify(self, inbound, note):
        """A hook told something."""

    async def ask(self, inbound, question):
        """A hook asks, or a call needs approval."""

    def reply_to(self, message):
        return Letter(self, message)


class Letter(Channel):
    """The channel of one message."""

    def __init__(self, channel, message):
        self.channel, self.message = channel, message

    async def send(self, message):
        if message.get("parts"):
            await self.channel.publish(self.message, message["parts"])
            return True
        return await self.channel.send(message)

    async def stream(self, event):
        result = event.data.get("result")
        if event.kind != "end":
            await self.channel.stream(self.message, event)
        elif result.outcome == "failed":
            await self.channel.error(self.message, result.stopped)
        else:
            await self.channel.end(self.message, result)

    async def notify(self, note):
        await self.channel.notify(self.message, note)

    async def ask(self, question):
        return await self.channel.ask(self.message, question)
