"""Triggers: what starts a turn with no person asking. One that fails never stops another."""

from dataclasses import dataclass, field
from functools import partial
from os import urandom
from time import time
from typing import Any, TypeAlias

from hookline.hooks import CAPTURE, OLDEST, Answer, Family, hookspec, outcomes

Route: TypeAlias = Any
"""A route or router of the web framework; this module needs none."""


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """Something happened, and a turn is to be made of it."""

    trigger: str
    """The name of the trigger; its section `[triggers.<name>]` says what the message is."""
    payload: Any = None
    """What is known of it, as JSON has it; the message template takes its fields from here."""
    id: str = field(default_factory=lambda: urandom(16).hex())
    """The idempotency key: two events of a trigger with one id are one event, and make one turn."""
    time: float = field(default_factory=time)
    """When it happened, in seconds since 1970."""
    message: str | None = None
    """What to say, where no template says it."""
    session: str | None = None
    """The session of the turn. The answer goes to its channel, unless the section names another."""


lifecycle = partial(hookspec, outcomes, order=OLDEST, errors=CAPTURE)


class TriggerHooks(Family, name="trigger"):
    """The life of a trigger, and the routes it wants mounted."""

    @lifecycle(fires="once, when serving starts")
    def trigger_init(self, deps: dict[str, Any]) -> Answer[None]:
        """Set up from what the server hands over."""

    @lifecycle(fires="once, when the server mounts its routes")
    def trigger_routes(self) -> Answer[list[Route]]:
        """Provide routes; a trigger that needs none returns an empty list."""

    @lifecycle(fires="once, when the scheduler starts")
    def trigger_start(self, deps: dict[str, Any]) -> Answer[None]:
        """Begin to emit trigger events."""

    @lifecycle(fires="once, on graceful shutdown")
    def trigger_stop(self, deps: dict[str, Any]) -> Answer[None]:
        """Stop, and drain what is in flight."""
