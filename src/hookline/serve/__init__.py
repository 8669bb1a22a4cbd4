"""The gateway: the process in which people and programs reach the agent through channels.

    gateway = Gateway(app)
    async with gateway.running():
        ...

A `GatewayChannel` brings messages in and takes answers out; `hookline gateway` runs the enabled ones,
and serves those that lie on HTTP. It needs the extra `hookline[gateway]`.
"""

from hookline.errors import GatewayStopping
from hookline.runtime.gateway_channel import GatewayChannel, Handle

from .gateway import Gateway
from .settings import GatewaySettings

__all__ = [
    "Gateway",
    "GatewayChannel",
    "GatewaySettings",
    "GatewayStopping",
    "Handle",
]
