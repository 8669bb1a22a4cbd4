"""The life of a session."""

import logging
from pathlib import Path

from hookline.events import (
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
from hookline.hooks import hookimpl
from hookline.types import HookContext

log = logging.getLogger(__name__)


class Project:
    """Ties sessions to a project: what may open, what it starts from, what it leaves behind."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home
        self.dirty = False

    @hookimpl(guard=True)
    def session_before_start(self, event: SessionBeforeStartEvent) -> SessionBeforeStartResult | None:
        """Open nothing in a project that is locked."""
        if (self.home / "LOCKED").exists():
            return SessionBeforeStartResult(block=True, reason="this project is locked")
        return None

    @hookimpl(when="startup|new")
    def session_start(self, event: SessionStartEvent) -> SessionStartResult | None:
        """Tell a new session what remains to be done."""
        todo = self.home / "TODO.md"
        return SessionStartResult(f"Open tasks:\n{todo.read_text()}") if todo.exists() else None

    @hookimpl
    async def session_before_switch(
        self, event: SessionBeforeSwitchEvent, ctx: HookContext
    ) -> SessionBeforeSwitchResult | None:
        """Ask before unsaved work is left."""
        if not self.dirty:
            return None
        answer = await ctx.ask("Leave without saving?", choices=["yes", "no"])
        return SessionBeforeSwitchResult(cancel=answer != "yes", reason="there is unsaved work")

    @hookimpl
    def session_before_fork(self, event: SessionBeforeForkEvent) -> SessionBeforeForkResult:
        """Keep forks out of a project that is being released."""
        frozen = (self.home / "RELEASE").exists()
        return SessionBeforeForkResult(cancel=frozen, reason="the project is being released")

    @hookimpl
    def session_compact(self, event: SessionCompactEvent, ctx: HookContext) -> None:
        """Tell the person that a model summarised the conversation."""
        if not event.from_extension:
            ctx.notify("The conversation was summarised.")

    @hookimpl
    def session_shutdown(self, event: SessionShutdownEvent, ctx: HookContext) -> None:
        """Print how a session ended if it failed."""
        if event.reason in ("error", "cancelled"):
            log.warning("session %s: %s", ctx.session_id, event.reason)


class Librarian:
    """Shortens long branches without a model, and labels the ones that are left."""

    @hookimpl
    def session_before_compact(
        self, event: SessionBeforeCompactEvent
    ) -> SessionBeforeCompactResult | None:
        """Keep what was planned, and the user's messages of the rest."""
        first_kept = event.preparation.first_kept_entry_id
        said = [entry.payload["message"] for entry in event.branch_entries if entry.kind == "message"]
        summary = "\n".join(m["content"] for m in said if m["role"] == "user")
        return SessionBeforeCompactResult(compaction=CompactionResult(summary, first_kept))

    @hookimpl
    def session_before_tree(self, event: SessionBeforeTreeEvent) -> SessionBeforeTreeResult:
        """Name the branch that is left."""
        return SessionBeforeTreeResult(label="tried", custom_instructions="Say why it was left.")

    @hookimpl
    def session_tree(self, event: SessionTreeEvent) -> None:
        """Log where the conversation continues."""
        log.info("leaf %s instead of %s", event.new_leaf_id, event.old_leaf_id)
