"""Approving: get a question answered, by an earlier grant or by a person who answers now.

An approval becomes a ruling; the question of a hook gets the text of its answer. Both are kept while
they wait, so that another process can answer them and a restart does not lose them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

from hookline.channel import ASK, OneWay, Question, SignedAnswer
from hookline.errors import ApprovalError
from hookline.events import NotificationEvent
from hookline.hooks import Decision, Ruling
from hookline.hookspecs import Hooks
from hookline.turn_context import here
from hookline.types import HookContext

from .answers import ApprovalAnswer
from .approvals import Approvals, Grant, bound_to

DOOR = "resolve_approval"

Resolve = Callable[[dict[str, Any]], Awaitable[Any]]
"""Asks `resolve_approval` and the person at the channel; returns None if no one answers."""

log = logging.getLogger("hookline.policy")


class Approving:
    """Gets the questions of one app answered. An approval that cannot be kept is denied."""

    def __init__(self, approvals: Approvals) -> None:
        self.approvals = approvals

    async def __call__(self, request: dict[str, Any], resolve: Resolve | None) -> Ruling:
        """The ruling on a request. If no one can be asked, earlier grants decide."""
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
        asked = await asyncio.to_thread(self.approvals.ask, request)
        said = await self._answer(asked, request, resolve, self.approvals.seconds)
        return await asyncio.to_thread(self._settle, request, question, asked, said)

    async def _answer(
        self, asked: str, request: dict[str, Any], resolve: Resolve, seconds: float
    ) -> str | None:
        """The first answer to a stored question; None if it expired or no one is there."""
        shown = {**deepcopy(request), "id": asked, "hash": bound_to(request)}
        said: str | None = None
        try:
            said = await self._first(resolve(shown), self.approvals.wait(asked), seconds)
        finally:
            if said is None:  # no one answered, or no one waits any more
                with suppress(ApprovalError):  # it expires then, and the reason is reported
                    await asyncio.to_thread(self.approvals.close_question, asked)
        return said

    async def _first(
        self, here: Awaitable[Any], elsewhere: Awaitable[ApprovalAnswer | None], seconds: float
    ) -> Any:
        """The answer given here or in another process, whichever comes first."""
        door, other = asyncio.ensure_future(here), asyncio.ensure_future(elsewhere)
        try:
            await asyncio.wait({door, other}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if door.done():
                return door.result()
            answer = other.result() if other.done() else None
            return None if answer is None else answer.text or ("reject", "approve")[answer.approved]
        finally:
            door.cancel()
            other.cancel()
            await asyncio.gather(door, other, return_exceptions=True)

    async def ask(self, request: dict[str, Any], resolve: Resolve) -> str | None:
        """The answer to a hook's question, even if it was given before a restart; None if there is
        none.
        """
        approvals = self.approvals
        asked = await asyncio.to_thread(approvals.ask, request)
        try:
            kept = await asyncio.to_thread(approvals.answered, asked)
            if kept is not None:
                return kept[0].text
            seconds = request["arguments"]["timeout"] or approvals.seconds
            return await self._answer(asked, request, resolve, seconds)
        except asyncio.CancelledError:
            asked = ""  # the turn stops and may continue after a restart: the answer is for then
            raise
        finally:
            if asked:
                with suppress(ApprovalError):
                    await asyncio.to_thread(approvals.forget, asked)

    def _settle(self, request: dict[str, Any], question: str, asked: str, said: Any) -> Ruling:
        if said is None:
            return denied(f"needs approval and nobody answered: {question}")
        if isinstance(said, SignedAnswer):
            given, by = ApprovalAnswer.read(said), said.by
        else:  # the hook's answer: nothing but these words is a yes
            given, by = ApprovalAnswer(said == "approve"), DOOR
        answer, by = self._written(asked) or self._write(asked, given, by)
        if not (given.approved and answer.approved):
            why = f" (the person says: {answer.reason})" if answer.reason else ""
            who = f" (by {by})" if by not in ("", DOOR, "human") else ""
            return denied(f"was rejected: {question}{why}{who}")
        grant = self.approvals.allowed(request)
        if grant is None:
            return denied(f"was approved, and that is over already: {question}")
        return Ruling(reason=f"{question} {told(grant)}", by=DOOR)

    def _written(self, asked: str) -> tuple[ApprovalAnswer, str] | None:
        """The answer that was written down, and who gave it."""
        return self.approvals.answered(asked)

    def _write(self, asked: str, answer: ApprovalAnswer, by: str) -> tuple[ApprovalAnswer, str]:
        """Write an answer down; the one that counts, which may be another's who was faster."""
        try:
            self.approvals.answer(asked, answer, by=by)
        except ApprovalError:
            written = self._written(asked)
            if written is None:
                raise
            return written
        return answer, by


def denied(reason: str) -> Ruling:
    """A no."""
    return Ruling(Decision.DENY, reason, by=DOOR)


def told(grant: Grant) -> str:
    """A grant in a few words."""
    held = {"once": "once", "session": "for the session", "until": "for a time"}[grant.scope]
    by = f" by {grant.by}" if grant.by and grant.by != DOOR else ""
    return f"(allowed {held}{by}, {grant.id})"


async def ask(approving: Approving, hooks: Hooks, ctx: HookContext, question: Question) -> str | None:
    """Ask the person of a context; the default if no one answers."""
    if not ctx.channel.asks:
        log.info("nobody to ask: %r is answered by its default", question.text)
        return question.default
    notification = hooks["notification"]
    if notification.live:
        told = replace(ctx, channel=OneWay(ctx.channel))
        await notification.fire(NotificationEvent("question", question.text), told)

    async def resolve(request: dict[str, Any]) -> str | None:
        try:
            return await ctx.channel.ask(Question.of(request))
        except Exception as error:
            log.warning("channel.failed question=%r: %r", question.text, error)
            return None

    try:
        answer = await approving.ask(request_of(hooks, ctx, question), resolve)
    except ApprovalError as error:
        log.warning("%r is answered by its default: %s", question.text, error)
        return question.default
    return question.default if answer is None else str(answer)


def request_of(hooks: Hooks, ctx: HookContext, question: Question) -> dict[str, Any]:
    """A hook's question as it is kept, in the form of an approval's request.

    The turn and the call that it is asked in say after a restart whether it is the same question.
    """
    place, who = here(), ctx.identity
    return {
        "kind": ASK,
        "tool": "ask",
        "arguments": {
            "question": question.text,
            "choices": list(question.choices),
            "default": question.default,
            "timeout": question.timeout,
        },
        "question": question.text,
        "call_id": "" if place is None else f"{place.turn_id}/{place.call_id}",
        # While a message is received it has no session yet; web sessions are named as their chat.
        "session_id": ctx.session_id or who.chat,
        "agent_id": ctx.agent_id,
        "channel": who.channel,
        "chat": who.chat,
        "user": who.user,
        "workspace": str(getattr(ctx.app, "workspace", "")),
        "lineage": [str(key) for key in hooks.line_of(ctx.session_id)],
        "diff": None,
    }
