"""One tool call, from its start to its end."""

from dataclasses import field
from typing import Any, ClassVar, Literal

from hookline.hooks import Decision, Event, Ruling, event, gate, notify, record

from ..calls import ToolCall, ToolResultContent
from ..parts import Content
from ..results import Blocking


@event(notify, family="tool", match="tool_call.name", fires="first of every tool call")
@record
class ToolExecutionStartEvent(Event[None]):
    """A tool call begins; every start has its end."""

    type: Literal["tool_execution_start"] = field(default="tool_execution_start", init=False)
    tool_call: ToolCall = field(default_factory=ToolCall)


@record
class ToolCallEventResult(Blocking):
    """Block a call, rewrite its input, or want approval for it; the model sees the reason."""

    block: bool = False
    reason: str | None = None
    input: dict[str, Any] | None = None
    ask: bool = False

    def verdict(self) -> Ruling:
        """`block` denies, `ask` asks."""
        decision = Decision.DENY if self.block else Decision.ASK if self.ask else Decision.ALLOW
        return Ruling(decision, self.reason, self.set_fields("block", "reason", "ask"))


@event(gate, family="tool", match="tool_name", fires="once per tool call, after before_tool_call")
@record
class ToolCallEvent(Event[ToolCallEventResult]):
    """A tool is about to be called."""

    copied: ClassVar[tuple[str, ...]] = ("input",)
    """The fields of which handlers see a copy of what a result set."""
    type: Literal["tool_call"] = field(default="tool_call", init=False)
    tool_call_id: str = ""
    tool_name: str = ""
    input: dict[str, Any] = field(default_factory=dict[str, Any])


@event(
    notify, family="tool", match="partial_tool_result.name", fires="while a tool streams its progress"
)
@record
class ToolExecutionUpdateEvent(Event[None]):
    """A running tool has something to show."""

    type: Literal["tool_execution_update"] = field(default="tool_execution_update", init=False)
    partial_tool_result: ToolResultContent = field(default_factory=ToolResultContent)


@record
class ToolResultEventResult(Blocking):
    """Patch a result, end the run with it, or withhold it."""

    content: Content | None = None
    is_error: bool | None = None
    terminate: bool | None = None
    block: bool = False
    reason: str | None = None


@event(
    gate, family="tool", match="tool_name", fires="once per tool call, also when the tool did not run"
)
@record
class ToolResultEvent(Event[ToolResultEventResult]):
    """A tool call has its result; the model has not seen it yet."""

    type: Literal["tool_result"] = field(default="tool_result", init=False)
    tool_call_id: str = ""
    tool_name: str = ""
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    content: Content = ""
    is_error: bool = False
    ran: bool = False
    """Whether the tool ran; a denied or invalid call has a result without."""


@event(notify, family="tool", match="tool_name", fires="when a tool raised, before its end")
@record
class ToolExecutionFailureEvent(Event[None]):
    """A tool raised an exception."""

    type: Literal["tool_execution_failure"] = field(default="tool_execution_failure", init=False)
    tool_name: str = ""
    tool_call_id: str = ""
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    error: Exception | None = None


@event(
    notify,
    family="tool",
    match="tool_result.name",
    fires="once per tool call, when its result is final",
)
@record
class ToolExecutionEndEvent(Event[None]):
    """A tool call is over."""

    type: Literal["tool_execution_end"] = field(default="tool_execution_end", init=False)
    tool_result: ToolResultContent = field(default_factory=ToolResultContent)
