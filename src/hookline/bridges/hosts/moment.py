"""What a host reports, and what it is told, in words that all hosts share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "session_start", "session_end", "prompt", "tool_call", "permission", "tool_result", "model_request",
    "model_answer", "stop", "subagent_start", "subagent_stop", "compact", "compacted", "notification",
]  # fmt: skip

GATES: frozenset[Kind] = frozenset(
    {"prompt", "tool_call", "permission", "tool_result", "model_request", "model_answer", "compact"}
)
"""Where a failure denies. A failed `stop` lets the agent stop: going on would be the greater risk."""


@dataclass(slots=True)
class Moment:
    """One event of a host."""

    kind: Kind
    event: str
    """Its name in the host's own words."""
    session: str = ""
    text: str = ""
    """The prompt, the answer, the message; for sessions and compactions, why it happens."""
    tool: str = ""
    """The tool under the name that handlers know: `shell`, `read_file`, or the host's own."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    call_id: str = ""
    result: Any = None
    is_error: bool = False
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    model: str = ""
    agent: str = ""
    """The subagent that this is about."""
    again: bool = False
    """Whether the agent goes on already because a hook refused its stop."""
    is_final: bool = False
    """Whether the agent has stopped already, so that no handler can refuse it."""
    is_complete: bool = True
    """Whether an answer of the model is complete; a host may report pieces."""
    given: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The payload as the host sent it."""


@dataclass(slots=True)
class Judgement:
    """What handlers, policy and people say to a moment."""

    denied: bool = False
    asked: bool = False
    """The host must ask the person; only a host that can is ever told so."""
    reason: str = ""
    arguments: dict[str, Any] | None = None
    """The arguments to run the tool with, if they changed, under the names of handlers."""
    text: str | None = None
    """What replaces the prompt, the result or the answer."""
    messages: list[dict[str, Any]] | None = None
    """What replaces the messages of a model request."""
    context: str = ""
    """Text to add for the model."""
    notes: list[str] = field(default_factory=list[str])
    """Lines for the person."""

    @property
    def message(self) -> str:
        """The lines for the person, as one text."""
        return "\n".join(self.notes)


@dataclass(frozen=True, slots=True)
class HookOutput:
    """What the host's hook process prints, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


BLOCKED = 2
"""The exit code with which every host denies, whatever was printed."""
