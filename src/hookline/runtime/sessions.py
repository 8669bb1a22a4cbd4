"""Sessions: opened and closed, switched, forked, navigated, compacted, each with its own model.

    fork = await app.sessions.fork("garden", entry_id)
    await app.sessions.compact(fork, "keep the names of files")

Everything here wants an idle session, asks its gate first, and where that cancels leaves everything
as it was.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from hookline.errors import Blocked, UnknownSession
from hookline.events import (
    ModelSelectEvent,
    SessionBeforeForkEvent,
    SessionBeforeStartEvent,
    SessionBeforeSwitchEvent,
    SessionBeforeTreeEvent,
    SessionReason,
    SessionShutdownEvent,
    SessionStartEvent,
    SessionTreeEvent,
    ShutdownReason,
    ThinkingLevelSelectEvent,
)
from hookline.hooks import HooklineError

from .session_index import SessionIndex
from .session_queue import SessionQueue

if TYPE_CHECKING:
    from hookline.agent.run import AgentRun
    from hookline.tape import Entry, Tape

    from .app import Hookline
    from .turn import ActiveTurn

log = logging.getLogger("hookline.runtime.sessions")

MODEL = "model"
IMPORT = "import"
THINKING = "thinking"


@dataclass(slots=True)
class Opened:
    """What is known of an open session."""

    added: str = ""
    """What `session_start` handlers add to its next prompt."""
    model: str | None = None
    thinking: str | None = None


@dataclass(frozen=True, slots=True)
class Navigation:
    """What `session_before_tree` is shown: where the leaf is, where it goes, what is left behind."""

    session_id: str
    target_id: str
    old_leaf_id: str | None
    common_ancestor_id: str | None
    left_behind: list[Entry]
    summarise: bool


class Sessions(SessionIndex):
    """The sessions of one app."""

    def __init__(self, app: Hookline) -> None:
        super().__init__(app)
        self._queues: WeakValueDictionary[str, SessionQueue] = WeakValueDictionary()
        self._open: dict[str, Opened] = {}
        self.models: Callable[[], list[str]] | None = None
        """The models that a session may have; None: any. A gateway takes only those of its settings:
        a name on a tape, which may come from elsewhere, could load a file or connect to an address."""

    # --- the turn of a session ----------------------------------------------------------------

    def queue(self, session_id: str) -> SessionQueue:
        """Return the queue of a session. It is gone as soon as nothing refers to it."""
        queue = self._queues.get(session_id)
        if queue is None:
            queue = self._queues[session_id] = SessionQueue(session_id)
        return queue

    def turn(self, session_id: str) -> ActiveTurn | None:
        """Return the turn that holds a session."""
        queue = self._queues.get(session_id)
        return None if queue is None else queue.turn

    def run(self, session_id: str) -> AgentRun | None:
        """Return the agent run of the turn that holds a session."""
        turn = self.turn(session_id)
        return None if turn is None else turn.run

    @property
    def runs(self) -> dict[str, AgentRun]:
        """The agent runs of all sessions, by session."""
        turns = [(session_id, queue.turn) for session_id, queue in self._queues.items()]
        return {session_id: turn.run for session_id, turn in turns if turn and turn.run}

    # --- open and close -----------------------------------------------------------------------

    async def open(
        self, session_id: str, reason: SessionReason = "startup", previous: str | None = None
    ) -> Opened:
        """Open a session the first time this process sees it."""
        known = self._open.get(session_id)
        if known is not None:
            return known
        app = self._app
        ctx = app.context(session_id)
        before = app.hooks["session_before_start"]
        if before.live:
            event = SessionBeforeStartEvent(session_id, ctx.agent_id, app.tools.names(), reason)
            verdict = await before.fire(event, ctx)
            if not verdict.allowed:
                await self._shut_down(session_id, "error")
                raise Blocked("the session", verdict.reason, verdict.decided_by)
        opened = Opened(*await self._choices(session_id))
        if opened.model and not self._may_have(opened.model):
            log.warning(
                "session.model session=%r model=%r is not configured; %r answers",
                session_id,
                opened.model,
                app.model,
            )
        self._open[session_id] = opened
        await self._started(session_id, opened, reason, previous)
        return opened

    async def refresh(self, session_id: str) -> None:
        """See what was chosen for a session elsewhere, where this process has it open."""
        known = self._open.get(session_id)
        if known is not None:
            _, known.model, known.thinking = await self._choices(session_id)

    async def _started(
        self, session_id: str, opened: Opened, reason: SessionReason, previous: str | None
    ) -> None:
        start = self._app.hooks["session_start"]
        if start.live:
            event = SessionStartEvent(reason, previous)
            answers = await start.fire(event, self._app.context(session_id))
            added = (answer.additional_context for answer in answers)
            opened.added = "\n\n".join(text for text in (opened.added, *added) if text)

    async def _choices(self, session_id: str) -> tuple[str, str | None, str | None]:
        """The model and thinking level that were chosen for a session, from its tape."""
        store = self._app.get_tape_store()
        if store is None:  # a plugin answers without a tape
            return "", None, None
        chosen: dict[str, str] = {}
        for entry in await store.entries(session_id, kinds={MODEL, THINKING, IMPORT}):
            if entry.kind != IMPORT:
                chosen[entry.kind] = entry.payload[entry.kind]
            elif MODEL in chosen and not self._is_configured(chosen[MODEL]):
                log.warning(
                    "session.model session=%r model=%r comes from an imported tape and is not "
                    "configured; %r answers",
                    session_id,
                    chosen.pop(MODEL),
                    self._app.model,
                )
        return "", chosen.get(MODEL), chosen.get(THINKING)

    def _is_configured(self, model: str) -> bool:
        from .user_commands import configured_models

        return model in configured_models(self._app)

    @asynccontextmanager
    async def reloading(self) -> AsyncGenerator[None]:
        """Tell the old handlers that open sessions end for them, and the new ones that they go on."""
        opened = dict(self._open)
        for session_id in opened:
            await self._shut_down(session_id, "reload", session_id)
        yield
        for session_id, known in opened.items():
            if self._open.get(session_id) is known:
                await self._started(session_id, known, "reload", session_id)

    async def close(
        self, session_id: str, reason: ShutdownReason = "completed", target: str | None = None
    ) -> None:
        """Tell everybody that a session closes."""
        if self._open.pop(session_id, None) is not None:
            await self._shut_down(session_id, reason, target)

    async def close_all(self, reason: ShutdownReason) -> None:
        """Close what is open."""
        for session_id in list(self._open):
            await self.close(session_id, reason)

    async def _shut_down(
        self, session_id: str, reason: ShutdownReason, target: str | None = None
    ) -> None:
        shutdown = self._app.hooks["session_shutdown"]
        if shutdown.live:
            await shutdown.fire(SessionShutdownEvent(reason, target), self._app.context(session_id))

    async def tape(self, session_id: str) -> Tape:
        """The tape of a session that exists; that of a running turn is shared."""
        tape = await self._app.tape(session_id)
        if tape.leaf is None:
            raise UnknownSession(f"there is no session {session_id!r}; `hookline tape list` shows them")
        return tape

    # --- going elsewhere ----------------------------------------------------------------------

    async def new(self, leaving: str | None = None, *, session_id: str | None = None) -> str:
        """Start a session, closing `leaving` first if given."""
        target = session_id or self.fresh(leaving or "session")
        if (await self._app.tape(target)).leaf is not None:
            raise HooklineError(f"session {target!r} exists; resume it, or choose another name")
        await self._go(leaving, target, "new")
        return target

    async def switch(self, target: str, leaving: str | None = None) -> str:
        """Go on with another session."""
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
        """Begin a session that shares this one's entries up to one of them, and go on with it."""
        async with self.queue(session_id).alone("fork"):
            tape = await self.tape(session_id)
            at = entry_id or (tape.leaf.id if tape.leaf else "")
            await tape.entry(at)
            event = SessionBeforeForkEvent(at, position)
            await self._gate("session_before_fork", event, session_id, "the fork")
            target = into or self.fresh(session_id)
            child = await tape.fork(target, entry_id=at, position=position)
            opened = self._open.get(session_id) or Opened()
            for kind, value in ((MODEL, opened.model), (THINKING, opened.thinking)):
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
        """Go on from another entry; where asked for, with a summary of the branch left behind."""
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
        model = app.models.get(self.model_of(session_id))
        request = branch_request(left, instructions)
        return await app.engine.compactor.ask(request, model, app.context(session_id))

    async def compact(self, session_id: str, instructions: str | None = None) -> Entry | None:
        """Put a summary in place of the older part of the context; None where there is none."""
        app = self._app
        async with self.queue(session_id).alone("compact", "compaction"):
            tape = await self.tape(session_id)
            model = app.models.get(self.model_of(session_id))
            return await app.engine.compactor.compact(
                tape, model, app.context(session_id), app.limits.compacting, instructions
            )

    async def handoff(
        self, session_id: str, name: str, *, summary: str | None = None, state: Any = None
    ) -> Entry:
        """Start the context anew, with what whoever goes on needs to know."""
        async with self.queue(session_id).alone("hand off"):
            tape = await self.tape(session_id)
            return await tape.handoff(name, state=state or {}, summary=summary)

    async def label(self, session_id: str, name: str, entry_id: str | None = None) -> Entry:
        """Give an entry a name; without one, the last."""
        tape = await self.tape(session_id)
        return await tape.label(entry_id or (tape.leaf and tape.leaf.id), name)

    # --- the model of a session -----------------------------------------------------------------

    def model_of(self, session_id: str) -> str:
        """The model that answers in a session."""
        opened = self._open.get(session_id)
        chosen = opened.model if opened else None
        return chosen if chosen and self._may_have(chosen) else self._app.model

    def _may_have(self, model: str) -> bool:
        return self.models is None or model in self.models()

    def thinking_of(self, session_id: str) -> str | None:
        """How hard the model thinks in a session."""
        opened = self._open.get(session_id)
        return (opened.thinking if opened else None) or self._app.options.get(THINKING)

    async def choose_model(self, session_id: str, name: str, source: str = "user") -> None:
        """Have another model answer in a session, from its next model call on, also after a restart."""
        app = self._app
        app.models.get(name)  # one that is unknown says so now
        opened = await self.open(session_id)
        previous = self.model_of(session_id)
        await (await app.tape(session_id)).append(MODEL, {MODEL: name})
        opened.model = name
        select = app.hooks["model_select"]
        if select.live:
            await select.fire(ModelSelectEvent(name, previous, source), app.context(session_id))

    async def choose_thinking(self, session_id: str, level: str) -> None:
        """Have the model think more or less in a session, also after a restart."""
        from hookline.models.thinking import check_thinking

        app = self._app
        check_thinking(level)
        opened = await self.open(session_id)
        previous = self.thinking_of(session_id)
        await (await app.tape(session_id)).append(THINKING, {THINKING: level})
        opened.thinking = level
        select = app.hooks["thinking_level_select"]
        if select.live:
            await select.fire(ThinkingLevelSelectEvent(level, previous), app.context(session_id))

    async def _gate(self, name: str, event: Any, session_id: str, what: str) -> dict[str, Any]:
        """Ask a gate; give what its handlers supply, or raise `Blocked`."""
        hook = self._app.hooks[name]
        if not hook.live:
            return {}
        verdict = await hook.fire(event, self._app.context(session_id))
        if verdict.denied:
            raise Blocked(what, verdict.reason or "cancelled", verdict.decided_by)
        return verdict.supplied
