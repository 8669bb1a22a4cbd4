"""Approvals: the questions that wait for a person, and what was allowed for a whole session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import uuid4

ApprovalAnswer: TypeAlias = Literal["approve", "reject", "session"]
"""`session` approves, and goes on approving the same call in the session."""


@dataclass(slots=True)
class Pending:
    """One open question."""

    id: str
    request: dict[str, Any]
    answer: asyncio.Future[ApprovalAnswer]

    @property
    def session_id(self) -> str:
        """The session that waits; a subagent's is its parent's."""
        return str(self.request["session_id"]).partition("/")[0]


class Approvals:
    """The open questions by id."""

    def __init__(self) -> None:
        self.pending: dict[str, Pending] = {}
        self._allowed: set[str] = set()

    async def ask(self, request: dict[str, Any], show: Callable[[Pending], Any]) -> str:
        """Show a question and wait for its answer: `approve` or `reject`."""
        future: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        pending = Pending(uuid4().hex, request, future)
        self.pending[pending.id] = pending
        try:
            show(pending)
            answer = await future
        finally:
            del self.pending[pending.id]
        if answer == "session":
            self._allowed.add(key_of(request))
        return "reject" if answer == "reject" else "approve"

    def answer(self, approval_id: str, answer: ApprovalAnswer) -> bool:
        """Answer a question; False where it is not open any more."""
        pending = self.pending.get(approval_id)
        if pending is None or pending.answer.done():
            return False
        pending.answer.set_result(answer)
        return True

    def of(self, session_id: str) -> list[Pending]:
        """What a session waits for."""
        return [pending for pending in self.pending.values() if pending.session_id == session_id]

    def remembers(self, request: dict[str, Any]) -> bool:
        """Whether the same call was allowed for the session."""
        return key_of(request) in self._allowed


def key_of(request: dict[str, Any]) -> str:
    """What makes two calls the same."""
    named = [request[name] for name in ("session_id", "tool", "arguments", "question")]
    return json.dumps(named, sort_keys=True, default=repr)
