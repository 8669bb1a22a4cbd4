"""MCP servers: programs and services whose tools the agent may call.

    [mcp.servers.time]
    command = "uvx"
    args = ["mcp-server-time"]

Their tools come into the app's registry as `time.get_current_time` and run through the one runner, with
every gate. The `mcp` package does the talking; it is imported when a server is configured.
"""

from typing import TYPE_CHECKING

from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .connection import ServerConnection
    from .errors import McpError, ServerFailed
    from .plugin import McpPlugin
    from .servers import McpServer, configured
    from .settings import McpSettings, ServerSettings
else:
    __getattr__ = lazy_names(__name__, "errors plugin settings servers connection")

__all__ = [
    "McpError",
    "McpPlugin",
    "McpServer",
    "McpSettings",
    "ServerConnection",
    "ServerFailed",
    "ServerSettings",
    "configured",
]
