"""The web channel: HTTP, Server-Sent Events, WebSocket and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from .framed import FrameChannel
from .live import LiveSessions

if TYPE_CHECKING:
    from .gateway import Gateway


class WebChannel(FrameChannel):
    """Browsers and programs that use HTTP."""

    name = "web"

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.live = LiveSessions()

    def routes(self) -> APIRouter:
        """Everything under `/api`, and `/ws`."""
        from .routes.approvals import approval_routes
        from .routes.commands import command_routes
        from .routes.messages import message_routes
        from .routes.sessions import session_routes
        from .websocket import websocket_routes

        router = APIRouter()
        for part in (
            message_routes(self),
            session_routes(self),
            approval_routes(self.gateway),
            command_routes(self.gateway),
            websocket_routes(self),
        ):
            router.routes.extend(part.routes)
        return router
