"""Errors of MCP servers."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError


class McpError(HooklineError):
    """An MCP server, or something it provides, cannot be used."""


class ServerFailed(McpError):
    """A server that does not start, does not answer, or is gone."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"the MCP server {server!r} {reason}")
        self.server = server
        self.reason = reason
