"""Every event, what a handler may return for it, and what both carry."""

from typing import TypeAlias

from .catalog.calls import ToolCall, ToolResultContent
from .catalog.context import HookContext
from .catalog.events.agent import (
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
from .catalog.events.gateway import (
    ChannelConnectEvent,
    ChannelDisconnectEvent,
    GatewayErrorEvent,
    GatewayStartupEvent,
    GatewayStopEvent,
    MessageCancelEvent,
    MessageReceiveEvent,
    MessageReceiveResult,
    MessageSendEvent,
    MessageSendResult,
)
from .catalog.events.message import (
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from .catalog.events.misc import (
    NetworkRequestEvent,
    NetworkRequestResult,
    NotificationEvent,
    ResourcesDiscoverEvent,
    ResourcesDiscoverResult,
    RetryEndEvent,
    RetryStartEvent,
    UserBashEvent,
    UserBashResult,
)
from .catalog.events.model import (
    ModelCallEvent,
    ModelCallEventResult,
    ModelResultEvent,
    ModelResultEventResult,
    ModelSelectEvent,
    ThinkingLevelSelectEvent,
)
from .catalog.events.session import (
    CompactionResult,
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
)
from .catalog.events.subagent import SubagentEndEvent, SubagentStartEvent
from .catalog.events.tool import (
    ToolCallEvent,
    ToolCallEventResult,
    ToolExecutionEndEvent,
    ToolExecutionFailureEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResultEvent,
    ToolResultEventResult,
)
from .catalog.parts import AudioPart, ImagePart, Part, TextPart

HookEvent: TypeAlias = (
    GatewayStartupEvent
    | ChannelConnectEvent
    | MessageReceiveEvent
    | MessageSendEvent
    | MessageCancelEvent
    | GatewayErrorEvent
    | ChannelDisconnectEvent
    | GatewayStopEvent
    | SessionBeforeStartEvent
    | SessionStartEvent
    | SessionBeforeSwitchEvent
    | SessionBeforeForkEvent
    | SessionBeforeCompactEvent
    | SessionCompactEvent
    | SessionBeforeTreeEvent
    | SessionTreeEvent
    | SessionShutdownEvent
    | InputEvent
    | BeforeAgentStartEvent
    | AgentStartEvent
    | ContextEvent
    | AgentStopEvent
    | AgentEndEvent
    | AgentErrorEvent
    | OutputEvent
    | SavePointEvent
    | SettledEvent
    | TurnStartEvent
    | MessageStartEvent
    | MessageUpdateEvent
    | MessageEndEvent
    | TurnEndEvent
    | ModelSelectEvent
    | ThinkingLevelSelectEvent
    | ModelCallEvent
    | ModelResultEvent
    | ToolExecutionStartEvent
    | ToolCallEvent
    | ToolExecutionUpdateEvent
    | ToolResultEvent
    | ToolExecutionFailureEvent
    | ToolExecutionEndEvent
    | SubagentStartEvent
    | SubagentEndEvent
    | ResourcesDiscoverEvent
    | NetworkRequestEvent
    | NotificationEvent
    | UserBashEvent
    | RetryStartEvent
    | RetryEndEvent
)
"""Any event."""

__all__ = [
    "AgentEndEvent",
    "AgentErrorEvent",
    "AgentStartEvent",
    "AgentStopEvent",
    "AgentStopEventResult",
    "AudioPart",
    "BeforeAgentStartEvent",
    "BeforeAgentStartEventResult",
    "ChannelConnectEvent",
    "ChannelDisconnectEvent",
    "CompactionResult",
    "ContextEvent",
    "ContextEventResult",
    "GatewayErrorEvent",
    "GatewayStartupEvent",
    "GatewayStopEvent",
    "HookContext",
    "HookEvent",
    "ImagePart",
    "InputEvent",
    "InputEventResult",
    "MessageCancelEvent",
    "MessageEndEvent",
    "MessageReceiveEvent",
    "MessageReceiveResult",
    "MessageSendEvent",
    "MessageSendResult",
    "MessageStartEvent",
    "MessageUpdateEvent",
    "ModelCallEvent",
    "ModelCallEventResult",
    "ModelResultEvent",
    "ModelResultEventResult",
    "ModelSelectEvent",
    "NetworkRequestEvent",
    "NetworkRequestResult",
    "NotificationEvent",
    "OutputEvent",
    "OutputEventResult",
    "Part",
    "ResourcesDiscoverEvent",
    "ResourcesDiscoverResult",
    "RetryEndEvent",
    "RetryStartEvent",
    "SavePointEvent",
    "SessionBeforeCompactEvent",
    "SessionBeforeCompactResult",
    "SessionBeforeForkEvent",
    "SessionBeforeForkResult",
    "SessionBeforeStartEvent",
    "SessionBeforeStartResult",
    "SessionBeforeSwitchEvent",
    "SessionBeforeSwitchResult",
    "SessionBeforeTreeEvent",
    "SessionBeforeTreeResult",
    "SessionCompactEvent",
    "SessionShutdownEvent",
    "SessionStartEvent",
    "SessionStartResult",
    "SessionTreeEvent",
    "SettledEvent",
    "SubagentEndEvent",
    "SubagentStartEvent",
    "TextPart",
    "ThinkingLevelSelectEvent",
    "ToolCall",
    "ToolCallEvent",
    "ToolCallEventResult",
    "ToolExecutionEndEvent",
    "ToolExecutionFailureEvent",
    "ToolExecutionStartEvent",
    "ToolExecutionUpdateEvent",
    "ToolResultContent",
    "ToolResultEvent",
    "ToolResultEventResult",
    "TurnEndEvent",
    "TurnStartEvent",
    "UserBashEvent",
    "UserBashResult",
]
