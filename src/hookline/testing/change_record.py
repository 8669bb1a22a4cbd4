"""The record of who changed what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from hookline.hooks import Decision, Dispatch, Verdict
from hookline.hookspecs import CATALOG


@dataclass(frozen=True, slots=True)
class HandlerChange:
    """What one plugin or handler did to one dispatch."""

    hook: str
    by: str
    did: str
    """`rewrote`, `denied` or `asked`."""
    fields: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """The new values, if the hook passes an event."""
    reason: str | None = None

    def __str__(self) -> str:
        details = ", ".join(self.fields) or self.reason or ""
        return f"{self.by} {self.did} {self.hook}" + (f": {details}" if details else "")


class Changes(list[HandlerChange]):
    """Changes in the order in which they happened."""

    def take(self, dispatch: Dispatch) -> None:
        """Record the changes of a dispatch; a sink for `hooks.trace`."""
        value: Any = dispatch.value
        if type(value) is Verdict:
            self.extend(_ruled(dispatch.hook, cast("Verdict[Any]", value)))
            return
        reducer = CATALOG[dispatch.hook].reducer if dispatch.hook in CATALOG else None
        fields = (reducer.carries,) if reducer and reducer.replaces and reducer.carries else ()
        self.extend(
            HandlerChange(dispatch.hook, call.by, "rewrote", fields)
            for call in dispatch.calls
            if call.did == "rewrote"
        )

    def by(self, plugin: str) -> list[HandlerChange]:
        """What one plugin or handler did."""
        return [change for change in self if change.by == plugin]

    def of(self, hook: str) -> list[HandlerChange]:
        """The changes at one hook."""
        return [change for change in self if change.hook == hook]


def _ruled(hook: str, verdict: Verdict[Any]) -> list[HandlerChange]:
    did = {Decision.ALLOW: "rewrote", Decision.ASK: "asked", Decision.DENY: "denied"}
    return [
        HandlerChange(
            hook,
            ruling.by,
            did[ruling.decision],
            tuple(ruling.changes or ()),
            dict(ruling.changes or {}),
            ruling.reason,
        )
        for ruling in verdict.trail
        if ruling.changes or ruling.decision is not Decision.ALLOW
    ]
