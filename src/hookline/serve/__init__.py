"""The gateway: the process in which people and programs reach the agent through channels.

    gateway = Gateway(app)
    async with gateway.running():
        ...

A `GatewayChannel` brings messages in and takes answers out; `hookline gateway` runs the enabled ones,
and serves those that lie on HTTP. It needs the extra `hookline[gateway]`.
"""

from typing import TYPE_CHECKING

from hookline.errors import GatewayStopping
from hookline.runtime.gateway_channel import GatewayChannel, Handle
from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .gateway import Gateway
    from .settings import GatewaySettings
else:
    # The plugin `gateway` is loaded without the extra, too.
    __getattr__ = lazy_names(__name__, "settings gateway")

__all__ = [
    "Gateway",
    "GatewayChannel",
    "GatewaySettings",
    "GatewayStopping",
    "Handle",
]
