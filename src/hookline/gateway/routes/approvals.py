"""`/api/approvals`: the questions that wait for a person, and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict

from ..approvals import ApprovalAnswer
from ..frames import approval_frame
from . import MISSING, PROBLEMS

if TYPE_CHECKING:
    from ..gateway import Gateway


class Question(BaseModel):
    """A question that waits."""

    id: str
    session_id: str
    question: str
    tool: str
    arguments: dict[str, Any]
    diff: str | None


class AnswerIn(BaseModel):
    """What a person says to it."""

    model_config = ConfigDict(extra="forbid")

    answer: ApprovalAnswer
    """`session` approves, and goes on approving the same call in the session."""


class Answered(BaseModel):
    """The answer was taken."""

    id: str
    answer: ApprovalAnswer


def approval_routes(gateway: Gateway) -> APIRouter:
    """The routes of approvals."""
    router = APIRouter(tags=["approvals"])

    @router.get("/api/approvals", responses=PROBLEMS)
    async def approvals() -> list[Question]:
        """List what waits for an answer."""
        pending = gateway.approvals.pending.values()
        return [Question.model_validate(approval_frame(each)) for each in pending]

    @router.post("/api/approvals/{id}", responses={**PROBLEMS, **MISSING})
    async def answer(id: str, body: AnswerIn) -> Answered:  # noqa: A002
        """Answer a question; only the first answer counts."""
        if not await gateway.approvals.answer(id, body.answer):
            raise HTTPException(404, "nothing with this id waits for an answer")
        return Answered(id=id, answer=body.answer)

    return router
