"""Subagents."""

import logging

from hookline.events import SubagentEndEvent, SubagentStartEvent
from hookline.hooks import hookimpl
from hookline.types import HookContext

log = logging.getLogger(__name__)


class Foreman:
    """Keeps a list of who works on what."""

    def __init__(self) -> None:
        self.tasks: dict[str, str] = {}

    @hookimpl
    def subagent_start(self, event: SubagentStartEvent, ctx: HookContext) -> None:
        """Put the task on the list."""
        self.tasks[event.task_id] = event.task
        log.info("%s%s: %s", "  " * ctx.depth, event.label, event.task)

    @hookimpl
    def subagent_end(self, event: SubagentEndEvent, ctx: HookContext) -> None:
        """Take it off again, and tell the person of a failure."""
        task = self.tasks.pop(event.task_id, "a task")
        if event.status == "failed":
            ctx.notify(f"{event.label} could not finish: {task}")
