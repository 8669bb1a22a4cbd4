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
