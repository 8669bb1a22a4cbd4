"""Model calls and their results, and the choice of model."""

from dataclasses import field
from typing import Any, Literal

from hookline.hooks import Event, event, gate, notify, record

from ..calls import ToolCall
from ..envelope import Message
from ..results import Blocking


@event(notify, family="model", match="model", fires="when another model is chosen")
@record
class ModelSelectEvent(Event[None]):
    """The session's model was changed."""

    type: Literal["model_select"] = field(default="model_select", init=False)
    model: str = ""
    previous_model: str | None = None
    source: str = ""


@event(notify, family="model", match="level", fires="when another thinking level is chosen")
@record
class ThinkingLevelSelectEvent(Event[None]):
    """The session's thinking level was changed."""

    type: Literal["thinking_level_select"] = field(default="thinking_level_select", init=False)
    level: str = ""
    previous_level: str | None = None


@record
class ModelCallEventResult(Blocking):
    """Keep a request from the provider, or send other messages."""

    block: bool = False
    reason: str | None = None
    messages: list[Message] | None = None


@event(
    gate, family="model", match="model", fires="last before every request to a provider, retries too"
)
@record
class ModelCallEvent(Event[ModelCallEventResult]):
    """A request is about to go to the provider."""

    type: Literal["model_call"] = field(default="model_call", init=False)
    request_id: str = ""
    model: str = ""
    messages: list[Message] = field(default_factory=list[Message])
    tools: list[Any] = field(default_factory=list[Any])


@record
class ModelResultEventResult(Blocking):
    """Withhold a result with its tool calls, or replace either."""

    block: bool = False
    reason: str | None = None
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


@event(
    gate,
    family="model",
    match="model",
    fires="on every result of a provider before it is released, or on its segments while it streams",
    withholds=("content", "tool_calls"),
)
@record
class ModelResultEvent(Event[ModelResultEventResult]):
    """A provider answered; no one has seen the answer yet."""

    type: Literal["model_result"] = field(default="model_result", init=False)
    request_id: str = ""
    model: str = ""
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list[ToolCall])
    finish_reason: str | None = None
    """None where the answer still comes in and this is its beginning."""
    usage: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def partial(self) -> bool:
        """Whether the answer still comes in: it is judged again, with what follows."""
        return self.finish_reason is None
