"""Triggers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hookline.hooks import hookimpl
from hookline.hookspecs import TriggerEvent


class Hourly:
    """Asks for a report every hour, and whenever a webhook is called."""

    def __init__(self) -> None:
        self.emit: Callable[[TriggerEvent], Awaitable[Any]] | None = None
        self.task: asyncio.Task[None] | None = None

    @hookimpl
    def trigger_init(self, deps: dict[str, Any]) -> None:
        """Keep the way in."""
        self.emit = deps["emit"]

    @hookimpl
    async def trigger_start(self, deps: dict[str, Any]) -> None:
        """Begin to tick."""
        self.task = asyncio.create_task(self.tick())

    @hookimpl
    async def trigger_stop(self, deps: dict[str, Any]) -> None:
        """Stop ticking, and wait until it has stopped."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])

    @hookimpl
    def trigger_routes(self) -> list[Any]:
        """Provide a route of Starlette or FastAPI."""
        from starlette.routing import Route

        return [Route("/report", self.called, methods=["POST"])]

    async def tick(self) -> None:
        """Ask once an hour."""
        while True:
            await asyncio.sleep(3600)
            await self.report()

    async def called(self, request: Any) -> Any:
        """Ask for a report when the webhook is called."""
        from starlette.responses import Response

        await self.report()
        return Response(status_code=202)

    async def report(self) -> None:
        """Ask for a report."""
        if self.emit is not None:
            await self.emit(TriggerEvent("hourly", message="Write the hourly report."))
