"""Typed bases for plugins that handle events, one for each family.

A plugin that inherits one and gets a signature wrong hears of it from its type checker. The methods
do nothing and are no implementations: one that is overridden is marked with `@hookimpl` like any
other, and where the event has a colon in its name, with `specname`:

    class Doorkeeper(GatewayEvents):
        @hookimpl(specname="message:receive")
        def message_receive(self, event: MessageReceiveEvent, ctx: HookContext) -> ...:

The family classes of the function-shaped hooks, such as `TurnHooks`, serve in the same way.
"""

# ruff: noqa: D102  (each method has the sentence of its event)

from collections.abc import Callable
from typing import Any, TypeVar

from .events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    AgentStopEvent,
    AgentStopEventResult,
    BeforeAgentStartEvent,
    BeforeAgentStartEventResult,
    ChannelConnectEvent,
    ChannelDisconnectEvent,
    ContextEvent,
    ContextEventResult,
    GatewayErrorEvent,
    GatewayStartupEvent,
    GatewayStopEvent,
    InputEvent,
    InputEventResult,
    MessageCancelEvent,
    MessageEndEvent,
    MessageReceiveEvent,
    MessageReceiveResult,
    MessageSendEvent,
    MessageSendResult,
    MessageStartEvent,
    MessageUpdateEvent,
    ModelCallEvent,
    ModelCallEventResult,
    ModelResultEvent,
    ModelResultEventResult,
    ModelSelectEvent,
    NetworkRequestEvent,
    NetworkRequestResult,
    NotificationEvent,
    OutputEvent,
    OutputEventResult,
    ResourcesDiscoverEvent,
    ResourcesDiscoverResult,
    RetryEndEvent,
    RetryStartEvent,
    SavePointEvent,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SessionBeforeForkEvent,
    SessionBeforeForkResult,
    SessionBeforeStartEvent,
    SessionBeforeStartResult,
    SessionBeforeSwitchEvent,
    SessionBeforeSwitchResult,
    SessionBeforeTreeEvent,
    SessionBeforeTreeResult,
    SessionCompactEvent,
    SessionShutdownEvent,
    SessionStartEvent,
    SessionStartResult,
    SessionTreeEvent,
    SettledEvent,
    SubagentEndEvent,
    SubagentStartEvent,
    ThinkingLevelSelectEvent,
    ToolCallEvent,
    ToolCallEventResult,
    ToolExecutionEndEvent,
    ToolExecutionFailureEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResultEvent,
    ToolResultEventResult,
    TurnEndEvent,
    TurnStartEvent,
    UserBashEvent,
    UserBashResult,
)
from .hooks import Answer, Event
from .hooks.spec import SPEC
from .types import HookContext

F = TypeVar("F", bound=Callable[..., Any])


def handles(event: type[Event[Any]]) -> Callable[[F], F]:
    """Tie a base's method to its event, so that the kernel does not take it for an implementation."""

    def tie(method: F) -> F:
        spec = getattr(event, SPEC)
        setattr(method, SPEC, spec)
        method.__doc__ = spec.doc
        return method

    return tie


class GatewayEvents:
    """The gateway, its channels and their messages."""

    @handles(GatewayStartupEvent)
    def gateway_startup(self, event: GatewayStartupEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(ChannelConnectEvent)
    def channel_connect(self, event: ChannelConnectEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(MessageReceiveEvent)
    def message_receive(
        self, event: MessageReceiveEvent, ctx: HookContext
    ) -> Answer[MessageReceiveResult]: ...

    @handles(MessageSendEvent)
    def message_send(self, event: MessageSendEvent, ctx: HookContext) -> Answer[MessageSendResult]: ...

    @handles(MessageCancelEvent)
    def message_cancel(self, event: MessageCancelEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(GatewayErrorEvent)
    def gateway_error(self, event: GatewayErrorEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(ChannelDisconnectEvent)
    def channel_disconnect(self, event: ChannelDisconnectEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(GatewayStopEvent)
    def gateway_stop(self, event: GatewayStopEvent, ctx: HookContext) -> Answer[None]: ...


class SessionEvents:
    """The life of a session."""

    @handles(SessionBeforeStartEvent)
    def session_before_start(
        self, event: SessionBeforeStartEvent, ctx: HookContext
    ) -> Answer[SessionBeforeStartResult]: ...

    @handles(SessionStartEvent)
    def session_start(
        self, event: SessionStartEvent, ctx: HookContext
    ) -> Answer[SessionStartResult]: ...

    @handles(SessionBeforeSwitchEvent)
    def session_before_switch(
        self, event: SessionBeforeSwitchEvent, ctx: HookContext
    ) -> Answer[SessionBeforeSwitchResult]: ...

    @handles(SessionBeforeForkEvent)
    def session_before_fork(
        self, event: SessionBeforeForkEvent, ctx: HookContext
    ) -> Answer[SessionBeforeForkResult]: ...

    @handles(SessionBeforeCompactEvent)
    def session_before_compact(
        self, event: SessionBeforeCompactEvent, ctx: HookContext
    ) -> Answer[SessionBeforeCompactResult]: ...

    @handles(SessionCompactEvent)
    def session_compact(self, event: SessionCompactEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(SessionBeforeTreeEvent)
    def session_before_tree(
        self, event: SessionBeforeTreeEvent, ctx: HookContext
    ) -> Answer[SessionBeforeTreeResult]: ...

    @handles(SessionTreeEvent)
    def session_tree(self, event: SessionTreeEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(SessionShutdownEvent)
    def session_shutdown(self, event: SessionShutdownEvent, ctx: HookContext) -> Answer[None]: ...


class AgentEvents:
    """The agent's run."""

    @handles(InputEvent)
    def input(self, event: InputEvent, ctx: HookContext) -> Answer[InputEventResult]: ...

    @handles(BeforeAgentStartEvent)
    def before_agent_start(
        self, event: BeforeAgentStartEvent, ctx: HookContext
    ) -> Answer[BeforeAgentStartEventResult]: ...

    @handles(AgentStartEvent)
    def agent_start(self, event: AgentStartEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(ContextEvent)
    def context(self, event: ContextEvent, ctx: HookContext) -> Answer[ContextEventResult]: ...

    @handles(AgentStopEvent)
    def agent_stop(self, event: AgentStopEvent, ctx: HookContext) -> Answer[AgentStopEventResult]: ...

    @handles(AgentEndEvent)
    def agent_end(self, event: AgentEndEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(AgentErrorEvent)
    def agent_error(self, event: AgentErrorEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(OutputEvent)
    def output(self, event: OutputEvent, ctx: HookContext) -> Answer[OutputEventResult]: ...

    @handles(SavePointEvent)
    def save_point(self, event: SavePointEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(SettledEvent)
    def settled(self, event: SettledEvent, ctx: HookContext) -> Answer[None]: ...


class MessageEvents:
    """Model turns and their messages."""

    @handles(TurnStartEvent)
    def turn_start(self, event: TurnStartEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(MessageStartEvent)
    def message_start(self, event: MessageStartEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(MessageUpdateEvent)
    def message_update(self, event: MessageUpdateEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(MessageEndEvent)
    def message_end(self, event: MessageEndEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(TurnEndEvent)
    def turn_end(self, event: TurnEndEvent, ctx: HookContext) -> Answer[None]: ...


class ModelEvents:
    """Model calls and the choice of model."""

    @handles(ModelSelectEvent)
    def model_select(self, event: ModelSelectEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(ThinkingLevelSelectEvent)
    def thinking_level_select(
        self, event: ThinkingLevelSelectEvent, ctx: HookContext
    ) -> Answer[None]: ...

    @handles(ModelCallEvent)
    def model_call(self, event: ModelCallEvent, ctx: HookContext) -> Answer[ModelCallEventResult]: ...

    @handles(ModelResultEvent)
    def model_result(
        self, event: ModelResultEvent, ctx: HookContext
    ) -> Answer[ModelResultEventResult]: ...


class ToolEvents:
    """One tool call."""

    @handles(ToolExecutionStartEvent)
    def tool_execution_start(
        self, event: ToolExecutionStartEvent, ctx: HookContext
    ) -> Answer[None]: ...

    @handles(ToolCallEvent)
    def tool_call(self, event: ToolCallEvent, ctx: HookContext) -> Answer[ToolCallEventResult]: ...

    @handles(ToolExecutionUpdateEvent)
    def tool_execution_update(
        self, event: ToolExecutionUpdateEvent, ctx: HookContext
    ) -> Answer[None]: ...

    @handles(ToolResultEvent)
    def tool_result(
        self, event: ToolResultEvent, ctx: HookContext
    ) -> Answer[ToolResultEventResult]: ...

    @handles(ToolExecutionFailureEvent)
    def tool_execution_failure(
        self, event: ToolExecutionFailureEvent, ctx: HookContext
    ) -> Answer[None]: ...

    @handles(ToolExecutionEndEvent)
    def tool_execution_end(self, event: ToolExecutionEndEvent, ctx: HookContext) -> Answer[None]: ...


class SubagentEvents:
    """Subagents."""

    @handles(SubagentStartEvent)
    def subagent_start(self, event: SubagentStartEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(SubagentEndEvent)
    def subagent_end(self, event: SubagentEndEvent, ctx: HookContext) -> Answer[None]: ...


class MiscEvents:
    """What belongs to no other family."""

    @handles(ResourcesDiscoverEvent)
    def resources_discover(
        self, event: ResourcesDiscoverEvent, ctx: HookContext
    ) -> Answer[ResourcesDiscoverResult]: ...

    @handles(NotificationEvent)
    def notification(self, event: NotificationEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(UserBashEvent)
    def user_bash(self, event: UserBashEvent, ctx: HookContext) -> Answer[UserBashResult]: ...

    @handles(RetryStartEvent)
    def retry_start(self, event: RetryStartEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(RetryEndEvent)
    def retry_end(self, event: RetryEndEvent, ctx: HookContext) -> Answer[None]: ...

    @handles(NetworkRequestEvent)
    def network_request(
        self, event: NetworkRequestEvent, ctx: HookContext
    ) -> Answer[NetworkRequestResult]: ...
