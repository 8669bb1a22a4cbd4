"""`/v1`: models and chat completions for OpenAI clients."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from hookline.tape.entry import MESSAGE

from ..completions import ChunkOutbox, CompletionRequest, completion
from ..frames import SessionId
from ..outbox import Gathered
from ..security import user_of
from ..sse import EventStream
from . import BUSY, FAILED, MISSING, PROBLEMS
from .body import JsonRoute

if TYPE_CHECKING:
    from ..openai import OpenAIChannel

AGENT = "hookline"
DONE = "data: [DONE]\n\n"
STREAMED = "The completion; with `stream`, its chunks as Server-Sent Events, then `[DONE]`."


class ModelLine(BaseModel):
    """A model name for the agent."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = AGENT


class ModelList(BaseModel):
    """The model names of the agent."""

    object: str = "list"
    data: list[ModelLine]


class ApiError(BaseModel):
    """An error in the format of OpenAI clients."""

    error: dict[str, Any]


def openai_routes(channel: OpenAIChannel) -> APIRouter:
    """The routes under `/v1`."""
    router = APIRouter(tags=["openai"], route_class=JsonRoute)
    gateway, app = channel.gateway, channel.gateway.app

    def names() -> list[str]:
        return [AGENT, app.model]

    @router.get("/v1/models", responses=PROBLEMS)
    async def models() -> ModelList:
        """List the model names. All are the same agent."""
        return ModelList(data=[ModelLine(id=name) for name in names()])

    @router.post(
        "/v1/chat/completions",
        responses={
            **PROBLEMS,
            **{code: {**said, "model": ApiError} for code, said in (MISSING | FAILED).items()},
            **BUSY,
            200: {
                "description": STREAMED,
                "content": {
                    "application/json": {"schema": {"type": "object"}},
                    "text/event-stream": {},
                },
            },
        },
    )
    async def complete(
        body: CompletionRequest,
        request: Request,
        x_hookline_session: Annotated[SessionId | None, Header()] = None,
    ) -> Any:
        """Answer a conversation.

        With the header `X-Hookline-Session`, or `user`, the agent remembers the conversation, and only
        the user's last input counts. Without it, every request is a separate conversation with all its
        messages.
        """
        if body.model not in names():
            return _problem(
                404, f"there is no model {body.model!r} here; use {AGENT!r}", "model_not_found"
            )
        content = body.latest()
        user = user_of(request.scope)
        named = x_hookline_session or (f"openai:{_plain(body.user)}" if body.user else None)
        session = user.session(named or f"openai:{uuid4().hex[:16]}")
        if named is None and (earlier := body.earlier()):
            tape = await app.tape(session)
            await tape.append_many([(MESSAGE, {"message": message}) for message in earlier])
        if body.stream:
            wants_usage = body.stream_options is not None and body.stream_options.include_usage
            outbox = ChunkOutbox(gateway.settings.backlog, body.model, usage=wants_usage)
            outbox.begin()
            await channel.submit(content, session, user, outbox, claimed=body.user)
            return EventStream(outbox, last=DONE)
        gathered = Gathered()
        await channel.submit(content, session, user, gathered, claimed=body.user)
        end = await gathered.done
        if end["type"] == "error":
            return _problem(500, end["message"], None)
        return JSONResponse(completion(body.model, end, gathered.parts))

    return router


def _plain(user: str) -> str:
    """A name as part of a session name. Different names give different parts."""
    if re.fullmatch(r"[\w.@+-]+", user, re.ASCII):
        return user
    return f"#{sha256(user.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _problem(status: int, message: str, code: str | None) -> JSONResponse:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "code": code, "param": None}
    return JSONResponse({"error": error}, status)
