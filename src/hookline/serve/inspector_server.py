"""The inspector alone: its page on this machine, under the gateway's rules, without channels.

await serve_inspector(app, inspector_settings(app.config, port=0), started=print)
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.middleware import Middleware

from hookline.observe.inspector import PAGE
from hookline.observe.inspector.routes import inspector_routes

from .approvals import GatewayApprovals, refused_by
from .limits import Limiter
from .routes.approvals import answer_routes
from .security import Levels, Security
from .server import listen, server_of
from .settings import GatewaySettings, settings_of
from .users import Admissions

if TYPE_CHECKING:
    from hookline.config import Config
    from hookline.runtime.app import Hookline

PORT: Final = 8766


def inspector_settings(config: Config, *, port: int | None = None) -> GatewaySettings:
    """`[gateway]` of the settings, restricted to this machine."""
    return settings_of(config, host="127.0.0.1", port=PORT if port is None else port)


def create_inspector(app: Hookline, settings: GatewaySettings, leaving: asyncio.Event) -> FastAPI:
    """The page and its data, for any ASGI server while the app runs."""
    users, levels = settings.users_of(app.home), Levels()
    guard = Middleware(
        Security,
        settings=settings,
        users=lambda: users,
        admissions=Admissions(),
        levels=levels,
        limiter=Limiter(settings.requests_per_minute, settings.burst),
    )
    served = FastAPI(middleware=[guard], docs_url=None, redoc_url=None, openapi_url=None)
    pages, api = inspector_routes(app, leaving)
    approvals = GatewayApprovals(app, settings.approvals_per_minute, partial(refused_by, app))
    api.routes += answer_routes(approvals, f"{PAGE}/api/approvals", in_schema=False).routes

    @pages.get("/")
    async def home() -> RedirectResponse:
        return RedirectResponse(PAGE)

    levels.declare("public", pages.routes)
    served.router.routes += [*pages.routes, *api.routes]
    levels.serve(served.router.routes)
    return served


async def serve_inspector(
    app: Hookline,
    settings: GatewaySettings,
    *,
    leaving: asyncio.Event | None = None,
    started: Callable[[str], Any] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `leaving`. `started` is called with the page's address."""
    settings.check()
    listening = listen(settings.host, settings.port)
    app.passive = True
    leaving = leaving or asyncio.Event()
    with _signals(leaving.set):
        await _serve(app, settings, listening, leaving, started)


@contextmanager
def _signals(leave: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        yield
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _serve(
    app: Hookline,
    settings: GatewaySettings,
    listening: socket.socket,
    leaving: asyncio.Event,
    started: Callable[[str], Any] | None,
) -> None:
    app.absences.enforced = False  # it shows what failed
    async with app.running():
        server = server_of(create_inspector(app, settings, leaving), settings)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        ending = asyncio.create_task(leaving.wait())
        try:
            while not server.started and not serving.done():
                await asyncio.sleep(0.001)
            if started is not None:
                host, port = listening.getsockname()[:2]
                started(f"http://{host}:{port}{PAGE}")
            await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            server.should_exit = True
            await serving
