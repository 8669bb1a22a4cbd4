"""MCP servers: programs and services whose tools the agent may call.

    [mcp.servers.time]
    command = "uvx"
    args = ["mcp-server-time"]

Their tools come into the app's registry as `time.get_current_time` and run through the one runner, with
every gate. The `mcp` package does the talking; it is imported when a server is configured.
"""

TYPE_CHECKING = False  # as in `typing`, which is too much to load for one constant

if TYPE_CHECKING:
    from .connection import ServerConnection
    from .errors import McpError, ServerFailed
    from .plugin import McpPlugin
    from .servers import McpServer, configured
    from .settings import McpSettings, ServerSettings
else:
    _HOMES = {
        "ServerConnection": "connection",
        "McpError": "errors",
        "McpPlugin": "plugin",
        "McpSettings": "settings",
        "McpServer": "servers",
        "ServerFailed": "errors",
        "ServerSettings": "settings",
        "configured": "servers",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'hookline.ext.mcp' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"hookline.ext.mcp.{_HOMES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


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
