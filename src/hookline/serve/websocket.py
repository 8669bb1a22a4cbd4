"""WebSocket: one connection talks to one session, in both directions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

from fastapi import APIRouter, WebSocket
from pydantic import TypeAdapter, ValidationError

from hookline.errors import TooManyRequests
from hookline.hooks import HooklineError

from .frames import AnswerFrame, CancelFrame, Incoming, MessageFrame, PingFrame, SessionId, incoming
from .limits import TOO_MANY, Limiter
from .message_processor import STORE, told_sender
from .outbox import Outbox
from .peers import peer_of
from .security import user_of

if TYPE_CHECKING:
    from .web import WebChannel

BAD_SESSION, TOO_SLOW, GOING_AWAY = 4400, 4408, 1001
"""Why a connection is closed: an invalid session name, a slow reader, or shutdown."""

_SESSION: TypeAdapter[str] = TypeAdapter(SessionId)


def websocket_routes(channel: WebChannel) -> APIRouter:
    """`/ws`."""
    router = APIRouter()

    @router.websocket("/ws")
    async def talk(socket: WebSocket) -> None:
        offered: list[str] = socket.scope.get("subprotocols", [])
        await socket.accept(subprotocol="bearer" if "bearer" in offered else None)
        session = socket.query_params.get("session") or f"web:{uuid4().hex[:12]}"
        try:
            _SESSION.validate_python(session)
        except ValidationError:
            await socket.close(BAD_SESSION, "no session can have this name")
            return
        with channel.gateway.metrics.connections.track_inprogress():
            await WebSocketConnection(channel, socket, session).run()

    return router


class WebSocketConnection:
    """One open WebSocket."""

    def __init__(self, channel: WebChannel, socket: WebSocket, session: str) -> None:
        self._channel = channel
        self._gateway = channel.gateway
        self._socket = socket
        self._user = user_of(socket.scope)
        self._peer = peer_of(socket.scope)
        self._session = self._user.session(session)
        self._id = uuid4().hex[:12]
        settings = self._gateway.settings
        self._frames = Limiter(settings.frames_per_minute, settings.frames_per_minute)
        self._outbox = Outbox(settings.backlog, self._overflowed, namespace=self._user.namespace)
        self._writer: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Read until the client disconnects, and write what comes for it."""
        app = self._gateway.app
        model = await app.sessions.find_model(self._session)
        self._outbox.put({"type": "session", "session_id": self._session, "model": model})
        self._writer = asyncio.create_task(self._write())
        try:
            await self._channel.watch(self._session, self._outbox)
            await self._read()
        finally:
            self._channel.leave(self._session, self._outbox)
            self._outbox.close()
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)

    async def _read(self) -> None:
        while (message := await self._socket.receive())["type"] != "websocket.disconnect":
            said = message.get("text") or message.get("bytes") or ""
            name: str | None = None
            try:
                self._frames.check("")
            except TooManyRequests as error:
                await self._socket.close(TOO_MANY, str(error))
                return
            try:
                frame = incoming(said)
                name = getattr(frame, "id", None)
                await self._take(frame)
            except HooklineError as error:
                if isinstance(error, STORE):
                    await self._gateway.failed(self._channel.name, error)
                self._outbox.put({"type": "error", "id": name, "message": told_sender(error)})

    async def _take(self, frame: Incoming) -> None:
        match frame:
            case MessageFrame():
                self._gateway.limiter.check(self._user.name)
                shown = await self._channel.submit(
                    frame.content(),
                    self._session,
                    self._user,
                    self._outbox,
                    sender=self._id,
                    message_id=frame.id,
                    closes=False,
                )
                self._outbox.put({"type": "accepted", "id": shown})
            case CancelFrame():
                await self._gateway.cancel(self._session, self._channel.name, self._session)
            case AnswerFrame():
                why = await self._gateway.approvals.answer_as(
                    self._user, frame.id, frame.answer, peer=self._peer, shown=frame.hash
                )
                if why is not None:
                    self._outbox.put({"type": "error", "id": frame.id, "message": why})
            case PingFrame():
                self._outbox.put({"type": "pong"})

    async def _write(self) -> None:
        socket, outbox = self._socket, self._outbox
        try:
            while frames := await outbox.take():
                for frame in frames:
                    await socket.send({"type": "websocket.send", "text": frame})
            if not outbox.overflowed:
                await socket.close(GOING_AWAY, "the gateway is going down")
        except (RuntimeError, OSError):
            pass  # the client is gone; the reader notices too

    def _overflowed(self) -> None:
        if self._writer is not None:
            self._writer.cancel()
            self._writer = asyncio.create_task(self._close_slow())

    async def _close_slow(self) -> None:
        # Waits until the reader reads again; a missing pong ends one that never does.
        try:
            await self._socket.close(TOO_SLOW, "you read too slowly; the answer is on record")
        except (RuntimeError, OSError):
            pass
