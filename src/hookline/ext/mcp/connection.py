"""A connection to one MCP server, reopened when it is lost.

One task owns the session from start to end, because the task that opens a session must close it. Calls
may come from any task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hookline.errors import ToolError
from hookline.hooks.errors import HooklineError, error_text
from hookline.system.retry import RetryPolicy

from .errors import McpError, ServerFailed

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Listed

    from hookline.tools.tool import Tool

    from .servers import McpServer
    from .settings import ServerSettings
    from .stdio import Program

State = Literal["waiting", "connecting", "connected", "lost", "failed", "closed"]

MOST = 500
"""Tools of one server that are taken; what more there is can be chosen with `tools.allow`."""

LISTED = 20_000
"""Tools after which a list is not read on."""

STEADY = 30.0
"""Seconds that a connection must have lasted for its loss to be the first one again."""

_LAST_WORDS = 5.0
_ENDED = ("Connection closed", "Session terminated")

log = logging.getLogger("hookline")


class ServerConnection:
    """One server, its state and its tools."""

    def __init__(
        self,
        server: McpServer,
        workspace: Path,
        changed: Callable[[ServerConnection], object],
        sandbox: Any = None,
    ) -> None:
        self.server = server
        self.name = server.name
        self.workspace = workspace
        self.state: State = "waiting"
        self.reason = ""
        """Why it is not connected, for people."""
        self.tools: list[Tool] = []
        """The server's tools; kept while the connection is reopened."""
        self.problems: list[str] = []
        """The tools that could not be used, with the reason."""
        self.title = ""
        self.version = "0.0.0"
        self.program: Program | None = None
        """The server's process, if it is a local program."""
        self._changed = changed
        self._sandbox = sandbox
        self._client: Client | None = None
        self._listed: list[Listed] = []
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._down = asyncio.Event()
        self._wake = asyncio.Event()
        self._lost = self._relist = self._was_up = False

    # --- for others ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start connecting, unless an attempt is already running."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(), name=f"hookline:mcp:{self.name}")

    async def tried(self) -> None:
        """Wait until the first attempt has come to an end."""
        await self._tried.wait()

    async def call(self, tool: str, arguments: dict[str, Any], report: Callable[[Any], None]) -> Any:
        """Call a tool and return its content. Failures raise `ToolError`. Cancelling the call cancels
        it at the server too.
        """
        client = self._client
        if client is None:
            self.start()
            why = f": {self.reason}" if self.reason else ""
            raise ToolError(
                f"the MCP server {self.name!r} is not connected{why}; it is being connected again, "
                "so the call may work later"
            )
        from mcp import MCPError

        from .results import content_of

        async def show(progress: float, total: float | None, message: str | None) -> None:
            report(_progress(progress, total, message))

        try:
            result = await client.call_tool(tool, arguments, progress_callback=show)
        except MCPError as error:
            if error.message not in _ENDED:  # not by the error code, which servers use inconsistently
                told = f"the MCP server {self.name!r} refused the call: {error.message}"
                raise ToolError(told) from error
            raise await self._died(client) from error
        except (ValueError, RuntimeError) as error:  # pydantic's, and what the session raises
            told = f"the MCP server {self.name!r} gave an answer that is not valid: {error_text(error)}"
            raise ToolError(told) from error
        return content_of(result)

    async def _died(self, client: Client) -> ToolError:
        """The error text for a connection that closed during a call."""
        if self._client is client:
            self._note(lost=True)
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._down.wait()
        except TimeoutError:
            pass
        why = self.reason or "the connection is closed"
        return ToolError(
            f"the MCP server {self.name!r} was lost during the call, which may have taken effect: {why}"
        )

    async def close(self) -> None:
        """End the connection, and the program with it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._tried.set()
        self._down.set()
        self.state = "closed"

    # --- keeping it ---------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Connect, stay connected, and connect again with growing delays."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            self.state = "connecting"
            self._down.clear()
            began, final = loop.time(), False
            try:
                await self._session()
            except Exception as error:
                cause = _leaf(error)
                self.reason = self._told(cause)
                final = isinstance(cause, HooklineError) and not isinstance(cause, _Gone)
            failures = 1 if loop.time() - began > STEADY else failures + 1
            policy = self._policy()
            given_up = final or policy.gives_up(failures)
            self.state = "failed" if given_up else "lost"
            log.info("mcp.%s server=%s: %s", self.state, self.name, self.reason)
            self._tried.set()
            self._down.set()
            self._changed(self)
            if given_up:
                return
            await asyncio.sleep(policy.delay(failures - self._was_up))

    def _policy(self) -> RetryPolicy:
        try:
            return self.server.settings().retry
        except HooklineError:  # settings that cannot be used: `_session` reported them
            return RetryPolicy(attempts=1)

    async def _session(self) -> None:
        """One connection from beginning to end; it ends with an error."""
        settings = self.server.settings()
        self.program = None
        self._lost = self._relist = self._was_up = False
        prepared = await self._prepared(settings)  # our own time, not the server's
        limit = asyncio.timeout(settings.start_timeout)
        async with AsyncExitStack() as stack:
            try:
                async with limit:
                    client = await stack.enter_async_context(prepared)
                    listed = await _every_tool(client)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise _Gone(self.name, f"did not answer within {settings.start_timeout:g} s") from None
            if (about := client.server_info) is not None:
                self.title, self.version = about.name, about.version
            self._take(settings, listed)
            self._was_up = True
            self._client, self.state, self.reason = client, "connected", ""
            log.info("mcp.connected server=%s tools=%s", self.name, len(self.tools))
            self._tried.set()
            self._changed(self)
            try:
                await self._attend(client, settings)
            finally:
                self._client = None

    async def _attend(self, client: Client, settings: ServerSettings) -> None:
        """Wait for the end; meanwhile list the tools again whenever they change."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._lost:
                    raise _Gone(self.name, "is gone")
                if self._relist:
                    self._relist = False
                    await self._list_again(client, settings)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _list_again(self, client: Client, settings: ServerSettings) -> None:
        from mcp import MCPError

        try:
            async with asyncio.timeout(settings.start_timeout):
                listed = await _every_tool(client)
            if listed == self._listed:
                return
            self._take(settings, listed)
        except (MCPError, ValueError, TimeoutError) as error:
            self.problems = [f"its tools changed, and cannot be listed: {error_text(error)}"]
        self._changed(self)

    async def _listen(self, client: Client) -> None:
        """Hear of changed tools where the protocol has a stream for that; else they are notified."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as stream:
                    self._note(relist=True)  # they may have changed before anybody listened
                    async for _ in stream:
                        self._note(relist=True)
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(_LAST_WORDS)

    def _note(self, *, lost: bool = False, relist: bool = False) -> None:
        self._lost = self._lost or lost
        self._relist = self._relist or relist
        self._wake.set()

    # --- making it ----------------------------------------------------------------------------

    async def _prepared(self, settings: ServerSettings) -> Client:
        try:
            from hookline.tools.threads import in_thread

            await in_thread(_load)  # it takes a second, in which the loop has other things to do
            from mcp import Client
            from mcp.types import Implementation, ListRootsResult, Root, ToolListChangedNotification
        except ImportError as error:
            raise McpError("MCP servers need the package `mcp`: pip install 'hookline[mcp]'") from error
        from importlib.metadata import version

        async def notified(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._note(relist=True)

        async def roots(context: Any) -> ListRootsResult:
            folder = self.workspace
            return ListRootsResult(
                roots=[Root.model_validate({"uri": folder.as_uri(), "name": folder.name})]
            )

        return Client(
            self._program(settings) if settings.command else self._service(settings),
            client_info=Implementation(name="hookline", version=version("hookline")),
            message_handler=notified,
            list_roots_callback=roots,
            cache=None,  # a list that is asked for again has changed
        )

    @asynccontextmanager
    async def _program(self, settings: ServerSettings) -> AsyncGenerator[Any]:
        from .stdio import started

        gone = lambda: self._note(lost=True)  # noqa: E731
        starting = started(
            self.name,
            settings,
            self.workspace,
            gone,
            self._sandbox,
            project=self.server.origin == "project",
        )
        async with starting as (program, *streams):
            self.program = program
            yield tuple(streams)

    @asynccontextmanager
    async def _service(self, settings: ServerSettings) -> AsyncGenerator[Any]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        assert settings.url is not None
        # A stream of notices may be silent for hours, and calls have a limit of their own.
        waits = httpx2.Timeout(settings.start_timeout, read=None)
        async with (
            httpx2.AsyncClient(headers=settings.headers, timeout=waits) as http,
            streamable_http_client(settings.url, http_client=http) as streams,
        ):
            yield streams

    def _take(self, settings: ServerSettings, listed: list[Listed]) -> None:
        """Convert a server's tool list. Invalid tools are reported and left out."""
        from .tools import tool_of

        wanted = [tool for tool in listed if settings.tools.takes(tool.name)]
        self._listed, self.problems = listed, []
        if len(wanted) > MOST:
            self.problems.append(
                f"it has {len(wanted):,} tools, of which the first {MOST} are taken; "
                "choose with tools.allow"
            )
        found: dict[str, Tool] = {}
        for each in wanted[:MOST]:
            try:
                found.setdefault(each.name, tool_of(self, settings, each))
            except McpError as error:
                self.problems.append(str(error))
        self.tools = [*found.values()]

    def _told(self, error: BaseException) -> str:
        """Why there is no connection, for people."""
        if isinstance(error, HooklineError) and not isinstance(error, ServerFailed):
            return f"cannot be used: {error}"
        from mcp import MCPError

        match error:
            case ServerFailed():
                told = error.reason
            case MCPError():
                told = f"refused the connection: {error.message}"
                if error.message in _ENDED:
                    told = "ended before it answered"
            case _ if self.program is None:
                told = f"cannot be reached at {self.server.target}: {error_text(error)}"
            case _:
                told = f"failed: {error_text(error)}"
        condition = self.program.condition() if self.program is not None else ""
        return f"{told} ({condition})" if condition else told


class _Gone(ServerFailed):
    """A server that may come back."""


async def _every_tool(client: Client) -> list[Listed]:
    """The tools that a server lists, page by page."""
    found: list[Listed] = []
    if client.server_capabilities.tools is None:
        return found
    cursor: str | None = None
    seen: set[str] = set()
    while len(found) < LISTED:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    return found


def _load() -> None:
    import mcp.client.streamable_http  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _leaf(error: BaseException) -> BaseException:
    """The first error in a group of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error  # pyright: ignore[reportUnknownVariableType]


def _progress(done: float, total: float | None, message: str | None) -> str:
    """How far a call has come, in words."""
    share = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{share}: {message}" if message else share
