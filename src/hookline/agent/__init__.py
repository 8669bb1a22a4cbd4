"""The agent: the loop of model turns and tool calls, on a tape, through hooks."""

from hookline.errors import AgentError, Blocked, CutOff, LimitReached

__all__ = ["AgentError", "Blocked", "CutOff", "LimitReached"]
