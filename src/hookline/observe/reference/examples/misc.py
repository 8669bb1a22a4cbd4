"""Resources, notes to the person, their shell, retries."""

import logging
from pathlib import Path

from hookline.events import (
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
from hookline.hooks import hookimpl
from hookline.types import HookContext

log = logging.getLogger(__name__)


class Desk:
    """Where the person sits."""

    def __init__(self) -> None:
        self.history: list[str] = []

    @hookimpl
    def resources_discover(self, event: ResourcesDiscoverEvent) -> ResourcesDiscoverResult | None:
        """Look for skills next to the project too."""
        shared = Path(event.cwd).parent / "shared-skills"
        return ResourcesDiscoverResult(skill_paths=[str(shared)]) if shared.is_dir() else None

    @hookimpl(when="approval")
    def notification(self, event: NotificationEvent) -> None:
        """Ring the bell when an approval is waited for."""
        print("\a", event.text)

    @hookimpl
    def user_bash(self, event: UserBashEvent) -> UserBashResult | None:
        """Remember commands, and answer `history` with them in place of the shell."""
        if event.command == "history":
            return UserBashResult(output="\n".join(self.history))
        self.history.append(event.command)
        return None

    @hookimpl
    def retry_start(self, event: RetryStartEvent, ctx: HookContext) -> None:
        """Explain the wait."""
        ctx.notify(f"Trying again ({event.attempt} of {event.max_retries}).")

    @hookimpl
    def retry_end(self, event: RetryEndEvent) -> None:
        """Log what did not help."""
        if not event.success:
            log.warning("attempt %d failed too: %s", event.attempt, event.error)

    @hookimpl
    def network_request(self, event: NetworkRequestEvent) -> NetworkRequestResult | None:
        """Ask before anything but a package index is reached."""
        if event.host in ("packages.example", "files.packages.example"):
            return None
        return NetworkRequestResult(ask=True, reason=f"may {event.kind} reach {event.host}?")
