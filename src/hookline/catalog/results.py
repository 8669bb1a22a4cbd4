"""What the results of gates have in common: how `block`, `cancel` and `action` become a verdict.

Every other field that is set is a change to the event, which the next handler sees.
"""

from typing import Any, get_args

from hookline.hooks import Decision, Result, Ruling


class Blocking(Result):
    """A result with `block` and `reason`."""

    __slots__ = ()

    block: bool
    reason: str | None

    def verdict(self) -> Ruling:
        """`block` denies."""
        return Ruling(denied_if(self.block), self.reason, self.set_fields("block", "reason"))


class Cancelling(Result):
    """A result with `cancel` and `reason`."""

    __slots__ = ()

    cancel: bool
    reason: str | None

    def verdict(self) -> Ruling:
        """`cancel` denies."""
        return Ruling(denied_if(self.cancel), self.reason, self.set_fields("cancel", "reason"))


def denied_if(deny: bool) -> Decision:
    """The decision of a result that can only deny."""
    return Decision.DENY if deny else Decision.ALLOW


def check_action(result: Result, action: str, actions: Any, *, transform: str, given: object) -> None:
    """Refuse an action that does not exist, and a transform of nothing."""
    name = type(result).__name__
    if action not in get_args(actions):
        known = ", ".join(map(repr, get_args(actions)))
        raise ValueError(f"{name}: unknown action {action!r}; use one of {known}")
    if action == "transform" and given is None:
        raise ValueError(f"{name}: action 'transform' needs {transform}=")
