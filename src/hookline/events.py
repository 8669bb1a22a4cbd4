"""Every event, in the order in which a turn meets them, and what a handler may return for it.

An event is declared here and nowhere else: the catalogue, the reference, the command line and the types
of handlers are derived from its class. Its example is in `observe/reference/examples/`.
"""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Union

from .hooks import (
    Collected,
    Decision,
    Event,
    EventResult,
    Ruling,
    collect,
    event,
    gate,
    notify,
    patch,
    record,
)
from .hooks.spec import specs_in
from .types import AudioPart as AudioPart
from .types import (
    Blocking,
    Cancelling,
    Content,
    Message,
    Prompt,
    check_action,
    denied_if,
    text_of,
)
from .types import FilePart as FilePart
from .types import HookContext as HookContext
from .types import ImagePart as ImagePart
from .types import Part as Part
from .types import TextPart as TextPart
from .types import ToolCall as ToolCall
from .types import ToolResultContent as ToolResultContent

ReceiveAction: TypeAlias = Literal["continue", "transform", "reject"]


@event(notify, family="gateway", fires="once, when all enabled channels are started")
@record
class GatewayStartupEvent(Event[None]):
    """The gateway is up."""

    type: Literal["gateway:startup"] = field(default="gateway:startup", init=False)
    channel_ids: list[str] = field(default_factory=list[str])


@event(notify, family="gateway", match="channel_id", fires="when a channel joins the gateway")
@record
class ChannelConnectEvent(Event[None]):
    """A channel was registered."""

    type: Literal["channel:connect"] = field(default="channel:connect", init=False)
    channel_id: str = ""


@record
class MessageReceiveResult(EventResult):
    """Let a message through, replace its parts, or reject it; a reason goes back to the sender."""

    action: ReceiveAction = "continue"
    parts: list[Part] | None = None
    reason: str | None = None

    def verdict(self) -> Ruling:
        """`reject` denies; new parts bring their text with them."""
        check_action(self, self.action, ReceiveAction, transform="parts", given=self.parts)
        changes = {} if self.parts is None else {"parts": self.parts, "text": text_of(self.parts)}
        return Ruling(denied_if(self.action == "reject"), self.reason, changes)


@event(
    gate, family="gateway", match="channel_id", fires="once per message, before its session is known"
)
@record
class MessageReceiveEvent(Event[MessageReceiveResult]):
    """A message arrived from a channel."""

    type: Literal["message:receive"] = field(default="message:receive", init=False)
    channel_id: str = ""
    chat_id: str = ""
    user_id: str = ""
    text: str = ""
    parts: list[Part] = field(default_factory=list[Part])

    def deny(self, reason: str | None = None) -> MessageReceiveResult:
        """Reject the message; the reason goes back to the sender."""
        return MessageReceiveResult(action="reject", reason=reason)

    def replace(self, parts: list[Part]) -> MessageReceiveResult:
        """Put other parts in place of the message's."""
        return MessageReceiveResult(action="transform", parts=parts)


@record
class MessageSendResult(Collected):
    """Further parts for the channel."""

    parts: list[Part] | None = None


@event(collect, family="gateway", match="channel_id", fires="once per answer, before its end is marked")
@record
class MessageSendEvent(Event[MessageSendResult]):
    """An answer went out; parts can still be added to it."""

    type: Literal["message:send"] = field(default="message:send", init=False)
    channel_id: str = ""
    chat_id: str = ""
    input_text: str = ""
    response_text: str = ""
    is_voice: bool = False
    """Whether the message had audio when it arrived, before anything transformed it."""

    def add(self, parts: list[Part]) -> MessageSendResult:
        """Add parts to the answer."""
        return MessageSendResult(parts)


@event(notify, family="gateway", match="channel_id", fires="when a running turn is cancelled")
@record
class MessageCancelEvent(Event[None]):
    """A turn in progress was stopped from its channel."""

    type: Literal["message:cancel"] = field(default="message:cancel", init=False)
    channel_id: str = ""
    chat_id: str = ""


@event(
    notify,
    family="gateway",
    match="channel_id",
    fires="when a channel's message could not be processed",
)
@record
class GatewayErrorEvent(Event[None]):
    """Processing a channel's message failed."""

    type: Literal["gateway:error"] = field(default="gateway:error", init=False)
    channel_id: str = ""
    error: Exception | None = None


@event(notify, family="gateway", match="channel_id", fires="when a channel leaves the gateway")
@record
class ChannelDisconnectEvent(Event[None]):
    """A channel was unregistered."""

    type: Literal["channel:disconnect"] = field(default="channel:disconnect", init=False)
    channel_id: str = ""


@event(notify, family="gateway", fires="once, before the channels are stopped")
@record
class GatewayStopEvent(Event[None]):
    """The gateway is about to go down."""

    type: Literal["gateway:stop"] = field(default="gateway:stop", init=False)
    channel_ids: list[str] = field(default_factory=list[str])


SessionReason: TypeAlias = Literal["startup", "reload", "new", "resume", "fork"]
ShutdownReason: TypeAlias = SessionReason | Literal["completed", "error", "cancelled"]


@record
class SessionBeforeStartResult(Blocking):
    """Keep a session from opening."""

    block: bool = False
    reason: str | None = None


@event(
    gate,
    family="session",
    match="reason",
    fires="when this process first opens a session, before it does",
)
@record
class SessionBeforeStartEvent(Event[SessionBeforeStartResult]):
    """A session is about to open; when blocked, only its shutdown still fires."""

    type: Literal["session_before_start"] = field(default="session_before_start", init=False)
    session_id: str = ""
    agent_id: str = ""
    tools: list[Any] = field(default_factory=list[Any])
    reason: SessionReason = "startup"

    def deny(self, reason: str | None = None) -> SessionBeforeStartResult:
        """Keep the session from opening."""
        return SessionBeforeStartResult(block=True, reason=reason)


@record
class SessionStartResult(Collected):
    """Text for the first prompt of the session."""

    additional_context: str | None = None


@event(collect, family="session", match="reason", fires="when this process first opened a session")
@record
class SessionStartEvent(Event[SessionStartResult]):
    """A session was opened."""

    type: Literal["session_start"] = field(default="session_start", init=False)
    reason: SessionReason = "startup"
    previous_session_file: str | None = None

    def add(self, context: str) -> SessionStartResult:
        """Add text to the first prompt of the session."""
        return SessionStartResult(context)


@record
class SessionBeforeSwitchResult(Cancelling):
    """Stay in the present session."""

    cancel: bool = False
    reason: str | None = None
    """Why it is cancelled; the user sees it."""


@event(
    gate, family="session", match="reason", fires="before another session takes the place of this one"
)
@record
class SessionBeforeSwitchEvent(Event[SessionBeforeSwitchResult]):
    """Another session is about to be opened instead."""

    type: Literal["session_before_switch"] = field(default="session_before_switch", init=False)
    reason: SessionReason = "resume"
    target_session_file: str | None = None

    def deny(self, reason: str | None = None) -> SessionBeforeSwitchResult:
        """Stay in the present session."""
        return SessionBeforeSwitchResult(cancel=True, reason=reason)


@record
class SessionBeforeForkResult(Cancelling):
    """Do not fork."""

    cancel: bool = False
    reason: str | None = None
    """Why it is cancelled; the user sees it."""


@event(gate, family="session", fires="before a session is forked from an entry")
@record
class SessionBeforeForkEvent(Event[SessionBeforeForkResult]):
    """A new session is about to branch off at an entry."""

    type: Literal["session_before_fork"] = field(default="session_before_fork", init=False)
    entry_id: str = ""
    position: Literal["before", "at"] = "at"
    """Whether the entry itself still belongs to the fork."""

    def deny(self, reason: str | None = None) -> SessionBeforeForkResult:
        """Do not fork."""
        return SessionBeforeForkResult(cancel=True, reason=reason)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction: a summary in place of everything before the first kept entry."""

    summary: str = ""
    first_kept_entry_id: str | None = None
    tokens_before: int = 0
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@record
class SessionBeforeCompactResult(Cancelling):
    """Skip a compaction, or supply its result so that no model is called."""

    cancel: bool = False
    compaction: CompactionResult | None = None
    reason: str | None = None
    """Why it is cancelled; the user sees it."""


@event(gate, family="session", fires="before a branch is compacted")
@record
class SessionBeforeCompactEvent(Event[SessionBeforeCompactResult]):
    """A branch is about to be summarised."""

    type: Literal["session_before_compact"] = field(default="session_before_compact", init=False)
    preparation: Any = None
    branch_entries: list[Any] = field(default_factory=list[Any])
    custom_instructions: str | None = None

    def deny(self, reason: str | None = None) -> SessionBeforeCompactResult:
        """Skip the compaction."""
        return SessionBeforeCompactResult(cancel=True, reason=reason)

    def replace(self, compaction: CompactionResult) -> SessionBeforeCompactResult:
        """Supply the result, so that no model is called."""
        return SessionBeforeCompactResult(compaction=compaction)


@event(notify, family="session", fires="when the compaction's entry is on the tape")
@record
class SessionCompactEvent(Event[None]):
    """A branch was summarised."""

    type: Literal["session_compact"] = field(default="session_compact", init=False)
    compaction_entry: Any = None
    from_extension: bool = False
    """Whether a handler supplied the result."""


@record
class SessionBeforeTreeResult(Cancelling):
    """Stay where the leaf is, or override what navigation leaves behind."""

    cancel: bool = False
    summary: str | None = None
    custom_instructions: str | None = None
    label: str | None = None
    reason: str | None = None
    """Why it is cancelled; the user sees it."""


@event(gate, family="session", fires="before the leaf moves to another branch")
@record
class SessionBeforeTreeEvent(Event[SessionBeforeTreeResult]):
    """The conversation is about to continue from another entry."""

    type: Literal["session_before_tree"] = field(default="session_before_tree", init=False)
    preparation: Any = None

    def deny(self, reason: str | None = None) -> SessionBeforeTreeResult:
        """Stay where the leaf is."""
        return SessionBeforeTreeResult(cancel=True, reason=reason)

    def replace(
        self,
        *,
        summary: str | None = None,
        custom_instructions: str | None = None,
        label: str | None = None,
    ) -> SessionBeforeTreeResult:
        """Supply the summary of the branch, instructions for it, or a label."""
        return SessionBeforeTreeResult(
            summary=summary, custom_instructions=custom_instructions, label=label
        )


@event(notify, family="session", fires="when the leaf has moved")
@record
class SessionTreeEvent(Event[None]):
    """The conversation continues from another entry."""

    type: Literal["session_tree"] = field(default="session_tree", init=False)
    new_leaf_id: str | None = None
    old_leaf_id: str | None = None
    summary_entry: Any = None


@event(
    notify, family="session", match="reason", fires="last of a session, also when its end is abnormal"
)
@record
class SessionShutdownEvent(Event[None]):
    """A session is about to close."""

    type: Literal["session_shutdown"] = field(default="session_shutdown", init=False)
    reason: ShutdownReason = "completed"
    target_session_file: str | None = None


InputAction: TypeAlias = Literal["continue", "transform", "handled", "block"]


@record
class InputEventResult(EventResult):
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

    def deny(self, reason: str | None = None) -> InputEventResult:
        """Block the input: no turn follows."""
        return InputEventResult(action="block", reason=reason)

    def replace(self, text: str) -> InputEventResult:
        """Continue with another text."""
        return InputEventResult(action="transform", text=text)

    def handled(self, text: str | None = None) -> InputEventResult:
        """Answer the input with this text, without a model call."""
        return InputEventResult(action="handled", reason=text)


@record
class BeforeAgentStartEventResult(EventResult):
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

    def replace(
        self, *, system_prompt: str | None = None, tools: list[str] | None = None
    ) -> BeforeAgentStartEventResult:
        """Use another system prompt, or only these tools."""
        return BeforeAgentStartEventResult(system_prompt, tools)


@event(notify, family="agent", fires="once per run, when the loop begins")
@record
class AgentStartEvent(Event[None]):
    """The agent's loop begins."""

    type: Literal["agent_start"] = field(default="agent_start", init=False)


@record
class ContextEventResult(EventResult):
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

    def replace(self, messages: list[Message]) -> ContextEventResult:
        """Send other messages in this model call."""
        return ContextEventResult(messages)


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

    def deny(self, reason: str | None = None) -> AgentStopEventResult:
        """Send the agent back to work, with the reason as its instruction."""
        return AgentStopEventResult(block=True, reason=reason)


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

    def deny(self, reason: str | None = None) -> OutputEventResult:
        """Withhold the answer."""
        return OutputEventResult(block=True, reason=reason)

    def replace(self, content: str) -> OutputEventResult:
        """Send another answer."""
        return OutputEventResult(content=content)


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

    def deny(self, reason: str | None = None) -> ModelCallEventResult:
        """Keep the request from the provider."""
        return ModelCallEventResult(block=True, reason=reason)

    def replace(self, messages: list[Message]) -> ModelCallEventResult:
        """Send other messages."""
        return ModelCallEventResult(messages=messages)


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

    def deny(self, reason: str | None = None) -> ModelResultEventResult:
        """Withhold the result with its tool calls."""
        return ModelResultEventResult(block=True, reason=reason)

    def replace(
        self, *, content: str | None = None, tool_calls: list[ToolCall] | None = None
    ) -> ModelResultEventResult:
        """Release another text, or other tool calls."""
        return ModelResultEventResult(content=content, tool_calls=tool_calls)


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
    """Fields of which handlers see a copy of what a result set."""
    type: Literal["tool_call"] = field(default="tool_call", init=False)
    tool_call_id: str = ""
    tool_name: str = ""
    input: dict[str, Any] = field(default_factory=dict[str, Any])

    def deny(self, reason: str | None = None) -> ToolCallEventResult:
        """Block the call; the model sees the reason."""
        return ToolCallEventResult(block=True, reason=reason)

    def ask(self, question: str | None = None) -> ToolCallEventResult:
        """Run the call only if a person approves it."""
        return ToolCallEventResult(ask=True, reason=question)

    def replace(self, input: dict[str, Any]) -> ToolCallEventResult:  # noqa: A002
        """Call the tool with other arguments."""
        return ToolCallEventResult(input=input)


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

    def deny(self, reason: str | None = None) -> ToolResultEventResult:
        """Withhold the result; the model sees the reason."""
        return ToolResultEventResult(block=True, reason=reason)

    def replace(
        self,
        *,
        content: Content | None = None,
        is_error: bool | None = None,
        terminate: bool | None = None,
    ) -> ToolResultEventResult:
        """Give the model another result; `terminate` ends the run with it."""
        return ToolResultEventResult(content, is_error, terminate)


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


@record
class ResourcesDiscoverResult(Collected):
    """Further places to look for skills and hook files."""

    skill_paths: list[str] | None = None
    hook_paths: list[str] | None = None


@event(
    collect, family="misc", match="reason", fires="when skills and hook files are about to be loaded"
)
@record
class ResourcesDiscoverEvent(Event[ResourcesDiscoverResult]):
    """Resources are about to be looked for."""

    type: Literal["resources_discover"] = field(default="resources_discover", init=False)
    cwd: str = ""
    reason: Literal["startup", "reload"] = "startup"

    def add(
        self, *, skill_paths: list[str] | None = None, hook_paths: list[str] | None = None
    ) -> ResourcesDiscoverResult:
        """Look in these places too."""
        return ResourcesDiscoverResult(skill_paths, hook_paths)


@event(notify, family="misc", match="kind", fires="when the agent waits for a person")
@record
class NotificationEvent(Event[None]):
    """A person should look here."""

    type: Literal["notification"] = field(default="notification", init=False)
    kind: str = ""
    text: str = ""


@record
class UserBashResult(Blocking):
    """Keep a person's command from running, run another one, or take it over."""

    block: bool = False
    reason: str | None = None
    command: str | None = None
    """Runs in its place."""
    output: str | None = None
    """The output of the command, which the handler ran itself; nothing else runs."""
    is_error: bool | None = None
    """Whether that is the output of a failure."""


@event(gate, family="misc", match="command", fires="when a person runs a shell command of their own")
@record
class UserBashEvent(Event[UserBashResult]):
    """A person wants to run a shell command."""

    type: Literal["user_bash"] = field(default="user_bash", init=False)
    command: str = ""
    exclude_from_context: bool = False
    """Whether the model is kept from seeing it."""
    cwd: str = ""

    def deny(self, reason: str | None = None) -> UserBashResult:
        """Keep the command from running."""
        return UserBashResult(block=True, reason=reason)

    def replace(self, command: str) -> UserBashResult:
        """Run another command."""
        return UserBashResult(command=command)

    def handled(self, output: str, *, is_error: bool = False) -> UserBashResult:
        """Give the output of the command; nothing else runs."""
        return UserBashResult(output=output, is_error=is_error)


@event(notify, family="misc", fires="before the wait that comes before a retry")
@record
class RetryStartEvent(Event[None]):
    """A model call failed and will be tried again."""

    type: Literal["retry_start"] = field(default="retry_start", init=False)
    attempt: int = 0
    max_retries: int = 0


@event(notify, family="misc", fires="after each further attempt")
@record
class RetryEndEvent(Event[None]):
    """A further attempt is over."""

    type: Literal["retry_end"] = field(default="retry_end", init=False)
    attempt: int = 0
    success: bool = False
    error: Exception | None = None


@record
class NetworkRequestResult(Blocking):
    """Refuse a connection, or want approval for it; the reason goes back to the program."""

    block: bool = False
    reason: str | None = None
    ask: bool = False

    def verdict(self) -> Ruling:
        """`block` denies, `ask` asks."""
        decision = Decision.DENY if self.block else Decision.ASK if self.ask else Decision.ALLOW
        return Ruling(decision, self.reason, self.set_fields("block", "reason", "ask"))


@event(gate, family="misc", match="host", fires="once per connection that a confined child opens")
@record
class NetworkRequestEvent(Event[NetworkRequestResult]):
    """A child in the sandbox wants to reach a host."""

    type: Literal["network_request"] = field(default="network_request", init=False)
    host: str = ""
    port: int = 0
    scheme: str = ""
    """`https` for a tunnel, whatever is spoken in it; `http` for a plain request."""
    kind: str = ""
    """What started the child: shell, jobs, command_hooks, mcp, search, git."""
    command: str = ""
    tool_call_id: str = ""

    def deny(self, reason: str | None = None) -> NetworkRequestResult:
        """Refuse the connection."""
        return NetworkRequestResult(block=True, reason=reason)

    def ask(self, question: str | None = None) -> NetworkRequestResult:
        """Connect only if a person approves it."""
        return NetworkRequestResult(ask=True, reason=question)


if TYPE_CHECKING:
    HookEvent: TypeAlias = Event[Any]
else:
    HookEvent = Union[tuple(spec.event for spec in specs_in(sys.modules[__name__]))]  # noqa: UP007
"""Any event of this module."""
