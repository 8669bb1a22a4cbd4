"""Answers: what a person says to a question, as every door writes it down.

ApprovalAnswer.read("session")        # yes, as long as the session lasts
ApprovalAnswer.read("10 minutes")     # yes, until then
ApprovalAnswer.read("no, use git mv") # no, and the model is told why
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["once", "session", "until"]
"""How far a yes goes: this one call, the session with its subagents, or that for a time."""

YES = ("y", "yes", "approve", "once", "allow", "ok")
SESSION = ("s", "session", "a", "always")
NO = ("", "n", "no", "reject", "deny")
_TIME = re.compile(r"(\d{1,6})\s*(s|sec|seconds?|m|min|minutes?|h|hours?)?", re.IGNORECASE)
_REASON = re.compile(r"(?:no?|reject|deny)\b[\s,;:.-]*(.*)", re.IGNORECASE | re.DOTALL)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A yes with how far it goes, or a no with its reason."""

    approved: bool
    scope: Scope = "once"
    seconds: float | None = None
    """How long it is valid, if it is limited in time."""
    reason: str = ""
    """The reason that the model gets with a no."""
    text: str = ""
    """The answer to a hook's question."""

    @classmethod
    def read(cls, said: str) -> ApprovalAnswer:
        """Parse an answer. A bare number is minutes; anything that is not a yes is a no, with its
        reason.
        """
        words = said.strip()
        if words.lower() in YES:
            return cls(True)
        if words.lower() in SESSION:
            return cls(True, "session")
        timed = _TIME.fullmatch(words)
        if timed and int(timed[1]) > 0:
            unit = (timed[2] or "m")[0].lower()
            return cls(True, "until", float(int(timed[1]) * _SECONDS[unit]))
        if words.lower() in NO:
            return cls(False)
        given = _REASON.fullmatch(words)
        return cls(False, reason=(given[1] if given else words).strip())

    @property
    def told(self) -> str:
        """The answer in a few words."""
        if self.text:
            return self.text
        if not self.approved:
            return f"no: {self.reason}" if self.reason else "no"
        if self.scope == "until":
            return f"yes, for {self.seconds or 0:g} s"
        return "yes, for the session" if self.scope == "session" else "yes, once"
