"""Subagents: agents that an agent gives a task to."""

from dataclasses import field
from typing import Any, Literal, TypeAlias

from hookline.hooks import Event, event, notify, record

SubagentStatus: TypeAlias = Literal["completed", "failed", "cancelled"]


@event(notify, family="subagent", match="label", fires="when a subagent takes up its task")
@record
class SubagentStartEvent(Event[None]):
    """A subagent begins."""

    type: Literal["subagent_start"] = field(default="subagent_start", init=False)
    task_id: str = ""
    label: str = ""
    task: str = ""


@event(
    notify, family="subagent", match="label", fires="when a subagent is done, failed or was cancelled"
)
@record
class SubagentEndEvent(Event[None]):
    """A subagent ended."""

    type: Literal["subagent_end"] = field(default="subagent_end", init=False)
    task_id: str = ""
    label: str = ""
    status: SubagentStatus = "completed"
    result: Any = None
