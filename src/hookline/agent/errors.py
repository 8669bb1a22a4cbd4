"""How a run of the agent can end other than well."""

from __future__ import annotations

from hookline.hooks import HooklineError


class AgentError(HooklineError):
    """The root of the errors of an agent's run."""


class Blocked(AgentError):
    """A gate blocked a model call, its result or the answer."""

    def __init__(self, what: str, reason: str | None, by: str | None) -> None:
        who = f" by {by}" if by else ""
        super().__init__(f"{what} was blocked{who}: {reason or 'no reason given'}")
        self.reason = reason
        self.by = by


class CutOff(AgentError):
    """A model's stream ended before the answer was complete."""


class TooManyCalls(AgentError):
    """A model's answer whose tool calls exceed a limit; the message tells the model what to do."""


class Unjudged(Blocked):
    """A model's stream broke off after a part of it was judged: the rest never will be."""

    def __init__(self) -> None:
        super().__init__("the model's answer", "it ended before all of it could be judged", None)


class BadCompaction(AgentError, ValueError):
    """A compaction that does not fit the context it is for."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the compaction does not fit: {problem}; nothing was changed")


class StepLimit(AgentError):
    """The agent made as many model turns as it may."""


class BudgetSpent(AgentError):
    """The agent used up what it may use."""


class Cancelled(AgentError):
    """A person stopped the turn."""
