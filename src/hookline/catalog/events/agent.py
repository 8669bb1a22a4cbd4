"""The agent's run: from the raw input to the answer, and to rest."""

from dataclasses import field
from typing import Literal, TypeAlias

from hookline.hooks import Event, Result, Ruling, event, gate, notify, patch, record

from ..envelope import Message
from ..parts import Prompt
from ..results import Blocking, check_action, denied_if

InputAction: TypeAlias = Literal["continue", "transform", "handled", "block"]


@record
class InputEventResult(Result):
    """Let the input through, replace its text, take it over, or block it."""

    action: InputAction = "continue"
    text: str | None = None
    reason: str | None = None

    def verdict(self) -> Ruling:
        """`handled` and `block` end the turn; the action is supplied, to tell which it was."""
        check_action(self, self.action, InputAction, transform="text", given=self.text)
        ends = self.action in ("handled", "block")
        omit = ("reason",) if ends else ("reason", "action")
        return Ruling(denied_if(ends), self.reason, self.set_fields(*omit))


@event(gate, family="agent", match="source", fires="once per turn, before the prompt is built")
@record
class InputEvent(Event[InputEventResult]):
    """Input from a person or a trigger, before anything changed it."""

    type: Literal["input"] = field(default="input", init=False)
    text: str = ""
    source: str = ""


@record
class BeforeAgentStartEventResult(Result):
    """Another system prompt, or fewer tools; the last one set is used."""

    system_prompt: str | None = None
    tools: list[str] | None = None
    """The tools that the agent has in this turn; it cannot see or call any other."""


@event(
    patch("system_prompt"), family="agent", fires="once per run, when the system prompt is put together"
)
@record
class BeforeAgentStartEvent(Event[BeforeAgentStartEventResult]):
    """The agent is about to start, with this prompt, system prompt and these tools."""

    type: Literal["before_agent_start"] = field(default="before_agent_start", init=False)
    prompt: Prompt = ""
    system_prompt: str = ""
    tools: list[str] = field(default_factory=list[str])
    """The names of the tools that the agent has."""


@event(notify, family="agent", fires="once per run, when the loop begins")
@record
class AgentStartEvent(Event[None]):
    """The agent's loop begins."""

    type: Literal["agent_start"] = field(default="agent_start", init=False)


@record
class ContextEventResult(Result):
    """Other messages for this model call; the tape keeps its own."""

    messages: list[Message] | None = None


def only_a_note(text: str) -> list[Message]:
    """What the model gets in place of messages that a failed guard should have judged."""
    return [{"role": "user", "content": text}]


@event(patch("messages", withheld=only_a_note), family="agent", fires="before every model call")
@record
class ContextEvent(Event[ContextEventResult]):
    """The messages of one model call are ready."""

    type: Literal["context"] = field(default="context", init=False)
    messages: list[Message] = field(default_factory=list[Message])


@record
class AgentStopEventResult(Blocking):
    """Send the agent back to work, with the reason as its instruction."""

    block: bool = False
    reason: str | None = None


@event(gate, family="agent", fires="when the agent wants to stop, before it does")
@record
class AgentStopEvent(Event[AgentStopEventResult]):
    """The agent considers its work done."""

    type: Literal["agent_stop"] = field(default="agent_stop", init=False)
    messages: list[Message] = field(default_factory=list[Message])
    response: str = ""


@event(notify, family="agent", fires="once per run that succeeded")
@record
class AgentEndEvent(Event[None]):
    """The agent's loop is complete."""

    type: Literal["agent_end"] = field(default="agent_end", init=False)
    messages: list[Message] = field(default_factory=list[Message])


@event(notify, family="agent", fires="once per run that failed, in place of agent_end")
@record
class AgentErrorEvent(Event[None]):
    """The agent's loop ended with an error."""

    type: Literal["agent_error"] = field(default="agent_error", init=False)
    error: Exception | None = None


@record
class OutputEventResult(Blocking):
    """Withhold the answer, or replace it."""

    block: bool = False
    reason: str | None = None
    content: str | None = None


@event(gate, family="agent", fires="once per turn, on the whole answer before it is rendered")
@record
class OutputEvent(Event[OutputEventResult]):
    """The answer is complete and about to go out."""

    type: Literal["output"] = field(default="output", init=False)
    content: str = ""


@event(notify, family="agent", fires="once per turn, when everything of it is written")
@record
class SavePointEvent(Event[None]):
    """The session's writes are durable and the agent is idle."""

    type: Literal["save_point"] = field(default="save_point", init=False)


@event(notify, family="agent", fires="after a turn, when no queued follow-up is left")
@record
class SettledEvent(Event[None]):
    """Nothing is left to do in this session."""

    type: Literal["settled"] = field(default="settled", init=False)
