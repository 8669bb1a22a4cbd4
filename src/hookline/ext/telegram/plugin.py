"""The plugin `telegram`: a channel of the gateway."""

from __future__ import annotations

from hookline.hooks import hookimpl
from hookline.runtime.gateway_channel import ChannelSpec, GatewayChannel, GatewayServices


class TelegramPlugin:
    """Registers the channel. Its dependencies are imported when the channel is enabled."""

    @hookimpl
    def register_channels(self) -> list[ChannelSpec]:
        """The channel `telegram`, which its table `[channels.telegram]` enables."""
        return [ChannelSpec("telegram", make_channel)]


def make_channel(gateway: GatewayServices) -> GatewayChannel:
    """The channel for a gateway."""
    try:
        from .channel import TelegramChannel
    except ModuleNotFoundError as error:
        if error.name != "telegram":
            raise
        raise ImportError("python-telegram-bot; pip install 'hookline[telegram]'") from None

    return TelegramChannel(gateway)
