"""The plugin `gateway`: the channels of the web page, the OpenAI endpoint and standard input."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from hookline.hooks import hookimpl
from hookline.runtime.gateway_channel import ChannelSpec, GatewayChannel


class GatewayPlugin:
    """Brings the channels; what one needs is imported when it is enabled."""

    @hookimpl
    def register_channels(self) -> list[ChannelSpec]:
        """The channels `web` and `openai`, and `stdio`, which has to be enabled."""
        return [
            ChannelSpec("web", partial(make_channel, "web", "WebChannel"), default=True),
            ChannelSpec("openai", partial(make_channel, "openai", "OpenAIChannel"), default=True),
            ChannelSpec("stdio", partial(make_channel, "stdio", "StdioChannel")),
        ]


def make_channel(module: str, name: str, gateway: Any) -> GatewayChannel:
    """A channel for a gateway."""
    return getattr(import_module(f".{module}", __package__), name)(gateway)
