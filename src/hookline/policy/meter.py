"""Spending: what a session has used so far, read from its growing tape."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hookline.system.recent import Recent
from hookline.tape.entry import MESSAGE, TOOL_CALL, TURN

METERED: Final = (MESSAGE, TOOL_CALL, TURN)
"""The kinds of entries that count."""

ReadEntries: TypeAlias = Callable[[str, str | None], Awaitable[Sequence[Any]]]
"""Gives a session's entries of these kinds, those after the named one."""


@dataclass(slots=True)
class Spent:
    """The sums of one session, up to an entry of its tape."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    began: float | None = None
    """When the current turn started."""
    last: str | None = None

    def add(self, entry: Any) -> None:
        """Count one entry."""
        self.last = entry.id
        if entry.kind == "tool_call":
            self.calls += 1
        elif entry.kind == "message":
            usage: dict[str, Any] = entry.meta.get("usage") or {}
            counted = (usage.get("input_tokens"), usage.get("output_tokens"))
            self.tokens += sum(int(number or 0) for number in counted)
            self.cost += float(usage.get("cost") or 0)
        elif entry.payload["status"] == "started":
            self.began = entry.time
        elif self.began is not None:
            self.seconds += max(0.0, entry.time - self.began)
            self.began = None

    def amounts(self) -> dict[str, int]:
        """The sums as policies compare them: whole numbers, the cost in millionths."""
        running = max(0.0, time.time() - self.began) if self.began is not None else 0.0
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": round(self.cost * 1_000_000),
            "seconds": int(self.seconds + running),
        }


class Meter:
    """Sums up what each session has spent; entries that were counted lately are not read again."""

    def __init__(self, read: ReadEntries) -> None:
        self._read = read
        self._sessions: Recent[str, Spent] = Recent()

    async def spent(self, session_id: str) -> dict[str, int]:
        """The sums of a session."""
        spent = self._sessions[session_id] = self._sessions.get(session_id) or Spent()
        for entry in await self._read(session_id, spent.last):
            spent.add(entry)
        return spent.amounts()
