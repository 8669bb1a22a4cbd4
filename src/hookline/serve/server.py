"""The HTTP server: an ASGI app around a gateway, and running it until it is asked to end.

app = create_app(Gateway(hookline))      # for any ASGI server: its lifespan runs the gateway
await serve(Gateway(hookline))           # with uvicorn, in this process
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from hookline.errors import (
    BadInput,
    DuplicateMessage,
    GatewayError,
    GatewayStopping,
    RequestRefused,
    StoreUnavailable,
    TapeUnavailable,
)
from hookline.hooks import HooklineError
from hookline.system.log_redaction import without_secrets

from .gateway import Gateway
from .protocol import protocols
from .routes.page import page_routes
from .security import Levels, Security
from .settings import GatewaySettings
from .signals import signals

log = logging.getLogger("hookline.serve")

STATUS: dict[type[HooklineError], int] = {
    BadInput: 422,
    DuplicateMessage: 409,
    GatewayStopping: 503,
}
UNUSABLE: tuple[type[HooklineError], ...] = (TapeUnavailable, StoreUnavailable)
"""What clients see when a store fails; the log has the reason."""
TRY_AGAIN = "the gateway cannot keep or read this now; try again later"
HANG_UP = 5
"""Seconds for connections to close after the last turn."""
BACKLOG = 4096
"""Connections that may wait to be accepted."""


def create_app(gateway: Gateway) -> FastAPI:
    """The ASGI app of a gateway; its lifespan runs the gateway."""
    settings = gateway.settings
    settings.check()
    gateway.users()  # generates a token now, or reports what is wrong with the existing one

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with gateway.running():
            with mounted():
                yield

    levels = Levels()
    guard = Middleware(
        Security,
        settings=settings,
        users=gateway.users,
        levels=levels,
        limiter=gateway.limiter,
        admissions=gateway.admissions,
        count=gateway.metrics.request,
        audit=gateway.audit,
    )
    guards = [guard]
    if settings.cors:
        guards.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors,
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-type", "x-hookline-session"],
            )
        )
    app = FastAPI(
        title="Hookline gateway",
        description="Talk to an agent: messages, sessions, approvals, an OpenAI-compatible endpoint.",
        version=version("hookline"),
        lifespan=lifespan,
        middleware=guards,
        docs_url=None,  # they would load their scripts from other hosts
        redoc_url=None,
    )
    for kind, status in STATUS.items():
        app.add_exception_handler(kind, _answer(status))
    for kind in UNUSABLE:
        app.add_exception_handler(kind, _unusable)
    app.add_exception_handler(LookupError, _answer(404))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(RequestRefused, _refused)
    mounted = _add_routes(app, gateway, levels)
    levels.serve(app.router.routes)
    return app


def _add_routes(
    app: FastAPI, gateway: Gateway, levels: Levels
) -> Callable[[], AbstractContextManager[None]]:
    """Add all routes with their requirements. Returns a function that mounts the triggers' routes.

    Triggers bring their routes when the gateway starts, which is later if another server runs the app.
    Routes are added as they are: `include_router` would copy each one, which takes half of the
    start-up time, and the copies would not be the declared ones.
    """
    from .routes.health import health_routes

    levels.declare("user", app.router.routes)  # the API description
    probes, metrics = health_routes(gateway)
    levels.declare("public", probes.routes)
    levels.declare("user", metrics.routes)
    app.router.routes += [*probes.routes, *metrics.routes]
    for channel in gateway.channels.values():
        if (router := _routes(channel)) is not None:
            open_paths: tuple[str, ...] = getattr(channel, "public", ())
            for route in router.routes:
                is_open = getattr(route, "path", None) in open_paths
                levels.declare("public" if is_open else "user", [route])
            app.router.routes += router.routes
    for router in gateway.routers:
        app.router.routes += router.routes
    position = len(app.router.routes)
    app.router.routes += gateway.open_routes
    levels.declare("public", gateway.open_routes)
    if gateway.settings.inspector:
        from hookline.observe.inspector import PAGE
        from hookline.observe.inspector.routes import inspector_routes

        from .routes.approvals import answer_routes

        pages, api = inspector_routes(gateway.app, gateway.leaving)
        path = f"{PAGE}/api/approvals"
        api.routes += answer_routes(gateway.approvals, path, in_schema=False).routes
        levels.declare("public", pages.routes)
        app.router.routes += [*pages.routes, *api.routes]
    if "web" in gateway.channels:
        page = page_routes()
        levels.declare("public", page)
        app.router.routes += page

    @contextmanager
    def mounted() -> Generator[None]:
        routes = [*gateway.open_routes]
        levels.declare("public", routes)
        app.router.routes[position:position] = routes
        try:
            yield
        finally:
            app.router.routes[position : position + len(routes)] = []

    return mounted


def _routes(channel: Any) -> Any:
    made: Callable[[], Any] | None = getattr(channel, "routes", None)
    return made() if made is not None else None


def _answer(status: int) -> Callable[[Request, Exception], Any]:
    async def answer(request: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HooklineError):
            raise error
        return JSONResponse(_problem(request, str(error)), status)

    return answer


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """A request refused by its route."""
    assert isinstance(error, RequestRefused)
    return JSONResponse(_problem(request, error.detail), error.status, error.headers)


async def _unusable(request: Request, error: Exception) -> JSONResponse:
    """A request that failed because of a store, not because of its sender."""
    log.error("request.unusable path=%s error=%s", request.url.path, error)
    return JSONResponse(_problem(request, TRY_AGAIN), 503, headers={"retry-after": "5"})


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """What is wrong with a request, field by field, without repeating the input."""
    assert isinstance(error, RequestValidationError)
    found = [{name: fault[name] for name in ("type", "loc", "msg")} for fault in error.errors()]
    return JSONResponse(_problem(request, found), 422)


def _problem(request: Request, detail: Any) -> dict[str, Any]:
    """A problem, without secrets; for OpenAI clients also in their format."""
    detail = without_secrets(detail) if isinstance(detail, str) else detail
    if not request.url.path.startswith("/v1/"):
        return {"detail": detail}
    told = detail if isinstance(detail, str) else "; ".join(f"{f['loc']}: {f['msg']}" for f in detail)
    error = {"message": told, "type": "invalid_request_error", "code": None, "param": None}
    return {"detail": detail, "error": error}


def direct(app: ASGIApp) -> ASGIApp:
    """The app with the server's own `send`, for the pieces of a stream."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        scope["hookline.send"] = send
        await app(scope, receive, send)

    return call


class UvicornServer(uvicorn.Server):
    """uvicorn, without its signal handlers."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield


def server_of(app: ASGIApp, settings: GatewaySettings) -> UvicornServer:
    """Create a server for an app, with the limits of the settings."""
    http, websocket = protocols(settings)
    return UvicornServer(
        uvicorn.Config(
            app,
            http=http,
            ws=websocket,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=settings.proxies,
            ws_max_size=settings.max_body,
            ws_ping_interval=settings.ping,
            ws_ping_timeout=settings.ping,
            ws_per_message_deflate=False,  # it keeps a window for every connection
            timeout_graceful_shutdown=HANG_UP,
            server_header=False,
        )
    )


def make_server(gateway: Gateway) -> UvicornServer:
    """Create a server for a running gateway."""
    return server_of(direct(create_app(gateway)), gateway.settings)


async def serve(
    gateway: Gateway,
    *,
    started: Callable[[str], Any] | None = None,
    changed: Callable[[str], Any] | None = None,
) -> None:
    """Run the gateway until SIGTERM, SIGINT or a channel ends it; SIGHUP reloads.

    A second SIGTERM or SIGINT ends the process immediately. HTTP is served if something needs it:
    channels with routes, `gateway.routers`, a trigger's routes. `started` is called with the address.
    With `changed`, hook files are reloaded when they change, and it is called with a summary.
    """
    gateway.settings.check()
    with signals(gateway):
        triggers = gateway.app.config.section("triggers").values()
        wanted = (
            gateway.routers
            or gateway.settings.socket is not None
            or any(_routes(channel) for channel in gateway.channels.values())
            or any(trigger.get("type") == "webhook" for trigger in triggers)
        )
        listening = listen(gateway.settings.host, gateway.settings.port) if wanted else None
        async with AsyncExitStack() as stack:
            if listening is not None:
                stack.callback(listening.close)
            await stack.enter_async_context(gateway.running())
            if changed is not None:

                def reloaded(text: str) -> None:
                    gateway.commands.forget()
                    changed(text)

                await stack.enter_async_context(gateway.app.hook_files.watching(reloaded))
            if listening is None and gateway.open_routes:
                listening = listen(gateway.settings.host, gateway.settings.port)
                stack.callback(listening.close)
            if listening is not None:
                sockets = [listening]
                if gateway.settings.socket is not None:
                    sockets.append(stack.enter_context(unix_socket(gateway.settings.socket)))
                await _serve_http(gateway, sockets, started)
                return
            if started is not None:
                started("")
            await gateway.leaving.wait()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise an error that says why it cannot listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise GatewayError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; "
            "choose another --port or --host"
        ) from None


@contextmanager
def unix_socket(path: Path) -> Generator[socket.socket]:
    """Return a Unix socket that only this user can open; it is removed at the end."""
    if not hasattr(socket, "AF_UNIX"):
        raise GatewayError("this system has no Unix sockets; take socket out of [gateway]")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket():
            path.unlink()  # left by a process that ended without removing it
        before = os.umask(0o177)  # the file must never be open to others, even for a moment
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise GatewayError(f"cannot listen on {path}: {error.strerror or error}") from None
    try:
        yield listening
    finally:
        listening.close()
        path.unlink(missing_ok=True)


async def _serve_http(
    gateway: Gateway, listening: list[socket.socket], started: Callable[[str], Any] | None
) -> None:
    server = make_server(gateway)
    serving = asyncio.create_task(server.serve(sockets=listening))
    leaving = asyncio.create_task(gateway.leaving.wait())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.001)
        if started is not None:
            host, port = listening[0].getsockname()[:2]
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        await asyncio.wait([serving, leaving], return_when=asyncio.FIRST_COMPLETED)
        await gateway.drain()  # answers in progress still reach their readers
    finally:
        leaving.cancel()
        server.should_exit = True
        await serving
