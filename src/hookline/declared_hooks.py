"""One typed decorator for each declared hook and event: `hooks.on.<name>`.

Made by `scripts/declared_hooks.py` from the declarations; a test fails when it is stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterable
    from typing import Any, Literal

    from .decorators import EventDecorator, HookDecorator, SyncHookDecorator
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
    from .hookspecs import Admission
    from .types import AsyncStreamEvents, StreamEvent


class DeclaredHooks:
    """The decorators of the shipped hooks, for type checkers and completion."""

    # turn
    resolve_session: HookDecorator[str]
    admit_message: HookDecorator[Literal["process", "drop", "follow_up", "steer"] | Admission]
    load_state: HookDecorator[dict[str, Any]]
    build_prompt: HookDecorator[str | list[Any]]
    run_model_stream: HookDecorator[AsyncStreamEvents]
    run_model: HookDecorator[str]
    save_state: HookDecorator[None]
    render_outbound: HookDecorator[list[Any] | tuple[Any, ...] | Any]
    dispatch_outbound: HookDecorator[bool]
    on_error: HookDecorator[None]
    system_prompt: SyncHookDecorator[str]
    provide_tape_store: SyncHookDecorator[Any]
    build_tape_context: SyncHookDecorator[Any]
    provide_channels: SyncHookDecorator[list[Any]]
    register_cli_commands: SyncHookDecorator[None]
    onboard_config: SyncHookDecorator[dict[str, Any]]

    # plugin
    register_tools: SyncHookDecorator[list[Any]]
    register_skills: SyncHookDecorator[list[Any]]
    register_stores: SyncHookDecorator[list[Any]]
    register_packs: SyncHookDecorator[list[Any]]
    register_models: SyncHookDecorator[list[Any]]
    register_channels: SyncHookDecorator[list[Any]]
    register_commands: SyncHookDecorator[list[Any]]
    resources_loaded: HookDecorator[None]
    hookline_startup: HookDecorator[None]
    authorize_action: HookDecorator[bool]
    resolve_approval: HookDecorator[Literal["approve", "reject"]]
    hookline_shutdown: HookDecorator[None]

    # tool
    on_turn_start: HookDecorator[None]
    bootstrap_files: HookDecorator[str | list[str]]
    around_model_call: HookDecorator[AsyncIterable[StreamEvent]]
    before_tool_call: HookDecorator[dict[str, Any]]
    around_tool_call: HookDecorator[Any]
    after_tool_call: HookDecorator[Any]
    tool_result_persist: HookDecorator[Any]
    on_loop_warning: HookDecorator[None]
    on_turn_end: HookDecorator[None]
    tool_execution_start: EventDecorator[ToolExecutionStartEvent, None]
    tool_call: EventDecorator[ToolCallEvent, ToolCallEventResult]
    tool_execution_update: EventDecorator[ToolExecutionUpdateEvent, None]
    tool_result: EventDecorator[ToolResultEvent, ToolResultEventResult]
    tool_execution_failure: EventDecorator[ToolExecutionFailureEvent, None]
    tool_execution_end: EventDecorator[ToolExecutionEndEvent, None]

    # gateway
    gateway_startup: EventDecorator[GatewayStartupEvent, None]
    channel_connect: EventDecorator[ChannelConnectEvent, None]
    message_receive: EventDecorator[MessageReceiveEvent, MessageReceiveResult]
    message_send: EventDecorator[MessageSendEvent, MessageSendResult]
    message_cancel: EventDecorator[MessageCancelEvent, None]
    gateway_error: EventDecorator[GatewayErrorEvent, None]
    channel_disconnect: EventDecorator[ChannelDisconnectEvent, None]
    gateway_stop: EventDecorator[GatewayStopEvent, None]

    # session
    session_before_start: EventDecorator[SessionBeforeStartEvent, SessionBeforeStartResult]
    session_start: EventDecorator[SessionStartEvent, SessionStartResult]
    session_before_switch: EventDecorator[SessionBeforeSwitchEvent, SessionBeforeSwitchResult]
    session_before_fork: EventDecorator[SessionBeforeForkEvent, SessionBeforeForkResult]
    session_before_compact: EventDecorator[SessionBeforeCompactEvent, SessionBeforeCompactResult]
    session_compact: EventDecorator[SessionCompactEvent, None]
    session_before_tree: EventDecorator[SessionBeforeTreeEvent, SessionBeforeTreeResult]
    session_tree: EventDecorator[SessionTreeEvent, None]
    session_shutdown: EventDecorator[SessionShutdownEvent, None]

    # agent
    input: EventDecorator[InputEvent, InputEventResult]
    before_agent_start: EventDecorator[BeforeAgentStartEvent, BeforeAgentStartEventResult]
    agent_start: EventDecorator[AgentStartEvent, None]
    context: EventDecorator[ContextEvent, ContextEventResult]
    agent_stop: EventDecorator[AgentStopEvent, AgentStopEventResult]
    agent_end: EventDecorator[AgentEndEvent, None]
    agent_error: EventDecorator[AgentErrorEvent, None]
    output: EventDecorator[OutputEvent, OutputEventResult]
    save_point: EventDecorator[SavePointEvent, None]
    settled: EventDecorator[SettledEvent, None]

    # message
    turn_start: EventDecorator[TurnStartEvent, None]
    message_start: EventDecorator[MessageStartEvent, None]
    message_update: EventDecorator[MessageUpdateEvent, None]
    message_end: EventDecorator[MessageEndEvent, None]
    turn_end: EventDecorator[TurnEndEvent, None]

    # model
    model_select: EventDecorator[ModelSelectEvent, None]
    thinking_level_select: EventDecorator[ThinkingLevelSelectEvent, None]
    model_call: EventDecorator[ModelCallEvent, ModelCallEventResult]
    model_result: EventDecorator[ModelResultEvent, ModelResultEventResult]

    # subagent
    subagent_start: EventDecorator[SubagentStartEvent, None]
    subagent_end: EventDecorator[SubagentEndEvent, None]

    # misc
    resources_discover: EventDecorator[ResourcesDiscoverEvent, ResourcesDiscoverResult]
    notification: EventDecorator[NotificationEvent, None]
    user_bash: EventDecorator[UserBashEvent, UserBashResult]
    retry_start: EventDecorator[RetryStartEvent, None]
    retry_end: EventDecorator[RetryEndEvent, None]
    network_request: EventDecorator[NetworkRequestEvent, NetworkRequestResult]

    # trigger
    trigger_init: HookDecorator[None]
    trigger_routes: HookDecorator[list[Any]]
    trigger_start: HookDecorator[None]
    trigger_stop: HookDecorator[None]
