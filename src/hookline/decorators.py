"""`hooks.on`: decorators that attach handlers, one for each event and hook, typed.

    @hooks.on.tool_call(when="shell")
    def no_sudo(event: ToolCallEvent):
        if "sudo" in event.input["command"]:
            return event.deny("not as root")

A type checker compares the parameter and the result of the handler with the event.
`hooks.on(ToolCallEvent)` and `hooks.on("tool_call")` also attach handlers to events and hooks that are
declared elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from .hooks import Answer, HookRegistry, Options
from .hooks.errors import suggestion
from .hooks.registry import Attach, Registered
from .hooks.spec import EventClass

if TYPE_CHECKING:
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
    from .hookspecs import Admission, AdmissionAction, Approval
    from .types import AsyncStreamEvents, Prompt, State, StreamEvent

P = ParamSpec("P")
E = TypeVar("E")
R = TypeVar("R")


class EventDecorator(Protocol[E, R]):
    """Attaches a handler of one event: `(event)` or `(event, ctx)`, sync or async."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[E, P], Coroutine[Any, Any, R | None]], /
    ) -> Registered[Concatenate[E, P], Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[E, P], R | None], /
    ) -> Registered[Concatenate[E, P], R | None]: ...
    @overload
    def __call__(self, **options: Unpack[Options]) -> Attach[E, R]: ...
    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Attach a handler, or return a decorator that does so with these options."""


class HookDecorator(Protocol[R]):
    """Attaches an implementation of one function-shaped hook, sync or async."""

    @overload
    def __call__(self, handler: Callable[P, Answer[R]], /) -> Registered[P, Answer[R]]: ...
    @overload
    def __call__(self, **options: Unpack[Options]) -> AttachImplementation[R]: ...
    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Attach an implementation, or return a decorator that does so with these options."""


class AttachImplementation(Protocol[R]):
    """A decorator for an implementation of one hook."""

    def __call__(self, handler: Callable[P, Answer[R]], /) -> Registered[P, Answer[R]]:
        """Attach the implementation."""
        ...


class SyncHookDecorator(Protocol[R]):
    """Attaches an implementation of one hook that is called synchronously."""

    @overload
    def __call__(self, handler: Callable[P, R | None], /) -> Registered[P, R | None]: ...
    @overload
    def __call__(self, **options: Unpack[Options]) -> AttachSync[R]: ...
    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Attach an implementation, or return a decorator that does so with these options."""


class AttachSync(Protocol[R]):
    """A decorator for an implementation of one hook that is called synchronously."""

    def __call__(self, handler: Callable[P, R | None], /) -> Registered[P, R | None]:
        """Attach the implementation."""
        ...


class HookDecorators:
    """The decorators of a registry, one for each event and hook that it declares."""

    # turn
    resolve_session: HookDecorator[str]
    admit_message: HookDecorator[AdmissionAction | Admission]
    load_state: HookDecorator[State]
    build_prompt: HookDecorator[Prompt]
    run_model_stream: HookDecorator[AsyncStreamEvents]
    run_model: HookDecorator[str]
    save_state: HookDecorator[None]
    render_outbound: HookDecorator[Any]
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
    register_commands: SyncHookDecorator[list[Any]]
    hookline_startup: HookDecorator[None]
    authorize_action: HookDecorator[bool]
    resolve_approval: HookDecorator[Approval]
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

    # tool
    tool_execution_start: EventDecorator[ToolExecutionStartEvent, None]
    tool_call: EventDecorator[ToolCallEvent, ToolCallEventResult]
    tool_execution_update: EventDecorator[ToolExecutionUpdateEvent, None]
    tool_result: EventDecorator[ToolResultEvent, ToolResultEventResult]
    tool_execution_failure: EventDecorator[ToolExecutionFailureEvent, None]
    tool_execution_end: EventDecorator[ToolExecutionEndEvent, None]

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

    def __init__(self, hooks: HookRegistry) -> None:
        self._hooks = hooks

    @overload
    def __call__(self, hook: EventClass[E, R], **options: Unpack[Options]) -> Attach[E, R]: ...
    @overload
    def __call__(
        self, hook: str, **options: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Registered[P, R]]: ...
    def __call__(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler to an event or a hook; it is returned, with `.off()` on it."""
        return HookRegistry.on(self._hooks, hook, **options)

    if not TYPE_CHECKING:  # a type checker knows the names above, and no others

        def __getattr__(self, name: str) -> Any:
            declared = {known.replace(":", "_"): known for known in self._hooks.catalog}
            if name not in declared:
                raise AttributeError(f"there is no event or hook {name!r}{suggestion(name, declared)}")

            def attach(*handler: Any, **options: Unpack[Options]) -> Any:
                decorate = self(declared[name], **options)
                return decorate(*handler) if handler else decorate

            return attach

    def __dir__(self) -> list[str]:
        return sorted(known.replace(":", "_") for known in self._hooks.catalog)
