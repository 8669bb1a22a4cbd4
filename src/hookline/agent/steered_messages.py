"""Steering: messages that join a turn while it runs."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from dataclasses import dataclass
from typing import Any

from hookline.types import Identity, Prompt


@dataclass(slots=True)
class Steered:
    """A message that wants to join, and whether it could."""

    prompt: Prompt
    envelope: Any
    identity: Identity
    joined: Future[bool]


class Steering:
    """What waits to join one run; the agent takes it before its next model call."""

    def __init__(self) -> None:
        self._waiting: list[Steered] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def join(
        self, prompt: Prompt, envelope: Any = None, identity: Identity | None = None
    ) -> bool:
        """Wait until the message is part of the run; False if the run ended before that.

        The run acts for its sender, too, from then on: `identity`, or else whom the envelope names.
        """
        if self._closed:
            return False
        who = Identity.of(envelope) if identity is None else identity
        steered = Steered(prompt, envelope, who, get_running_loop().create_future())
        self._waiting.append(steered)
        try:
            return await steered.joined
        finally:
            if steered in self._waiting:  # its sender gave up
                self._waiting.remove(steered)

    def take(self) -> list[Steered]:
        """Everything that waits."""
        taken, self._waiting = self._waiting, []
        return [steered for steered in taken if not steered.joined.done()]

    def close(self) -> None:
        """Turn away what still waits: the run is over."""
        self._closed = True
        for steered in self.take():
            steered.joined.set_result(False)
