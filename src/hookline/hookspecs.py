"""Every function-shaped hook: the turn, tools, plugins, triggers; and `Hooks` with all of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from .hooks import (
    CAPTURE,
    OLDEST,
    SKIP,
    Answer,
    Family,
    collect,
    first,
    flatten,
    hookspec,
    join,
    merge,
    notify,
    outcomes,
)
from .types import AsyncStreamEvents, Envelope, Prompt, State

if TYPE_CHECKING:
    import typer
from collections.abc import AsyncIterable
from dataclasses import field
from functools import partial
from os import urandom
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import hookline.hooks
from hookline import events
from hookline.decorators import HookDecorators

from .hooks import DENY, RAISE, Catalog, PluginManager, around, chain
from .hooks.registry import OnGateError
from .types import Message, StreamEvent, ToolCall

Stage: TypeAlias = Literal["bootstrap", "turn", "run_model", "tool", "dispatch", "trigger"]
MessageHandler: TypeAlias = Callable[[Envelope], Awaitable[None]]
AdmissionAction: TypeAlias = Literal["process", "drop", "follow_up", "steer"]


@dataclass(frozen=True, slots=True)
class Admission:
    """What to do with a message that arrives, and why."""

    action: AdmissionAction
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.action not in get_args(AdmissionAction):
            known = ", ".join(map(repr, get_args(AdmissionAction)))
            raise ValueError(f"Admission: unknown action {self.action!r}; use one of {known}")


class TurnHooks(Family, name="turn"):
    """The stages of one turn, in order, then the hooks that a run calls once."""

    @hookspec(first, fires="once per message, before anything of its session is touched")
    def resolve_session(self, message: "Envelope") -> Answer[str]:
        """Name the session that this message belongs to."""

    @hookspec(first, scope="session_id", fires="once per message, before it is queued")
    def admit_message(
        self, session_id: str, message: "Envelope", turn: Any
    ) -> Answer[AdmissionAction | Admission]:
        """Decide whether a message gets a turn, joins the running one, waits or is dropped."""

    @hookspec(merge, scope="session_id", fires="once per turn, when its session is known")
    def load_state(self, message: "Envelope", session_id: str) -> Answer[State]:
        """Add to the state that the hooks of this turn share."""

    @hookspec(first, scope="session_id", fires="once per turn, after the input was let through")
    def build_prompt(self, message: "Envelope", session_id: str, state: State) -> Answer[Prompt]:
        """Turn the message into the prompt: text, or content parts."""

    @hookspec(
        first,
        scope="session_id",
        excludes=("run_model",),
        fires="once per turn, with the prompt; the newest of this and run_model decides",
    )
    def run_model_stream(
        self, prompt: Prompt, session_id: str, state: State
    ) -> Answer[AsyncStreamEvents]:
        """Answer the prompt as a stream; the builtin plugin runs the agent here."""

    @hookspec(
        first,
        scope="session_id",
        excludes=("run_model_stream",),
        fires="in place of run_model_stream, where the newest plugin has only this one",
    )
    def run_model(self, prompt: Prompt, session_id: str, state: State) -> Answer[str]:
        """Answer the prompt as one text, which becomes a stream of one chunk."""

    @hookspec(
        collect,
        scope="session_id",
        fires="once per turn that had a prompt or was handled as input, after success and failure",
    )
    def save_state(
        self, session_id: str, state: State, message: "Envelope", model_output: str
    ) -> Answer[None]:
        """Save what later turns need."""

    @hookspec(
        flatten(single=True), scope="session_id", fires="once per turn, after the state was saved"
    )
    def render_outbound(
        self, message: "Envelope", session_id: str, state: State, model_output: str
    ) -> Answer[list[Envelope] | tuple[Envelope, ...] | Envelope]:
        """Turn the model's output into the envelopes that go out: a list, or a single one."""

    @hookspec(collect, fires="once per outbound envelope")
    def dispatch_outbound(self, message: "Envelope") -> Answer[bool]:
        """Deliver an envelope, and say whether it was sent."""

    @hookspec(
        notify, order=OLDEST, errors=SKIP, match="stage", fires="when a stage failed, also at bootstrap"
    )
    def on_error(
        self, stage: Stage, error: Exception, message: "Envelope | None", agent_id: str
    ) -> Answer[None]:
        """Observe an error; it reaches the caller whatever is done here."""

    @hookspec(
        join, sync=True, fires="once per run of the agent, when its system prompt is put together"
    )
    def system_prompt(self, prompt: Prompt, state: State) -> str | None:
        """Contribute a paragraph to the system prompt."""

    @hookspec(first, sync=True, fires="once per running scope, when it opens")
    def provide_tape_store(self) -> Any:
        """Provide the tape store, or an iterator or context manager that opens and closes one."""

    @hookspec(first, sync=True, fires="when a tape is opened")
    def build_tape_context(self) -> Any:
        """Provide the rule by which tape entries become model messages."""

    @hookspec(flatten(unique="name"), sync=True, fires="when the channels are set up")
    def provide_channels(self, message_handler: MessageHandler) -> list[Any] | None:
        """Provide channels; of two with one name the first in priority order stays."""

    @hookspec(outcomes, errors=CAPTURE, sync=True, fires="once, when the command line is built")
    def register_cli_commands(self, app: "typer.Typer") -> None:
        """Add commands to the command line."""

    @hookspec(
        merge(deep=True, into="current_config"),
        order=OLDEST,
        sync=True,
        fires="when a configuration is set up, lowest priority first",
    )
    def onboard_config(self, current_config: dict[str, Any]) -> dict[str, Any] | None:
        """Contribute to a new configuration, given the current one."""


intercept = partial(hookspec, order=OLDEST, errors=SKIP)


class ToolHooks(Family, name="tool"):
    """The hooks around the agent's run and each tool call, in order."""

    @intercept(notify, fires="once per inbound turn, when the agent takes it up")
    def on_turn_start(self, agent_id: str, messages: list[Message]) -> Answer[None]:
        """Observe that a turn begins."""

    @intercept(collect, fires="once per run of the agent, with the system prompt")
    def bootstrap_files(self, agent_id: str) -> Answer[str | list[str]]:
        """Add text to the system prompt."""

    @intercept(around(passing="request"), errors=RAISE, fires="around every model call")
    def around_model_call(
        self, request: Any, call_next: Callable[[Any], Awaitable[AsyncIterable[StreamEvent]]]
    ) -> Answer[AsyncIterable[StreamEvent]]:
        """Wrap a model call; `call_next(request)` makes it."""

    @intercept(
        chain("arguments", carrier="call"),
        scope="session_id",
        match="tool_name",
        fires="once per tool call, before anything judges it",
    )
    def before_tool_call(
        self,
        call: ToolCall,
        tool_name: str,
        arguments: dict[str, Any],
        agent_id: str,
        session_id: str,
    ) -> Answer[dict[str, Any]]:
        """Rewrite a tool's arguments."""

    @intercept(
        around,
        errors=RAISE,
        scope="call.session_id",
        fires="around every tool that runs, once the call is authorised and on the tape",
    )
    def around_tool_call(self, call: ToolCall, call_next: Callable[[], Awaitable[Any]]) -> Answer[Any]:
        """Wrap a tool; `call_next()` runs the authorised call."""

    @intercept(
        chain("result"),
        scope="session_id",
        match="tool_name",
        fires="when a tool ran, well or badly",
    )
    def after_tool_call(
        self,
        call: ToolCall,
        tool_name: str,
        arguments: dict[str, Any],
        result: Any,
        is_error: bool,
        agent_id: str,
        session_id: str,
    ) -> Answer[Any]:
        """Rewrite a tool's result; if `is_error`, the tool raised, and this is its message."""

    @intercept(
        chain("result"),
        scope="session_id",
        match="tool_name",
        fires="last of a tool call, before its result goes on the tape",
    )
    def tool_result_persist(
        self, tool_name: str, result: Any, agent_id: str, session_id: str
    ) -> Answer[Any]:
        """Rewrite what the tape keeps; the rest of this turn still sees the live result."""

    @intercept(
        notify,
        scope="session_id",
        match="tool_name",
        fires="when the same call repeats without progress",
    )
    def on_loop_warning(
        self, tool_name: str, pattern: str, count: int, agent_id: str, session_id: str
    ) -> Answer[None]:
        """Observe that the agent may be going in circles."""

    @intercept(notify, fires="once per inbound turn, when the agent is done")
    def on_turn_end(self, agent_id: str, response: str) -> Answer[None]:
        """Observe that a turn ended, and with what answer."""


API_VERSION = "1"
"""The plugin interface of this release; a manifest of another major version is not loaded."""

Approval: TypeAlias = Literal["approve", "reject"]

lifecycle = partial(hookspec, outcomes, order=OLDEST, errors=CAPTURE)
"""One outcome for each plugin: a plugin that fails is reported, and the others go on."""
bootstrap = partial(lifecycle, sync=True)


class PluginHooks(Family, name="plugin"):
    """Start and end of a plugin's life, its registrations, and what it may permit."""

    @bootstrap(fires="once, when the tool registry is built")
    def register_tools(self) -> list[Any] | None:
        """Provide tools, as decorated functions or as specs."""

    @bootstrap(fires="once, when the skill registry is built")
    def register_skills(self) -> list[Any] | None:
        """Provide skills."""

    @bootstrap(fires="once, when the store registry is built")
    def register_stores(self) -> list[Any] | None:
        """Provide named stores; `${VAR}` in their configuration is filled in and checked."""

    @bootstrap(fires="once, when the policy packs are gathered")
    def register_packs(self) -> list[Any] | None:
        """Provide policy packs."""

    @bootstrap(fires="once, when the models are first asked for")
    def register_models(self) -> list[Any] | None:
        """Provide providers of models, by which `NAME:MODEL` becomes a model."""

    @bootstrap(fires="once per gateway, when its channels are set up")
    def register_channels(self) -> list[Any] | None:
        """Provide channels of the gateway, which get its services when they are enabled."""

    @bootstrap(fires="once, when the slash commands are gathered")
    def register_commands(self) -> list[Any] | None:
        """Provide slash commands for chat and channels."""

    @hookspec(
        notify,
        order=OLDEST,
        errors=SKIP,
        fires="at the start and after each reload, when settings and hook files are read",
    )
    def resources_loaded(
        self, skill_paths: list[Path], reason: Literal["startup", "reload"]
    ) -> Answer[None]:
        """Read again what depends on files; `skill_paths` are those that plugins named."""

    @lifecycle(fires="once, after all plugins are registered")
    def hookline_startup(self, pm: PluginManager) -> Answer[None]:
        """Open what the plugin needs while it runs."""

    @hookspec(
        first,
        order=OLDEST,
        errors=DENY,
        timeout=30,
        fires="before every action, with its final arguments",
    )
    def authorize_action(self, action: dict[str, Any]) -> Answer[bool]:
        """Allow or deny an action; None leaves it to the next. Policy still has the last word."""

    @hookspec(
        first(deny="reject"),
        order=OLDEST,
        errors=DENY,
        timeout=600,
        fires="whenever something asked for approval",
    )
    def resolve_approval(self, request: Any) -> Answer[Approval]:
        """Answer a request for approval; no answer in time is a rejection."""

    @lifecycle(fires="once, on graceful shutdown, also after a failed run")
    def hookline_shutdown(self, pm: PluginManager) -> Answer[None]:
        """Flush and close what startup opened."""


Route: TypeAlias = Any
"""A route or router of the web framework; this module needs none."""


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """Something happened, and a turn is to be made of it."""

    trigger: str
    """The name of the trigger; its section `[triggers.<name>]` says what the message is."""
    payload: Any = None
    """The known facts, as JSON; the message template takes its fields from here."""
    id: str = field(default_factory=lambda: urandom(16).hex())
    """The idempotency key: two events of a trigger with one id are one event, and make one turn."""
    time: float = field(default_factory=time)
    """When it happened, in seconds since 1970."""
    message: str | None = None
    """The message if no template gives one."""
    session: str | None = None
    """The session of the turn. The answer goes to its channel, unless the section names another."""


lifecycle = partial(hookspec, outcomes, order=OLDEST, errors=CAPTURE)


class TriggerHooks(Family, name="trigger"):
    """The life of a trigger, and the routes it wants mounted."""

    @lifecycle(fires="once, when serving starts")
    def trigger_init(self, deps: dict[str, Any]) -> Answer[None]:
        """Set up from what the server hands over."""

    @lifecycle(fires="once, when the server mounts its routes")
    def trigger_routes(self) -> Answer[list[Route]]:
        """Provide routes; a trigger that needs none returns an empty list."""

    @lifecycle(fires="once, when the scheduler starts")
    def trigger_start(self, deps: dict[str, Any]) -> Answer[None]:
        """Begin to emit trigger events."""

    @lifecycle(fires="once, on graceful shutdown")
    def trigger_stop(self, deps: dict[str, Any]) -> Answer[None]:
        """Stop, and drain what is in flight."""


CATALOG = Catalog(TurnHooks, PluginHooks, ToolHooks, events, TriggerHooks)


class Hooks(hookline.hooks.HookRegistry):
    """Registration and dispatch: the shipped hooks, or those of another catalogue.

    This is the one class that programs use. Everything that it does apart from `on` is defined in the
    kernel, which knows no catalogue of its own.
    """

    def __init__(self, catalog: Catalog = CATALOG, *, on_gate_error: OnGateError = "allow") -> None:
        super().__init__(catalog, on_gate_error=on_gate_error)

    @property
    def on(self) -> HookDecorators:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Attach handlers: `@hooks.on.tool_call(when="shell")`, or `@hooks.on(ToolCallEvent)`."""
        return HookDecorators(self)
