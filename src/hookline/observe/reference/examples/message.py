"""Model turns and their messages."""

import logging

from hookline.events import (
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from hookline.hooks import hookimpl
from hookline.types import HookContext

log = logging.getLogger(__name__)


class Ticker:
    """Shows a conversation as it goes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @hookimpl
    def turn_start(self, event: TurnStartEvent, ctx: HookContext) -> None:
        """Tell the person when it takes long."""
        if event.turn_index == 20:
            ctx.notify("Still at it, after twenty model calls.")

    @hookimpl
    def message_start(self, event: MessageStartEvent) -> None:
        """Start a line; an answer is empty when it starts."""
        self.lines.append(f"{event.message['role']}: {event.message['content']}")

    @hookimpl
    def message_update(self, event: MessageUpdateEvent) -> None:
        """Add the new piece to the line."""
        self.lines[-1] += event.message["content"]

    @hookimpl
    async def message_end(self, event: MessageEndEvent) -> None:
        """Log a message that is whole."""
        log.info("%s said %d characters", event.message["role"], len(event.message["content"]))

    @hookimpl
    def turn_end(self, event: TurnEndEvent) -> None:
        """Name the tools that failed."""
        failed = [result.name for result in event.tool_results if result.is_error]
        if failed:
            log.info("model turn %d: %s failed", event.turn_index, ", ".join(failed))
