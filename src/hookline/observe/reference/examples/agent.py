"""The agent's run."""

import logging
import re
from datetime import UTC, datetime

from hookline.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    AgentStopEvent,
    AgentStopEventResult,
    BeforeAgentStartEvent,
    BeforeAgentStartEventResult,
    ContextEvent,
    ContextEventResult,
    InputEvent,
    InputEventResult,
    OutputEvent,
    OutputEventResult,
    SavePointEvent,
    SettledEvent,
)
from hookline.hooks import hookimpl
from hookline.types import HookContext

log = logging.getLogger(__name__)
CARD = re.compile(r"\b(?:\d[ -]?){15}\d\b")


class Manners:
    """What goes into the agent and what comes out of it."""

    @hookimpl
    async def input(self, event: InputEvent, ctx: HookContext) -> InputEventResult | None:
        """Answer a ping at once, and write out an abbreviation."""
        if event.text == "ping":
            ctx.notify("pong")
            return InputEventResult("handled")
        return InputEventResult("transform", text=event.text.replace("btw", "by the way"))

    @hookimpl
    def before_agent_start(self, event: BeforeAgentStartEvent) -> BeforeAgentStartEventResult:
        """Tell the agent what day it is."""
        today = datetime.now(UTC).date()
        return BeforeAgentStartEventResult(f"{event.system_prompt}\n\nToday is {today}.")

    @hookimpl(guard=True)
    def context(self, event: ContextEvent) -> ContextEventResult:
        """Keep card numbers from the model. As a guard, it withholds everything if it fails."""
        return ContextEventResult(
            [{**m, "content": CARD.sub("[card]", m["content"])} for m in event.messages]
        )

    @hookimpl
    def agent_stop(self, event: AgentStopEvent) -> AgentStopEventResult | None:
        """Have unfinished work finished."""
        if "TODO" in event.response:
            return AgentStopEventResult(block=True, reason="Finish what is marked TODO.")
        return None

    @hookimpl(guard=True)
    def output(self, event: OutputEvent) -> OutputEventResult | None:
        """Let no card number out."""
        if CARD.search(event.content):
            return OutputEventResult(block=True, reason="the answer contained a card number")
        return None


class Diary:
    """Notes what the agent does."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.at_rest = True

    @hookimpl
    def agent_start(self, event: AgentStartEvent, ctx: HookContext) -> None:
        """Know who is at work."""
        self.running.add(ctx.agent_id)
        self.at_rest = False

    @hookimpl
    async def agent_end(self, event: AgentEndEvent, ctx: HookContext) -> None:
        """Note how long the conversation has become."""
        self.running.discard(ctx.agent_id)
        log.info("%s is done after %d messages", ctx.agent_id, len(event.messages))

    @hookimpl
    def agent_error(self, event: AgentErrorEvent, ctx: HookContext) -> None:
        """Tell the person that something went wrong."""
        self.running.discard(ctx.agent_id)
        ctx.notify(f"That did not work: {event.error}")

    @hookimpl
    def save_point(self, event: SavePointEvent, ctx: HookContext) -> None:
        """From here a backup is whole."""
        log.info("session %s can be backed up", ctx.session_id)

    @hookimpl
    def settled(self, event: SettledEvent) -> None:
        """Now the machine may sleep."""
        self.at_rest = not self.running
