"""Triggers: what starts a turn with no person asking. One that fails never stops another."""

from functools import partial
from typing import Any, TypeAlias

from hookline.hooks import CAPTURE, OLDEST, Answer, Family, hookspec, outcomes

Route: TypeAlias = Any
"""A route or router of the web framework; this module needs none."""

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
