"""Who may come in, how often, and with how much: one layer around everything that is served."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hookline.inspector import PAGE

from .limits import Limiter, TooMany
from .settings import LOCAL_NAMES, GatewaySettings

STATIC = Path(__file__).parent / "static"
OPEN_PATHS = ("/health", "/ready", PAGE)
CSP = (
    "default-src 'self'; media-src 'self' blob: data:; img-src 'self' blob: data:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self)",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
LOCAL_USER = "local"


class Refused(Exception):
    """A request that gets no further, and the answer that it gets."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class Security:
    """Checks every request and connection before anything else sees it."""

    def __init__(
        self,
        app: ASGIApp,
        settings: GatewaySettings,
        limiter: Limiter,
        public: Iterable[str] = (),
        count: Callable[[str, int], Any] | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._is_local = settings.is_local
        self._limiter = limiter
        self._public = tuple(public)
        self._count = count
        self._tokens = [(name, token.encode()) for name, token in settings.tokens().items()]
        self._hosts = {host.lower() for host in (*LOCAL_NAMES, *settings.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, with a user's name in its scope, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_http = scope["type"] == "http"
        if is_http:
            scope.setdefault("hookline.send", send)
            send = self._dressed(scope, send)
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            self._check_origin(headers)
            scope["hookline.user"] = self._user(scope, headers)
            if is_http:
                self._check_rate(scope)
                receive = self._measured(headers, receive)
            await self._app(scope, receive, send)
        except Refused as refused:
            body = {"detail": refused.detail}
            await _refuse(JSONResponse(body, refused.status, refused.headers), scope, receive, send)

    # --- who ----------------------------------------------------------------------------------

    def _check_host(self, headers: Headers) -> None:
        """A page of another site that made its own name point here must not get in."""
        if not self._is_local and not self._settings.hosts:
            return  # any name may lead here, and a token is needed
        name = host_name(headers.get("host", ""))
        if name not in self._hosts and not (_is_address(name) and not self._is_local):
            raise Refused(421, "this gateway is not called by that name; see hosts in [gateway]")

    def _check_origin(self, headers: Headers) -> None:
        """A page of another site must not talk with the gateway in its visitor's name."""
        origin = headers.get("origin")
        if origin is None or origin in self._settings.cors:
            return
        if urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            raise Refused(403, "pages of that origin may not call this gateway; see cors in [gateway]")

    def _user(self, scope: Scope, headers: Headers) -> str:
        if not self._tokens:
            return LOCAL_USER
        given = _token(scope, headers).encode()
        found = [name for name, token in self._tokens if hmac.compare_digest(token, given)]
        if found:
            return found[0]
        if self._is_public(scope["path"]) or scope.get("method") == "OPTIONS":
            return ""
        raise Refused(401, "a token is needed: Authorization: Bearer …", {"www-authenticate": "Bearer"})

    def _is_public(self, path: str) -> bool:
        if path in OPEN_PATHS or (self._public and path.startswith(self._public)):
            return True
        if path == "/":
            return True
        wanted = (STATIC / path.lstrip("/")).resolve()
        return wanted.is_relative_to(STATIC) and wanted.is_file()

    # --- how much -----------------------------------------------------------------------------

    def _check_rate(self, scope: Scope) -> None:
        user: str = scope["hookline.user"]
        if user and not self._is_cheap(scope["path"]):
            try:
                self._limiter.check(user)
            except TooMany as error:
                raise Refused(429, str(error), {"retry-after": str(error.retry_after)}) from None

    @staticmethod
    def _is_cheap(path: str) -> bool:
        return not path.startswith(("/api/", "/v1/"))

    def _measured(self, headers: Headers, receive: Receive) -> Receive:
        """Refuse a body that is too large, by what it says or by what comes."""
        most = self._settings.max_body
        told = f"the body is larger than {most:,} bytes; see max_body in [gateway]"
        said = headers.get("content-length", "")
        if said.isdecimal() and int(said) > most:
            raise Refused(413, told)
        came = 0

        async def measured() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise HTTPException(413, told)
            return message

        return measured

    def _dressed(self, scope: Scope, send: Send) -> Send:
        """Add the headers that keep browsers safe, and count."""
        count = self._count

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                message["headers"] = [*headers, *_RAW_HEADERS]
                if scope["path"].startswith(("/api/", "/v1/")):
                    MutableHeaders(raw=message["headers"]).setdefault("cache-control", "no-store")
                if count is not None:
                    count(scope["method"], message["status"])
            await send(message)

        return dressed


async def _refuse(response: JSONResponse, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 4403, "reason": ""})


def user_of(scope: Scope) -> str:
    """Who sent a request."""
    return scope.get("hookline.user") or LOCAL_USER


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _token(scope: Scope, headers: Headers) -> str:
    """The token of a request: its header; or for a WebSocket, which has none, protocol or query."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    if scope["type"] == "websocket":
        offered: list[str] = scope.get("subprotocols", [])
        if len(offered) == 2 and offered[0] == "bearer":
            return offered[1]
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return query.get("token", [""])[0]
    return ""
