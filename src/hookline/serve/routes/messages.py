"""`POST /api/sessions/{session}/messages`: send a message and get the answer, streamed or whole."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Request
from fastapi.responses import JSONResponse

from ..frames import EndFrame, MessageIn, PartOut, SessionId
from ..outbox import EventOutbox, Gathered
from ..security import user_of
from ..sse import EventStream
from . import BUSY, FAILED, PROBLEMS, TAKEN
from .body import JsonRoute

if TYPE_CHECKING:
    from ..web import WebChannel

ONCE = "A message with a key that was accepted before is refused: send again after a lost answer."
STREAMED = "The frames of the answer as Server-Sent Events; the name of each event is its type."


class AnswerBody(EndFrame):
    """The whole answer."""

    parts: list[PartOut]


def message_routes(channel: WebChannel) -> APIRouter:
    """The route of messages."""
    router = APIRouter(tags=["messages"], route_class=JsonRoute)
    gateway = channel.gateway

    @router.post(
        "/api/sessions/{session}/messages",
        response_model=AnswerBody,
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
    async def say(
        session: Annotated[SessionId, Path()],
        message: MessageIn,
        request: Request,
        idempotency_key: Annotated[str, Header(max_length=200, description=ONCE)] = "",
    ) -> Any:
        """Send a message to a session. The first message starts it."""
        content = message.content()
        user = user_of(request.scope)
        # Keys are separate for each user.
        keyed = f"{user.name}:{idempotency_key}"
        once = sha256(keyed.encode()).hexdigest()[:32] if idempotency_key else ""
        name, place = message.id or once or None, user.session(session)
        if "text/event-stream" not in request.headers.get("accept", ""):
            gathered = Gathered(namespace=user.namespace)
            await channel.submit(content, place, user, gathered, sender=once, message_id=name)
            last = await gathered.done
            if last["type"] == "error":
                raise HTTPException(500, last["message"])
            return JSONResponse({**last, "parts": gathered.parts})
        outbox = EventOutbox(gateway.settings.backlog, namespace=user.namespace)
        model = await gateway.app.sessions.find_model(place)
        outbox.put({"type": "session", "session_id": session, "model": model})
        shown = await channel.submit(content, place, user, outbox, sender=once, message_id=name)
        outbox.put({"type": "accepted", "id": shown})
        return EventStream(outbox)

    return router
