"""Model turns, and the messages they are made of. Only what was released is shown."""

from dataclasses import field
from typing import Any, Literal

from hookline.hooks import Event, event, notify, record

from ..calls import ToolResultContent
from ..envelope import Message


@event(notify, family="message", fires="before each model call and its tools")
@record
class TurnStartEvent(Event[None]):
    """A model turn begins; the first has index 0."""

    type: Literal["turn_start"] = field(default="turn_start", init=False)
    turn_index: int = 0
    timestamp: float = 0.0


@event(notify, family="message", fires="when a user, assistant or tool message begins")
@record
class MessageStartEvent(Event[None]):
    """A message begins."""

    type: Literal["message_start"] = field(default="message_start", init=False)
    message: Message = field(default_factory=dict[str, Any])


@event(notify, family="message", fires="for each piece of a message that streams")
@record
class MessageUpdateEvent(Event[None]):
    """A message grew; its `content` is the new piece."""

    type: Literal["message_update"] = field(default="message_update", init=False)
    message: Message = field(default_factory=dict[str, Any])


@event(notify, family="message", fires="when a user, assistant or tool message is complete")
@record
class MessageEndEvent(Event[None]):
    """A message is complete."""

    type: Literal["message_end"] = field(default="message_end", init=False)
    message: Message = field(default_factory=dict[str, Any])


@event(notify, family="message", fires="after each model call and its tools")
@record
class TurnEndEvent(Event[None]):
    """A model turn is complete."""

    type: Literal["turn_end"] = field(default="turn_end", init=False)
    turn_index: int = 0
    message: Message = field(default_factory=dict[str, Any])
    tool_results: list[ToolResultContent] = field(default_factory=list[ToolResultContent])
