"""What goes wrong with MCP servers."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError


class McpError(HooklineError):
    """Something about an MCP server, or what it brings, cannot be used."""


class ServerFailed(McpError):
    """A server that does not start, does not answer, or is gone."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"the MCP server {server!r} {reason}")
        self.server = server
        self.reason = reason


class McpNotInstalled(McpError, ImportError):
    """A server is configured, and the `mcp` package is not there."""

    def __init__(self) -> None:
        super().__init__("MCP servers need the package `mcp`: pip install 'hookline[mcp]'")
