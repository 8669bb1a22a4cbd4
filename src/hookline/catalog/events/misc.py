"""What belongs to no other family: notes to the person, their shell, resources, retries."""

from dataclasses import field
from typing import Literal

from hookline.hooks import Decision, Event, Result, Ruling, collect, event, gate, notify, record

from ..results import Blocking


@record
class ResourcesDiscoverResult(Result):
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
    """What the command came to, because the handler ran it; nothing else runs."""
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
