"""`/api/sessions`: list, history and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel

from hookline.tape import Entry

from ..frames import SessionId
from ..history import HistoryItem, history_of
from ..security import user_of
from . import MISSING, PROBLEMS

if TYPE_CHECKING:
    from ..web import WebChannel

Limit = Annotated[int, Query(ge=1, le=1000)]


class SessionLine(BaseModel):
    """A session in the list."""

    id: str
    name: str | None
    preview: str
    created: float
    updated: float
    entries: int


class SessionPage(BaseModel):
    """A session with its messages, oldest first."""

    id: str
    model: str
    busy: bool
    waiting: int
    """Messages that wait for their turn."""
    messages: list[HistoryItem]
    """The tape entry at which the session was last idle."""
    live: list[dict[str, Any]]
    """The frames since then: messages and their answers so far."""
    n: int
    """The number of the last frame. Frames up to it that arrive over a WebSocket are duplicates."""


class CancelAnswer(BaseModel):
    """Whether there was a running turn to stop."""

    cancelled: bool


def session_routes(channel: WebChannel) -> APIRouter:
    """The routes of sessions."""
    router = APIRouter(tags=["sessions"])
    gateway, app, live = channel.gateway, channel.gateway.app, channel.live
    assert live is not None

    @router.get("/api/sessions", responses=PROBLEMS)
    async def sessions(request: Request, limit: Limit = 100) -> list[SessionLine]:
        """List the user's sessions, latest first; an operator sees all."""
        user = user_of(request.scope)
        found = [info for info in await app.sessions.list() if user.reaches(info.id)][:limit]
        return [
            SessionLine(
                id=user.shown(info.id),
                name=info.name,
                preview=info.preview,
                created=info.created,
                updated=info.updated,
                entries=info.entries,
            )
            for info in found
        ]

    @router.get("/api/sessions/{session}", responses={**PROBLEMS, **MISSING})
    async def session(
        session: Annotated[SessionId, Path()], request: Request, limit: Limit = 200
    ) -> SessionPage:
        """Return the latest messages of a session."""
        user = user_of(request.scope)
        name = user.session(session)
        happens, entries = live.of(name), list[Entry]()
        while True:
            if happens is None or await app.store().leaf(name) is not None:
                entries = await (await app.sessions.tape(name)).branch()
            if happens is live.of(name):  # nothing started or ended while the tape was read
                break
            happens = live.of(name)
        if happens is not None and happens.base is not None:
            entries = [entry for entry in entries if entry.id <= happens.base]
        queue = app.sessions.queue(name).activity
        return SessionPage(
            id=session,
            model=await app.sessions.find_model(name),
            busy=queue.busy or happens is not None,
            waiting=queue.waiting,
            messages=history_of(entries)[-limit:],
            live=[] if happens is None else happens.frames(user.namespace),
            n=live.number,
        )

    @router.post("/api/sessions/{session}/cancel", responses={**PROBLEMS, **MISSING})
    async def cancel(session: Annotated[SessionId, Path()], request: Request) -> CancelAnswer:
        """Stop a session's running turn, with its tools."""
        name = user_of(request.scope).session(session)
        if app.sessions.run(name) is None:
            await app.sessions.tape(name)  # an unknown one raises
        return CancelAnswer(cancelled=await gateway.cancel(name, channel.name, name))

    return router
