"""A channel for the example of `provide_channels`."""

from hookline.hookspecs import MessageHandler
from hookline.runtime.gateway_channel import GatewayChannel


class Mailbox(GatewayChannel):
    """Receives mail; the plugin sends it."""

    name = "mail"

    def __init__(self, receive: MessageHandler) -> None:
        self.receive = receive
