"""The turn pipeline: from an inbound envelope to what goes out.

The newest plugin runs first and errors reach the caller, unless a hook says otherwise.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from hookline.hooks import (
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

from .envelope import Envelope, State
from .parts import Prompt
from .stream import AsyncStreamEvents

if TYPE_CHECKING:
    import typer

Stage: TypeAlias = Literal["bootstrap", "turn", "run_model", "tool", "dispatch", "trigger"]
MessageHandler: TypeAlias = Callable[[Envelope], Awaitable[None]]
AdmissionAction: TypeAlias = Literal["process", "drop", "follow_up", "steer"]


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of a message that arrives, and why."""

    action: AdmissionAction
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.action not in get_args(AdmissionAction):
            known = ", ".join(map(repr, get_args(AdmissionAction)))
            raise ValueError(f"Admission: unknown action {self.action!r}; use one of {known}")


class TurnHooks(Family, name="turn"):
    """The stages of one turn, in the order in which it meets them, then what a run needs once."""

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
        """Contribute to a new configuration, given what stands so far."""
