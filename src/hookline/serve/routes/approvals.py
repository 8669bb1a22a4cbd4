"""`/api/approvals`: open questions and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field

from hookline.errors import TooManyRequests

from ..approvals import GONE, HASH_NEEDED, NO_CHOICE
from ..frames import SEEN, question_frame
from ..outbox import shown_in
from ..peers import peer_of
from ..security import user_of
from . import MISSING, PROBLEMS, REFUSED
from .body import JsonRoute

if TYPE_CHECKING:
    from ..approvals import GatewayApprovals
    from ..gateway import Gateway


class WaitingQuestion(BaseModel):
    """An open question: an approval, or what a hook asks."""

    type: Literal["approval", "question"]
    id: str
    session_id: str
    question: str
    choices: list[dict[Literal["answer", "label"], str]]
    """The possible answers, each with its label; none: any text."""
    default: str | None
    """The answer if no one gives one."""
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    """All arguments of the call."""
    diff: str | None = None
    hash: str
    """The hash of the tool and its arguments, or of the question. An answer is bound to it."""


class AnswerIn(BaseModel):
    """A person's answer."""

    model_config = ConfigDict(extra="forbid")

    answer: str = Field(max_length=10_000)
    """One of the choices. `session` approves, and keeps approving the same call in the session."""
    hash: str | None = Field(default=None, max_length=100, description=SEEN)


class Answered(BaseModel):
    """The answer was accepted."""

    id: str
    answer: str


def approval_routes(gateway: Gateway) -> APIRouter:
    """The routes of approvals."""
    router = APIRouter(tags=["approvals"], route_class=JsonRoute)

    @router.get("/api/approvals", responses=PROBLEMS)
    async def approvals(request: Request) -> list[WaitingQuestion]:
        """List the open questions of the user's sessions; an operator sees all."""
        user = user_of(request.scope)
        pending = [e for e in gateway.approvals.pending.values() if user.reaches(e.session_id)]
        return [
            WaitingQuestion.model_validate(shown_in(user.namespace, question_frame(each)))
            for each in pending
        ]

    router.routes += answer_routes(gateway.approvals, "/api/approvals").routes
    return router


def answer_routes(approvals: GatewayApprovals, prefix: str, *, in_schema: bool = True) -> APIRouter:
    """The route that takes an answer; the inspector has it under its own prefix."""
    router = APIRouter(tags=["approvals"], route_class=JsonRoute, include_in_schema=in_schema)

    @router.post(prefix + "/{id}", responses={**PROBLEMS, **MISSING, **REFUSED})
    async def answer(id: str, body: AnswerIn, request: Request) -> Answered:  # noqa: A002
        """Answer a question. Only the first answer counts."""
        user, peer = user_of(request.scope), peer_of(request.scope)
        try:
            why = await approvals.answer_as(user, id, body.answer, peer=peer, shown=body.hash)
        except TooManyRequests as error:
            retry = {"retry-after": str(error.retry_after)}
            raise HTTPException(429, str(error), headers=retry) from None
        if why == GONE:
            raise HTTPException(404, "nothing with this id waits for an answer")
        if why is not None:
            is_malformed = why == HASH_NEEDED or why.startswith(NO_CHOICE)
            raise HTTPException(422 if is_malformed else 403, why)
        return Answered(id=id, answer=body.answer)

    return router
