"""Triggers: what starts a turn with no person asking. One that fails never stops another."""

from typing import Any, TypeAlias

from hookline.hooks import CAPTURE, OLDEST, Answer, Family, hookspec, outcomes

Route: TypeAlias = Any
"""A route or router of the web framework; this module needs none."""


class TriggerHooks(Family, name="trigger"):
    """The life of a trigger, and the routes it wants mounted."""

    @hookspec(outcomes, order=OLDEST, errors=CAPTURE, fires="once, when serving starts")
    def trigger_init(self, deps: dict[str, Any]) -> Answer[None]:
        """Set up from what the server hands over."""

    @hookspec(outcomes, order=OLDEST, errors=CAPTURE, fires="once, when the server mounts its routes")
    def trigger_routes(self) -> Answer[list[Route]]:
        """Provide routes; a trigger that needs none returns an empty list."""

    @hookspec(outcomes, order=OLDEST, errors=CAPTURE, fires="once, when the scheduler starts")
    def trigger_start(self, deps: dict[str, Any]) -> Answer[None]:
        """Begin to emit trigger events."""

    @hookspec(outcomes, order=OLDEST, errors=CAPTURE, fires="once, on graceful shutdown")
    def trigger_stop(self, deps: dict[str, Any]) -> Answer[None]:
        """Stop, and drain what is in flight."""
