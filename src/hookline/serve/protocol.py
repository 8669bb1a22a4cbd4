"""The server's protocols, with limits on what an unauthenticated connection may do.

uvicorn waits indefinitely for the head and body of a request, and accepts a head of any size. These
protocols do not: see `header_seconds`, `body_seconds`, `max_header`, `max_headers` and `connections`
in `[gateway]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hookline.errors import TooManyRequests

from .limits import TOO_MANY, Limiter
from .peers import SCOPE, Peer, Strangers, is_own_user, peer_at
from .settings import GatewaySettings

STEP = 4096
"""Bytes of a WebSocket that are parsed at once."""
PROGRESS = 16_384
"""Bytes of a body that must arrive within `body_seconds`."""
REASONS = {
    408: "the request was not complete in time",
    431: "the head of the request is too large",
    503: "too many connections from this address",
}
PHRASES = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}


async def with_peer(app: ASGIApp, peer: Peer, scope: Scope, receive: Receive, send: Send) -> None:
    """Wraps the app so that the scope has the peer."""
    scope[SCOPE] = peer
    await app(scope, receive, send)


class GuardedProtocol(HttpToolsProtocol):
    """One connection, with limits."""

    settings: ClassVar[GatewaySettings]
    strangers: ClassVar[Strangers]

    peer: Peer
    _head: int = 0
    """Bytes of the head read so far."""
    _body: int = 0
    """Bytes of the body since the last check."""
    _trailer: int = 0
    """Bytes after the body that belong to the request."""
    _in_body: bool = False
    _timer: asyncio.TimerHandle | None = None
    _counted: bool = False

    def connection_made(self, transport: Any) -> None:
        """Count the connection; its first request must come soon."""
        super().connection_made(transport)
        self.peer = peer_at(transport)
        if self.peer.is_unix and not is_own_user(self.peer):
            transport.close()
            return
        self._counted = self.strangers.enter(self.peer)
        if not self._counted:
            self._refuse(503)
            return
        self.peer.known = self._uncount
        self.app: Any = partial(with_peer, self.app, self.peer)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        self._uncount()
        super().connection_lost(exc)

    def _uncount(self) -> None:
        """Stop counting a connection that sent a token or ended."""
        if self._counted:
            self._counted = False
            self.strangers.leave(self.peer)

    def data_received(self, data: bytes) -> None:
        """Read data within the limits."""
        if self.transport.is_closing():
            return
        if not self._in_body:
            if self._timer is None:
                self._expect_head()
            self._head += len(data)
            if self._head > self.settings.max_header and not self._fits(data):
                self._refuse(431)
                return
            super().data_received(data)
            return
        before = self._body
        super().data_received(data)
        # Data that is not body is a trailer, which the parser collects like a head.
        self._trailer = self._trailer + len(data) if self._in_body and self._body == before else 0
        if self._trailer > self.settings.max_header:
            self._refuse(431)

    def _fits(self, data: bytes) -> bool:
        """Whether the head ends in this data before it is too large; the rest is body."""
        before = self._head - len(data)
        end = data.find(b"\r\n\r\n")
        return end >= 0 and before + end <= self.settings.max_header

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the headers."""
        super().on_header(name, value)
        if len(self.headers) > self.settings.max_headers:
            self._refuse(431)

    def on_headers_complete(self) -> None:
        """The head is complete; the body must keep coming."""
        self._head = 0
        self._stop_timer()
        if self.transport.is_closing():
            return
        self._in_body = True
        self._body = 0
        super().on_headers_complete()
        self._timer = self.loop.call_later(self.settings.body_seconds, self._look_at_body)

    def on_body(self, body: bytes) -> None:
        """Count the body."""
        self._body += len(body)
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete; the next one may take its time to start."""
        self._in_body = False
        self._stop_timer()
        if not self.transport.is_closing():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the WebSocket protocol, which keeps counting it."""
        self._stop_timer()
        if not self.transport.is_closing():
            super().handle_websocket_upgrade()
            successor: Any = self.transport.get_protocol()
            if isinstance(successor, GuardedWebSocket):
                successor.ended = self._uncount

    # --- time -----------------------------------------------------------------------------------

    def _expect_head(self) -> None:
        self._timer = self.loop.call_later(self.settings.header_seconds, self._refuse, 408)

    def _look_at_body(self) -> None:
        """End a request whose body is too slow, unless the app is not reading."""
        paused = getattr(self.flow, "read_paused", False)
        if self._body < PROGRESS and not paused:
            self._refuse(408)
            return
        self._body = 0
        self._timer = self.loop.call_later(self.settings.body_seconds, self._look_at_body)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int) -> None:
        """Respond with the reason if nothing was sent yet, and close the connection."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # None before the first request
        if cycle is None or cycle.response_complete or not cycle.response_started:
            text = f'{{"detail":"{REASONS[status]}"}}'
            self.transport.write(
                f"HTTP/1.1 {status} {PHRASES[status]}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(text)}\r\nconnection: close\r\n\r\n{text}".encode()
            )
        self.transport.close()


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket, with a limit on its frames: messages, fragments, pings and pongs."""

    frames_per_minute: ClassVar[int]

    ended: Callable[[], None] | None = None
    """Called when the connection is lost."""

    def connection_made(self, transport: Any) -> None:
        """Tell the app who is connecting."""
        super().connection_made(transport)
        self._frames = Limiter(self.frames_per_minute, self.frames_per_minute)
        before: Any = transport.get_protocol()
        if isinstance(before, GuardedProtocol):
            self.app: Any = partial(with_peer, self.app, before.peer)

    def data_received(self, data: bytes) -> None:
        """Parse in steps: a frame can be as short as 6 bytes, and each takes time."""
        for start in range(0, len(data), STEP):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + STEP])

    def handle_events(self) -> None:
        """Process the frames, or close the connection if there are too many."""
        try:
            for _ in self.conn.events:
                self._frames.check("")
        except TooManyRequests as error:
            self.conn.fail(TOO_MANY, str(error))
            self.handle_parser_exception()
        else:
            super().handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self.ended is not None:
            self.ended()
        super().connection_lost(exc)


def protocols(settings: GatewaySettings) -> tuple[type[GuardedProtocol], type[GuardedWebSocket]]:
    """The protocols of one server, with its limits."""
    given = {"settings": settings, "strangers": Strangers(settings.connections)}
    limits = {"frames_per_minute": settings.frames_per_minute}
    return (
        type("ServerProtocol", (GuardedProtocol,), given),
        type("ServerWebSocket", (GuardedWebSocket,), limits),
    )
