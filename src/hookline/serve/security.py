"""Authentication and limits: one layer around everything that is served.

The matched route decides what a request needs: nothing, a token, or an operator's token. Each route is
declared when the server is created; an undeclared route needs an operator. The router matches a
request again in the same way, so that no spelling of a path means one thing here and another there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hookline.errors import RequestRefused, TokenRevoked, TooManyRequests
from hookline.observe.inspector import PAGE

from .limits import Limiter
from .peers import Peer, peer_of
from .settings import LOCAL_NAMES, GatewaySettings
from .users import OWNER_USER, Admissions, User, Users

log = logging.getLogger("hookline.serve")

Level: TypeAlias = Literal["public", "user", "operator"]

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
ONCE: Final = ("Authorization", "Host", "Origin")
"""Headers that decide who may come in: with two of one, readers could disagree."""
MAX_QUERY: Final = 8192
"""Bytes of a query."""
NEEDED = (
    "a token is needed: Authorization: Bearer …; "
    "`hookline gateway --print-token` shows the link with it"
)
WRONG = "the token is wrong; `hookline gateway --print-token` shows the link with the right one"
OPERATORS = "only an operator may do this; see role in [gateway.users]"
USER: Final = "hookline.user"


class Levels:
    """What each route needs; an operator if undeclared."""

    def __init__(self) -> None:
        self._routes: list[BaseRoute] = []
        self._of: dict[int, Level] = {}

    def serve(self, routes: list[BaseRoute]) -> None:
        """The routes of the server, in matching order."""
        self._routes = routes

    def declare(self, level: Level, routes: Iterable[BaseRoute]) -> None:
        """Declare what routes need."""
        for route in routes:
            self._of[id(route)] = level

    def needed(self, scope: Scope) -> Level:
        """What the matching route of a request needs."""
        for route in self._routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return self._of.get(id(route), "operator")
        return "operator"


class Security:
    """Checks every request and connection before anything else sees it."""

    def __init__(
        self,
        app: ASGIApp,
        settings: GatewaySettings,
        users: Callable[[], Users],
        levels: Levels,
        limiter: Limiter,
        admissions: Admissions,
        count: Callable[[str, int], Any] | None = None,
        audit: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._users = users
        self._levels = levels
        self._limiter = limiter
        self._admissions = admissions
        self._inspector = Limiter(2 * settings.requests_per_minute, 4 * settings.burst)
        self._wrong = Limiter(settings.wrong_tokens, settings.wrong_tokens)
        self._count = count
        self._audit = audit
        self._hosts = {host.lower() for host in (*LOCAL_NAMES, *settings.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its user in the scope, or respond to it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_http = scope["type"] == "http"
        if is_http:
            scope.setdefault("hookline.send", send)
            send = self._dressed(scope, send)
        try:
            headers = Headers(scope=scope)
            if len(scope.get("query_string", b"")) > MAX_QUERY:
                raise RequestRefused(414, f"the query is longer than {MAX_QUERY:,} bytes")
            for name in ONCE:
                if len(headers.getlist(name)) > 1:
                    raise RequestRefused(400, f"there is more than one {name} header")
            self._note_client(scope)
            self._check_host(scope, headers)
            self._check_origin(headers)
            level = self._levels.needed(scope)
            user = scope[USER] = await self._admitted(scope, headers, level)
            if is_http:
                if user is not None and level != "public":
                    self._check_rate(user, scope["path"])
                receive = self._measured(headers, receive)
            with self._admissions.of(user, _token(scope, headers)):
                await self._app(scope, receive, send)
        except RequestRefused as refused:
            body = {"detail": refused.detail}
            await _refuse(JSONResponse(body, refused.status, refused.headers), scope, receive, send)
        except TokenRevoked:
            if not is_http:
                await send({"type": "websocket.close", "code": 4401, "reason": "the token was revoked"})
            # The server closes a connection whose response is not complete.

    # --- who ----------------------------------------------------------------------------------

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        """Reject a page of another site whose name was pointed at this address (DNS rebinding)."""
        is_local = self._settings.is_local
        if peer_of(scope).is_unix or (not is_local and not self._settings.hosts):
            return  # any name may lead here, and a token is needed
        name = host_name(headers.get("host", ""))
        if name not in self._hosts and not (_is_address(name) and not is_local):
            raise RequestRefused(421, "this gateway is not called by that name; see hosts in [gateway]")

    def _check_origin(self, headers: Headers) -> None:
        """Reject a page of another site that acts in its visitor's name."""
        origin = headers.get("origin")
        if origin is None or origin in self._settings.cors:
            return
        scheme, _, place = origin.partition("://")
        if scheme not in ("http", "https") or place.lower() != headers.get("host", "").lower():
            raise RequestRefused(
                403, "pages of that origin may not call this gateway; see cors in [gateway]"
            )

    async def _admitted(self, scope: Scope, headers: Headers, level: Level) -> User | None:
        """The user of an allowed request; None on a public route without a token."""
        user = await self._user(scope, headers, level)
        if level == "public" or (user is None and self._is_preflight(scope, headers)):
            return user
        if user is None:
            raise RequestRefused(401, NEEDED, {"www-authenticate": "Bearer"})
        if level == "operator" and not user.is_operator:
            raise RequestRefused(403, OPERATORS)
        return user

    async def _user(self, scope: Scope, headers: Headers, level: Level) -> User | None:
        peer = peer_of(scope)
        if peer.is_unix:
            return await self._owner(peer)
        given = _token(scope, headers)
        if not given:
            return None
        user = self._users().find(given)
        if user is None:
            self._count_wrong(self._key(peer))
            log.warning("token.wrong peer=%s path=%r", peer.host, scope["path"])
            if level == "public":
                return None
            raise RequestRefused(401, WRONG, {"www-authenticate": "Bearer", "connection": "close"})
        # A correct token always gets in. Otherwise someone sending wrong ones could lock out everyone
        # at the same address: a child of the agent could lock out its owner.
        peer.admit(user)
        return user

    def _note_client(self, scope: Scope) -> None:
        """Remember the client that a trusted proxy reports."""
        if self._settings.proxies and (client := scope.get("client")):
            peer = peer_of(scope)
            peer.client = "" if tuple(client) == (peer.host, peer.port) else str(client[0])

    def _key(self, peer: Peer) -> str:
        """The key for counting mistakes: the peer, or the client that a trusted proxy reports."""
        return peer.client or peer.key()

    def _count_wrong(self, key: str) -> None:
        try:
            self._wrong.check(key)
        except TooManyRequests as error:
            detail = f"too many wrong tokens from this address; try again in {error.retry_after} s"
            headers = {"retry-after": str(error.retry_after), "connection": "close"}
            raise RequestRefused(429, detail, headers) from None

    async def _owner(self, peer: Peer) -> User:
        """Treat a connection to the Unix socket as the owner's, unless the agent started it."""
        suspect = await peer.suspect()
        if suspect is not None:
            await self._denied({"what": "unix socket", **suspect})
            raise RequestRefused(
                403, "a process that the agent started may not use the gateway's socket"
            )
        peer.admit(OWNER_USER)
        return OWNER_USER

    async def _denied(self, record: dict[str, Any]) -> None:
        if self._audit is not None:
            await asyncio.to_thread(self._audit, record)

    def _is_preflight(self, scope: Scope, headers: Headers) -> bool:
        """A browser's preflight request for an allowed origin; the CORS layer answers it."""
        return (
            scope.get("method") == "OPTIONS"
            and headers.get("origin") in self._settings.cors
            and "access-control-request-method" in headers
        )

    # --- how much -----------------------------------------------------------------------------

    def _check_rate(self, user: User, path: str) -> None:
        """Count a request. The inspector's page sends many small ones and has its own limit."""
        limiter = self._inspector if path.startswith(f"{PAGE}/") else self._limiter
        try:
            limiter.check(user.name)
        except TooManyRequests as error:
            raise RequestRefused(429, str(error), {"retry-after": str(error.retry_after)}) from None

    def _measured(self, headers: Headers, receive: Receive) -> Receive:
        """Reject a body that is too large, by its declared or its actual size."""
        most = self._settings.max_body
        told = f"the body is larger than {most:,} bytes; see max_body in [gateway]"
        said = headers.get("content-length", "")
        if said.isdecimal() and int(said) > most:
            raise RequestRefused(413, told)
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
        """Add security headers, and count the response."""
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


def user_of(scope: Scope) -> User:
    """The sender of a request that needed a token."""
    user: User | None = scope.get(USER)
    if user is None:
        raise RequestRefused(401, NEEDED, {"www-authenticate": "Bearer"})
    return user


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
    """The token of a request: from its header or, for a browser's WebSocket, its protocols.

    A page cannot set headers on a WebSocket. A token in the URL would end up in logs; it is not read.
    """
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    if scope["type"] == "websocket":
        offered: list[str] = scope.get("subprotocols", [])
        if len(offered) == 2 and offered[0] == "bearer":
            return unquote(offered[1])
    return ""
