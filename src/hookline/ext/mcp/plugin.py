"""The MCP plugin: connects to the servers when the app runs, and keeps their tools in its registry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hookline.hooks import HooklineError, hookimpl

if TYPE_CHECKING:
    from hookline.events import ResourcesDiscoverEvent
    from hookline.runtime.app import Hookline
    from hookline.tools.tool import Tool

    from .connection import ServerConnection
    from .servers import McpServer


class McpPlugin:
    """Servers as sources of tools.

    Connecting begins with the running scope, for all servers at once, and holds nothing up: the first
    turn waits for it, with each server's time limit. Tools are put into the registry as they come,
    after those of all plugins, so that a server takes no name from anybody.
    """

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self.tell: Callable[[str], object] | None = None
        """Receives messages for the user; set by the command that runs the app."""
        self.connections: dict[str, ServerConnection] = {}
        self._off: Callable[[], object] | None = None
        self._taken: dict[str, list[Tool]] = {}
        """The tools of each server that are in the registry."""
        self._told: dict[str, str] = {}
        """The last failure reported for each server."""

    def servers(self) -> list[McpServer]:
        """Every server that is configured, used or not."""
        config = self.app.config
        if not config.get("mcp") and not config.written_in_project("mcp"):
            return []
        from .servers import configured

        return configured(self.app.config, self.app.trust, self.app.sandbox.active)

    # --- the running scope --------------------------------------------------------------------

    @hookimpl
    async def hookline_startup(self) -> None:
        """Start connecting, if servers are configured."""
        if not self.app.passive:
            self.begin()

    @hookimpl
    async def resources_discover(self, event: ResourcesDiscoverEvent) -> None:
        """Drop servers, when the settings were read again."""
        if event.reason == "reload":
            await self.drop()

    @hookimpl
    async def hookline_shutdown(self) -> None:
        """Close every connection, and end the programs."""
        await self.close()

    def begin(self, only: str | None = None) -> None:
        """Connect to every server that is enabled and trusted, or to one; returns at once."""
        servers = [s for s in self.servers() if s.enabled and only in (None, s.name)]
        if not servers:
            return
        from .connection import ServerConnection

        sandbox = self.app.sandbox
        for server in servers:
            if server.name not in self.connections:
                made = ServerConnection(server, self.app.workspace, self._changed, sandbox)
                self.connections[server.name] = made
                made.start()
        if self._off is None:
            self._off = self.app.hooks.register("load_state", self._before_a_turn)

    async def drop(self) -> None:
        """Close the connections of servers that are not configured, enabled or trusted any more."""
        try:
            usable = {each.name for each in self.servers() if each.enabled and not each.obstacle()}
        except HooklineError:
            return  # the settings are unreadable; the reload itself reports that
        for name in [name for name in self.connections if name not in usable]:
            await self.connections.pop(name).close()
            self._take_back(name)
            self._say(f"the MCP server {name!r} is dropped: it is not configured and trusted any more")

    async def ready(self) -> None:
        """Wait until each server is connected, or its first attempt has failed."""
        for connection in [*self.connections.values()]:
            await connection.tried()

    async def _before_a_turn(self) -> dict[str, Any]:
        await self.ready()
        return {}

    async def close(self) -> None:
        """Close every connection; their tools go."""
        from asyncio import gather

        connections = [*self.connections.values()]
        self.connections.clear()
        if self._off is not None:
            self._off()
            self._off = None
        await gather(*(connection.close() for connection in connections))
        for name in [*self._taken]:
            self._take_back(name)

    @asynccontextmanager
    async def connected(self, only: str | None = None) -> AsyncGenerator[list[ServerConnection]]:
        """Connect for a look, without a running scope: every connection, after its first attempt."""
        self.begin(only)
        try:
            await self.ready()
            yield [*self.connections.values()]
        finally:
            await self.close()

    # --- tools --------------------------------------------------------------------------------

    def _changed(self, connection: ServerConnection) -> None:
        """Update the registry with a server's tools, and report its state."""
        name = label(connection.name)
        if connection.state in ("failed", "lost"):
            from .errors import ServerFailed

            if self._told.get(name) != connection.reason:  # a further attempt may fail like the last
                failure = ServerFailed(connection.name, connection.reason)
                self._told[name] = connection.reason
                self.app.plugins.forget_failures([name])
                self.app.plugins.failed(name, "connecting", failure, left_out=False)
                self._say(str(failure))
            return
        if self._told.pop(name, None) is not None:
            self.app.plugins.forget_failures([name])
            self._say(f"the MCP server {connection.name!r} is connected")
        self._take_back(connection.name)
        taken = self._taken.setdefault(connection.name, [])
        for tool in connection.tools:
            if fault := self._add(tool):
                connection.problems.append(fault)
            else:
                taken.append(tool)
        for problem in connection.problems[:5]:
            self._say(f"the MCP server {connection.name!r}: {problem}")

    def _add(self, tool: Tool) -> str | None:
        """Add a tool to the registry. Return the reason if another source owns the name."""
        from hookline.errors import DuplicateTool

        owner = self.app.plugins.owners.get(tool.spec.namespace)
        if owner is not None:
            return f"{tool.name!r} is left out: its namespace belongs to plugin {owner!r}; set a prefix"
        try:
            self.app.tools.add(tool)
        except DuplicateTool as clash:
            return f"{tool.name!r} is left out: {clash}"
        return None

    def _take_back(self, server: str) -> None:
        registry = self.app.tools
        for tool in self._taken.pop(server, ()):
            if tool.name in registry and registry.get(tool.name) is tool:
                registry.remove(tool.name)

    def _say(self, text: str) -> None:
        if self.tell is not None:
            self.tell(text)


def label(server: str) -> str:
    """The name that a server's failures go by."""
    return f"mcp.{server}"
