"""The questions that channels show: approvals, and what hooks ask.

`app.approvals` keeps what is asked and granted: a grant outlasts the process, and the first answer, in
this process or another, ends the wait.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hookline.channel import Question
from hookline.errors import ApprovalError
from hookline.policy.approvals import sessions_of
from hookline.runtime.gateway_channel import Pending

from .limits import Limiter
from .users import User

if TYPE_CHECKING:
    from hookline.policy.answers import ApprovalAnswer
    from hookline.runtime.app import Hookline

    from .peers import Peer

log = logging.getLogger("hookline.serve")


class GatewayApprovals:
    """The questions that this gateway shows, by id."""

    def __init__(self, app: Hookline, per_minute: int, audit: Callable[[dict[str, Any]], Any]) -> None:
        self._app = app
        self._audit = audit
        self._limiter = Limiter(per_minute, per_minute)
        self.pending: dict[str, Pending] = {}

    async def ask(self, question: Question, show: Callable[[Pending], Any]) -> str:
        """Show a question and wait for its answer."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        pending = Pending(question.id, dict(question.request or {}), future)
        self.pending[pending.id] = pending
        try:
            show(pending)
            return await future
        finally:
            del self.pending[pending.id]

    async def answer(self, approval_id: str, answer: str, *, by: str) -> bool:
        """Answer a question in someone's name. Returns False if it is no longer open."""
        try:
            await asyncio.to_thread(self._app.approvals.answer, approval_id, answer, by=by)
        except ApprovalError:
            return False
        pending = self.pending.get(approval_id)
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(answer)
        return True

    async def answer_as(
        self,
        user: User,
        approval_id: str,
        answer: str,
        *,
        peer: Peer | None = None,
        shown: str | None = None,
    ) -> str | None:
        """Answer a question for a user at a connection. Returns None, or the reason why it was
        refused.

        `shown` is the hash of the call that the user saw. A rejection needs no hash.
        """
        self._limiter.check(user.name)
        pending = await self._find(user, approval_id)
        if pending is None:
            return GONE
        if not (user.is_operator or user.approves):
            return "an operator answers this; see approves in [gateway.users]"
        if (said := pending.question.choice(answer)) is None:
            return f"{NO_CHOICE} {', '.join(pending.question.choices) or 'a text'}"
        if shown is None and answer != "reject":
            return HASH_NEEDED
        if shown is not None and not hmac.compare_digest(shown.encode(), pending.hash.encode()):
            return "the question is about another call than the one that was shown"
        suspect = await peer.suspect() if peer is not None else None
        if suspect is not None:
            refused = {"what": "approval", "question": approval_id, "user": user.name, **suspect}
            await asyncio.to_thread(self._audit, refused)
            return "a process that the agent started may not answer for a person"
        return None if await self.answer(approval_id, said, by=user.name) else GONE

    async def _find(self, user: User, approval_id: str) -> Pending | None:
        """An open question of a session that the user reaches."""
        found = self.pending.get(approval_id)
        if found is None:
            found = next((each for each in await self._kept() if each.id == approval_id), None)
        return found if found is not None and user.reaches(found.session_id) else None

    async def answered(self, approval_id: str) -> str | None:
        """The answer given here or in another process, or None."""
        try:
            found = await asyncio.to_thread(self._app.approvals.answered, approval_id)
        except ApprovalError:
            return None
        return None if found is None else word_of(found[0])

    async def of(self, session_id: str) -> list[Pending]:
        """The open questions of a session and its subagents, including those of other processes."""
        here = [each for each in self.pending.values() if session_id in sessions_of(each.request)]
        known = {each.id for each in here}
        return [*here, *(each for each in await self._kept(session_id) if each.id not in known)]

    async def _kept(self, session_id: str | None = None) -> list[Pending]:
        """The stored open questions of all processes."""
        try:
            kept = await asyncio.to_thread(self._app.approvals.pending, session_id)
        except ApprovalError:
            return []
        loop = asyncio.get_running_loop()
        return [Pending(question.id, question.request, loop.create_future()) for question in kept]


def refused_by(app: Hookline, record: dict[str, Any]) -> None:
    """Record a refused request in the log, and in the audit log if there is one."""
    log.warning("access.denied %s", " ".join(f"{name}={value}" for name, value in record.items()))
    auditor = app.safeguards.auditor
    if auditor is not None:
        auditor.refused(record)


GONE = "nobody asks this now"
NO_CHOICE = "the answer must be one of:"
HASH_NEEDED = (
    "an approval needs `hash`, which says what call was seen: "
    "it is in the `approval` frame and in GET /api/approvals"
)


def word_of(answer: ApprovalAnswer) -> str:
    """An answer as frames spell it."""
    if answer.text:
        return answer.text
    if not answer.approved:
        return "reject"
    return "session" if answer.scope == "session" else "approve"
