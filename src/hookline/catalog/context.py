"""`HookContext`: where an event happens, and the way to the person behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hookline.channel import NOWHERE, Channel, Note, Question

from .identity import NOBODY, Identity


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a handler gets as `ctx`."""

    session_id: str = ""
    agent_id: str = ""
    depth: int = 0
    """0 for the agent a person talks to, 1 for its subagents, and so on."""
    parent_session_id: str | None = None
    app: Any = None
    channel: Channel = NOWHERE
    """The way to the person whom the turn is for."""
    identity: Identity = NOBODY
    """On whose behalf this happens."""

    def notify(self, text: str) -> None:
        """Show the person a note. Returns at once, in any thread, whether or not anyone is there."""
        note = Note(str(text), self.session_id)
        if self.app is None:
            self.channel.notify(note)
        else:
            self.app.notify(self.channel, note)

    async def ask(
        self,
        question: str,
        choices: Sequence[str] = (),
        *,
        default: str | None = None,
        timeout: float | None = None,
    ) -> str | None:
        """Ask the person and wait for the answer: one of the choices, or without choices any text.

        `default` is the answer if no one is there, the time is over or the connection is closed.
        """
        asked = Question(question, tuple(choices), default, timeout, session_id=self.session_id)
        if default is not None and asked.choices and default not in asked.choices:
            raise ValueError(f"the default {default!r} is not among the choices {asked.choices}")
        if self.app is None:
            answer = await self.channel.ask(asked)
            return default if answer is None else answer
        return await self.app.ask(self, asked)
