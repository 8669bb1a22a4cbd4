"""A channel for the example of `provide_channels`."""

from hookline.gateway import GatewayChannel

from ..turn import MessageHandler


class Mailbox(GatewayChannel):
    """Receives mail; the plugin sends it."""

    name = "mail"

    def __init__(self, receive: MessageHandler) -> None:
        self.receive = receive
