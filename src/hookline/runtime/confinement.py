"""Approvals that the sandbox requires for a shell call, in addition to the policy.

A call that leaves the sandbox needs its own approval, and so does every call if there is no sandbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hookline.hooks import Decision, Ruling
from hookline.policy.policy import PERSON

if TYPE_CHECKING:
    from hookline.sandbox import Sandbox

    from .app import Hookline

SHELL = "shell"
BY = "sandbox"
OUTSIDE = "outside_sandbox"
"""The argument by which a call asks to run unconfined."""


class Confinement:
    """Judges the shell calls of one app by whether they are confined."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._found: Sandbox | None = None

    def _probed(self) -> Sandbox:
        sandbox = self._app.sandbox
        _ = sandbox.active
        return sandbox

    async def judge(self, action: dict[str, Any]) -> list[Ruling]:
        """The policy's rulings, and the sandbox's."""
        rulings = await self._app.policy.judge(action)
        if action["tool"] != SHELL or typed_at_terminal(action):
            return rulings
        if self._found is not self._app.__dict__.get("sandbox", self):  # the first probe takes a while
            self._found = await asyncio.to_thread(self._probed)
        sandbox = self._app.sandbox
        active, settings = sandbox.active, sandbox.settings
        kind = "jobs" if action["arguments"].get("background") else "shell"
        confined = active and sandbox.profile_of(kind) != "off"
        if not confined:
            if settings.required and not asks(rulings):
                why = sandbox.reason or f"[sandbox] {kind} = off"
                rulings.append(Ruling(Decision.ASK, f"run it without a sandbox ({why})?", by=BY))
            return rulings
        if action["arguments"].get(OUTSIDE):
            if settings.outside == "deny":
                reason = "[sandbox] outside does not let a command run outside the sandbox"
                rulings.append(Ruling(Decision.DENY, reason, by=BY))
            elif settings.outside == "ask":
                rulings.append(Ruling(Decision.ASK, "run it outside the sandbox?", by=BY))
            return rulings
        if settings.auto_approve:
            return [approved(each) for each in rulings]
        return rulings


def typed_at_terminal(action: dict[str, Any]) -> bool:
    """Whether a person typed the command at the terminal: it runs as they typed it, unconfined."""
    return action["source"] in PERSON and action["channel"] == "terminal"


def asks(rulings: Sequence[Ruling]) -> bool:
    """Whether a person decides already, or nothing is left to decide."""
    return any(each.decision is not Decision.ALLOW for each in rulings)


def approved(ruling: Ruling) -> Ruling:
    """The question of `auto` is answered by the sandbox; every other ruling stays as it is."""
    if ruling.decision is Decision.ASK and ruling.by == "default auto":
        return Ruling(Decision.ALLOW, "it is confined", by=BY)
    return ruling
