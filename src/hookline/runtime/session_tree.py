"""`Sessions`: start, switch, fork, navigate and compact sessions.

    fork = await app.sessions.fork("garden", entry_id)
    await app.sessions.compact(fork, "keep the names of files")

Each operation needs an idle session and asks its gate first. If a handler cancels it, nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hookline.errors import Blocked
from hookline.events import (
    SessionBeforeForkEvent,
    SessionBeforeSwitchEvent,
    SessionBeforeTreeEvent,
    SessionReason,
    SessionTreeEvent,
)
from hookline.hooks import HooklineError
from hookline.tape.entry import MODEL, THINKING

from .sessions import OpenSessions

if TYPE_CHECKING:
    from hookline.tape import Entry, Tape


@dataclass(frozen=True, slots=True)
class Navigation:
    """The move that `session_before_tree` judges, and the entries that it leaves behind."""

    session_id: str
    target_id: str
    old_leaf_id: str | None
    common_ancestor_id: str | None
    left_behind: list[Entry]
    summarise: bool


class Sessions(OpenSessions):
    """All sessions of one app."""

    # --- going elsewhere ----------------------------------------------------------------------

    async def new(self, leaving: str | None = None, *, session_id: str | None = None) -> str:
        """Start a session, closing `leaving` first if given."""
        target = session_id or self.fresh(leaving or "session")
        if (await self._app.tape(target)).leaf is not None:
            raise HooklineError(f"session {target!r} exists; resume it, or choose another name")
        await self._go(leaving, target, "new")
        return target

    async def switch(self, target: str, leaving: str | None = None) -> str:
        """Switch to another session, closing `leaving` first if given."""
        await self.tape(target)
        await self._go(leaving, target, "resume")
        return target

    async def _go(self, leaving: str | None, target: str, reason: SessionReason) -> None:
        if leaving == target:
            raise HooklineError(f"session {target!r} is the present one")
        if leaving is None:
            await self.open(target, reason)
            return
        async with self.queue(leaving).alone(f"leave {leaving!r}"):
            event = SessionBeforeSwitchEvent(reason, target)
            await self._gate("session_before_switch", event, leaving, "leaving the session")
            await self.close(leaving, reason, target)
        await self.open(target, reason, leaving)

    async def fork(
        self,
        session_id: str,
        entry_id: str | None = None,
        position: Literal["before", "at"] = "at",
        *,
        into: str | None = None,
    ) -> str:
        """Start a session that shares the entries of this one up to one of them, and switch to it."""
        async with self.queue(session_id).alone("fork"):
            tape = await self.tape(session_id)
            at = entry_id or (tape.leaf.id if tape.leaf else "")
            await tape.entry(at)
            event = SessionBeforeForkEvent(at, position)
            await self._gate("session_before_fork", event, session_id, "the fork")
            target = into or self.fresh(session_id)
            child = await tape.fork(target, entry_id=at, position=position)
            _, model, thinking = await self._choices(session_id)
            for kind, value in ((MODEL, model), (THINKING, thinking)):
                if value is not None:
                    await child.append(kind, {kind: value})
            await self.close(session_id, "fork", target)
        await self.open(target, "fork", session_id)
        return target

    # --- moving about in one session -------------------------------------------------------------

    async def navigate(
        self,
        session_id: str,
        entry_id: str,
        *,
        summarise: bool = False,
        instructions: str | None = None,
        label: str | None = None,
    ) -> Entry:
        """Continue from another entry, with a summary of the branch left behind if wanted."""
        app = self._app
        async with self.queue(session_id).alone("navigate"):
            tape = await self.tape(session_id)
            await tape.entry(entry_id)
            old = tape.leaf.id if tape.leaf else None
            preparation = await self._preparation(tape, entry_id, summarise)
            event = SessionBeforeTreeEvent(preparation)
            supplied = await self._gate("session_before_tree", event, session_id, "the navigation")
            summary: str | None = supplied.get("summary")
            instructions = supplied.get("custom_instructions") or instructions
            if summary is None and summarise and preparation.left_behind:
                summary = await self._summary(session_id, preparation.left_behind, instructions)
            moved = await tape.switch(entry_id, summary=summary)
            if label := supplied.get("label") or label:
                await tape.label(entry_id, label)
            tree = app.hooks["session_tree"]
            if tree.live:
                said = moved if summary is not None else None
                await tree.fire(SessionTreeEvent(entry_id, old, said), app.context(session_id))
            return moved

    async def _preparation(self, tape: Tape, target: str, summarise: bool) -> Navigation:
        shared, left = await tape.left_behind(target)
        leaf = tape.leaf and tape.leaf.id
        return Navigation(tape.session_id, target, leaf, shared, left, summarise)

    async def _summary(self, session_id: str, left: list[Entry], instructions: str | None) -> str:
        from hookline.agent.compaction import branch_request

        app = self._app
        model = app.models.get(await self.find_model(session_id))
        request = branch_request(left, instructions)
        return await app.engine.compactor.ask(request, model, app.context(session_id))

    async def compact(self, session_id: str, instructions: str | None = None) -> Entry | None:
        """Replace the older part of the context by a summary; return None if there is none."""
        app = self._app
        async with self.queue(session_id).alone("compact", "compaction"):
            tape = await self.tape(session_id)
            model = app.models.get(await self.find_model(session_id))
            return await app.engine.compactor.compact(
                tape, model, app.context(session_id), app.limits.compacting, instructions
            )

    async def handoff(
        self, session_id: str, name: str, *, summary: str | None = None, state: Any = None
    ) -> Entry:
        """Start a new context from a summary and state."""
        async with self.queue(session_id).alone("hand off"):
            tape = await self.tape(session_id)
            return await tape.handoff(name, state=state or {}, summary=summary)

    async def label(self, session_id: str, name: str, entry_id: str | None = None) -> Entry:
        """Label an entry, by default the last one."""
        tape = await self.tape(session_id)
        return await tape.label(entry_id or (tape.leaf and tape.leaf.id), name)

    async def _gate(self, name: str, event: Any, session_id: str, what: str) -> dict[str, Any]:
        """Fire a gate; return what its handlers supply, or raise `Blocked`."""
        hook = self._app.hooks[name]
        if not hook.live:
            return {}
        verdict = await hook.fire(event, self._app.context(session_id))
        if verdict.denied:
            raise Blocked(what, verdict.reason or "cancelled", verdict.decided_by)
        return verdict.supplied
