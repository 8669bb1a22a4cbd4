"""`POST /api/sessions/{session}/messages`: say something, and get the answer as it comes or whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request
from fastapi.responses import JSONResponse

from ..frames import EndFrame, MessageIn, PartOut, SessionId
from ..outbox import EventOutbox, Gathered
from ..security import user_of
from ..sse import EventStream
from . import BUSY, FAILED, PROBLEMS, TAKEN

if TYPE_CHECKING:
    from ..web import WebChannel

STREAMED = "The frames of the answer as Server-Sent Events; the name of each event is its type."


class Answer(EndFrame):
    """The whole answer."""

    parts: list[PartOut]


def message_routes(channel: WebChannel) -> APIRouter:
    """The route of messages."""
    router = APIRouter(tags=["messages"])
    gateway = channel.gateway

    @router.post(
        "/api/sessions/{session}/messages",
        response_model=Answer,
        responses={
            **PROBLEMS,
            **TAKEN,
            **FAILED,
            **BUSY,
            200: {
                "description": STREAMED,
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
        },
    )
    async def say(session: Annotated[SessionId, Path()], message: MessageIn, request: Request) -> Any:
        """Say something in a session, which begins with its first message."""
        content = message.content()
        user = user_of(request.scope)
        if "text/event-stream" not in request.headers.get("accept", ""):
            gathered = Gathered()
            await channel.submit(content, session, user, gathered, message_id=message.id)
            last = await gathered.done
            if last["type"] == "error":
                raise HTTPException(500, last["message"])
            return JSONResponse({**last, "parts": gathered.parts})
        outbox = EventOutbox(gateway.settings.backlog)
        model = gateway.app.sessions.model_of(session)
        outbox.put({"type": "session", "session_id": session, "model": model})
        shown = await channel.submit(content, session, user, outbox, message_id=message.id)
        outbox.put({"type": "accepted", "id": shown})
        return EventStream(outbox)

    return router
