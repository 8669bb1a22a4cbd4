"""Approving: from a question to a ruling, by what was granted before or by whoever answers now.

The answer comes through `resolve_approval` and nowhere else. A door that knows more than yes or no
(for how long, or why not) writes that down with `Approvals.answer` before it returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

from hookline.hooks import Decision, Ruling

from .answers import Answer
from .approvals import ApprovalError, Approvals, Grant, bound_to

DOOR = "resolve_approval"

Resolve = Callable[[dict[str, Any]], Awaitable[Any]]
"""Puts a request to whoever answers: `approve`, `reject`, or None."""


class Approving:
    """Decides on the questions of one app. What cannot be kept is denied."""

    def __init__(self, approvals: Approvals) -> None:
        self.approvals = approvals

    async def __call__(self, request: dict[str, Any], resolve: Resolve | None) -> Ruling:
        """The ruling on a request; without anybody to ask, what was granted before decides."""
        question = str(request["question"])
        try:
            grant = await asyncio.to_thread(self.approvals.allowed, request)
            if grant is not None:
                return Ruling(reason=f"{question} {told(grant)}", by=f"approval {grant.id}")
            if resolve is None:
                return denied(f"needs approval and nobody answered: {question}")
            return await self._ask(request, question, resolve)
        except ApprovalError as error:
            return denied(f"needs approval, which cannot be given: {error}")

    async def _ask(self, request: dict[str, Any], question: str, resolve: Resolve) -> Ruling:
        approvals = self.approvals
        asked = await asyncio.to_thread(approvals.ask, request)
        shown = {**deepcopy(request), "id": asked, "hash": bound_to(request)}
        said: Any = None
        try:
            said = await self._first(resolve(shown), approvals.wait(asked))
        finally:
            if said is None:  # nobody answered, or nobody waits any more
                with suppress(ApprovalError):  # it is over with its time then, and why it ended is told
                    await asyncio.to_thread(approvals.close_question, asked)
        return await asyncio.to_thread(self._settle, request, question, asked, said)

    async def _first(self, here: Awaitable[Any], elsewhere: Awaitable[Answer | None]) -> Any:
        """What is said by whoever is asked here, or in another process, whichever comes first."""
        door, other = asyncio.ensure_future(here), asyncio.ensure_future(elsewhere)
        try:
            await asyncio.wait(
                {door, other}, timeout=self.approvals.seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if door.done():
                return door.result()
            answer = other.result() if other.done() else None
            return None if answer is None else "approve" if answer.approved else "reject"
        finally:
            door.cancel()
            other.cancel()
            await asyncio.gather(door, other, return_exceptions=True)

    def _settle(self, request: dict[str, Any], question: str, asked: str, said: Any) -> Ruling:
        if said is None:
            return denied(f"needs approval and nobody answered: {question}")
        approved = said == "approve"
        answer, by = self._written(asked) or self._write(asked, Answer(approved))
        if not (approved and answer.approved):
            why = f" (the person says: {answer.reason})" if answer.reason else ""
            who = f" (by {by})" if by not in ("", DOOR, "human") else ""
            return denied(f"was rejected: {question}{why}{who}")
        grant = self.approvals.allowed(request)
        if grant is None:
            return denied(f"was approved, and that is over already: {question}")
        return Ruling(reason=f"{question} {told(grant)}", by=DOOR)

    def _written(self, asked: str) -> tuple[Answer, str] | None:
        """The answer that was written down, and who gave it."""
        return self.approvals.answered(asked)

    def _write(self, asked: str, answer: Answer) -> tuple[Answer, str]:
        """Write an answer down; the one that counts, which may be another's who was faster."""
        try:
            self.approvals.answer(asked, answer, by=DOOR)
        except ApprovalError:
            written = self._written(asked)
            if written is None:
                raise
            return written
        return answer, DOOR


def denied(reason: str) -> Ruling:
    """A no."""
    return Ruling(Decision.DENY, reason, by=DOOR)


def told(grant: Grant) -> str:
    """A grant in a few words."""
    held = {"once": "once", "session": "for the session", "until": "for a time"}[grant.scope]
    by = f" by {grant.by}" if grant.by and grant.by != DOOR else ""
    return f"(allowed {held}{by}, {grant.id})"
