"""`HookContext`: where an event happens, and the way to the person behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .identity import NOBODY, Identity


class Ask(Protocol):
    """Puts a question to the person; None means that nobody answered."""

    async def __call__(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Wait for the answer."""
        ...


async def nobody_answers(question: str, choices: Sequence[str] = ()) -> str | None:
    """Answer nothing: there is no person here."""
    return None


def nobody_listens(text: str) -> None:
    """Drop a note: there is no person here."""


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a handler gets as `ctx`."""

    session_id: str = ""
    agent_id: str = ""
    depth: int = 0
    """0 for the agent a person talks to, 1 for its subagents, and so on."""
    parent_session_id: str | None = None
    app: Any = None
    ask: Ask = nobody_answers
    notify: Callable[[str], None] = nobody_listens
    identity: Identity = NOBODY
    """On whose behalf this happens."""
