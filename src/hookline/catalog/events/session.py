"""The life of a session: opened, switched, forked, compacted, navigated, closed."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hookline.hooks import Event, Result, collect, event, gate, notify, record

from ..results import Blocking, Cancelling

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


@record
class SessionStartResult(Result):
    """Text for the first prompt of the session."""

    additional_context: str | None = None


@event(collect, family="session", match="reason", fires="when this process first opened a session")
@record
class SessionStartEvent(Event[SessionStartResult]):
    """A session was opened."""

    type: Literal["session_start"] = field(default="session_start", init=False)
    reason: SessionReason = "startup"
    previous_session_file: str | None = None


@record
class SessionBeforeSwitchResult(Cancelling):
    """Stay in the present session."""

    cancel: bool = False
    reason: str | None = None
    """Why it is cancelled; the person sees it."""


@event(
    gate, family="session", match="reason", fires="before another session takes the place of this one"
)
@record
class SessionBeforeSwitchEvent(Event[SessionBeforeSwitchResult]):
    """Another session is about to be opened instead."""

    type: Literal["session_before_switch"] = field(default="session_before_switch", init=False)
    reason: SessionReason = "resume"
    target_session_file: str | None = None


@record
class SessionBeforeForkResult(Cancelling):
    """Do not fork."""

    cancel: bool = False
    reason: str | None = None
    """Why it is cancelled; the person sees it."""


@event(gate, family="session", fires="before a session is forked from an entry")
@record
class SessionBeforeForkEvent(Event[SessionBeforeForkResult]):
    """A new session is about to branch off at an entry."""

    type: Literal["session_before_fork"] = field(default="session_before_fork", init=False)
    entry_id: str = ""
    position: Literal["before", "at"] = "at"
    """Whether the entry itself still belongs to the fork."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction comes to: a summary in place of everything before the first kept entry."""

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
    """Why it is cancelled; the person sees it."""


@event(gate, family="session", fires="before a branch is compacted")
@record
class SessionBeforeCompactEvent(Event[SessionBeforeCompactResult]):
    """A branch is about to be summarised."""

    type: Literal["session_before_compact"] = field(default="session_before_compact", init=False)
    preparation: Any = None
    branch_entries: list[Any] = field(default_factory=list[Any])
    custom_instructions: str | None = None


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
    """Why it is cancelled; the person sees it."""


@event(gate, family="session", fires="before the leaf moves to another branch")
@record
class SessionBeforeTreeEvent(Event[SessionBeforeTreeResult]):
    """The conversation is about to go on from another entry."""

    type: Literal["session_before_tree"] = field(default="session_before_tree", init=False)
    preparation: Any = None


@event(notify, family="session", fires="when the leaf has moved")
@record
class SessionTreeEvent(Event[None]):
    """The conversation goes on from another entry."""

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
