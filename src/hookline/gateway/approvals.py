"""Approvals: the questions that channels show, on top of those that the app keeps.

What is asked and granted is kept by `app.approvals`: a grant outlasts the process, and whoever answers
first, in this process or another, ends the wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hookline.policy.approvals import ApprovalError, sessions_of

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.policy.answers import Answer

ApprovalAnswer: TypeAlias = Literal["approve", "reject", "session"]
"""`session` approves, and goes on approving the same call in the session."""
BY = "gateway"


@dataclass(slots=True)
class Pending:
    """One open question."""

    id: str
    request: dict[str, Any]
    answer: asyncio.Future[ApprovalAnswer]

    @property
    def session_id(self) -> str:
        """The session that a person talks to; a subagent asks for it."""
        return sessions_of(self.request)[-1]


class Approvals:
    """The questions that this gateway shows, by id."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self.pending: dict[str, Pending] = {}

    async def ask(self, request: dict[str, Any], show: Callable[[Pending], Any]) -> str:
        """Show a question and wait for its answer: `approve` or `reject`."""
        future: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        pending = Pending(request["id"], request, future)
        self.pending[pending.id] = pending
        try:
            show(pending)
            answer = await future
        finally:
            del self.pending[pending.id]
        return "reject" if answer == "reject" else "approve"

    async def answer(self, approval_id: str, answer: ApprovalAnswer) -> bool:
        """Answer a question; False where it is not open any more."""
        try:
            await asyncio.to_thread(self._app.approvals.answer, approval_id, answer, by=BY)
        except ApprovalError:
            return False
        pending = self.pending.get(approval_id)
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(answer)
        return True

    async def answered(self, approval_id: str) -> ApprovalAnswer | None:
        """What was answered, here or elsewhere; None where nobody did."""
        try:
            found = await asyncio.to_thread(self._app.approvals.answered, approval_id)
        except ApprovalError:
            return None
        return None if found is None else word_of(found[0])

    async def of(self, session_id: str) -> list[Pending]:
        """What a session waits for, with its subagents; also where another process asks."""
        here = [each for each in self.pending.values() if session_id in sessions_of(each.request)]
        known = {each.id for each in here}
        try:
            kept = await asyncio.to_thread(self._app.approvals.pending, session_id)
        except ApprovalError:
            return here
        loop = asyncio.get_running_loop()
        others = [Pending(q.id, q.request, loop.create_future()) for q in kept if q.id not in known]
        return [*here, *others]


def word_of(answer: Answer) -> ApprovalAnswer:
    """An answer in the words of frames."""
    if not answer.approved:
        return "reject"
    return "session" if answer.scope == "session" else "approve"
