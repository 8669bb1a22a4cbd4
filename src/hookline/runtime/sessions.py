"""`OpenSessions`: the turn that each session runs, and its state while it is open.

A session opens with its first message and stays open until the app closes it. Of the sessions that are
idle only the latest stay open: everything that lasts is on the tape.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from hookline.errors import Blocked, UnknownSession
from hookline.events import (
    ModelSelectEvent,
    SessionBeforeStartEvent,
    SessionReason,
    SessionShutdownEvent,
    SessionStartEvent,
    ShutdownReason,
    ThinkingLevelSelectEvent,
)
from hookline.system.recent import Recent
from hookline.tape.entry import IMPORT, MODEL, THINKING
from hookline.turn_context import TurnContext, at

from .session_index import SessionIndex
from .session_queue import SessionQueue

if TYPE_CHECKING:
    from hookline.agent.conversation import Conversation
    from hookline.agent.run import AgentRun
    from hookline.tape import Tape

    from .app import Hookline
    from .turn import ActiveTurn

log = logging.getLogger("hookline.runtime.sessions")

MOST_OPEN = 256
"""How many sessions stay open while they are idle."""
MOST_KEPT = 32
"""How many open sessions, those used last, keep their conversation in memory."""


@dataclass(slots=True)
class Opened:
    """The state of an open session."""

    added: str = ""
    """The text that `session_start` handlers add to its next prompt."""
    model: str | None = None
    thinking: str | None = None


class OpenSessions(SessionIndex):
    """The open sessions: their turns, and the facts cached about them."""

    def __init__(self, app: Hookline) -> None:
        super().__init__(app)
        self._queues: WeakValueDictionary[str, SessionQueue] = WeakValueDictionary()
        self._open: dict[str, Opened] = {}
        """The open sessions, the one that was used last at the end."""
        self._conversations: Recent[str, Conversation] = Recent(MOST_KEPT)
        self.models: Callable[[], list[str]] | None = None
        """The models that a session may choose; None means any. A gateway allows only those in its
        settings, since a name on an imported tape could load a file or connect to an address."""

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
        """Open a session, unless it is open already."""
        known = self._open.pop(session_id, None)
        if known is not None:
            self._open[session_id] = known
            return known
        app = self._app
        ctx = app.context(session_id)
        before = app.hooks[SessionBeforeStartEvent]
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

    async def take_over(self, session_id: str) -> None:
        """Open a session that another process opened and left open: no event fires."""
        if session_id not in self._open:
            self._open[session_id] = Opened(*await self._choices(session_id))

    def hand_over(self, session_id: str) -> None:
        """Leave an open session to another process: no event fires."""
        self._open.pop(session_id, None)

    async def refresh(self, session_id: str) -> None:
        """Read again what another process may have chosen for an open session."""
        known = self._open.get(session_id)
        if known is not None:
            _, known.model, known.thinking = await self._choices(session_id)

    async def _started(
        self, session_id: str, opened: Opened, reason: SessionReason, previous: str | None
    ) -> None:
        start = self._app.hooks[SessionStartEvent]
        if start.live:
            event = SessionStartEvent(reason, previous)
            answers = await start.fire(event, self._app.context(session_id))
            added = (answer.additional_context for answer in answers)
            opened.added = "\n\n".join(text for text in (opened.added, *added) if text)

    async def _choices(self, session_id: str) -> tuple[str, str | None, str | None]:
        """Read the model and thinking level that were chosen for a session from its tape."""
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
        """Close all open sessions for the old handlers, and start them for the new ones afterwards."""
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
        """Close a session, if it is open."""
        self._conversations.pop(session_id, None)
        if self._open.pop(session_id, None) is not None:
            await self._shut_down(session_id, reason, target)

    async def close_idle(self) -> None:
        """Close the sessions that were idle longest if more than `MOST_OPEN` are open.

        A process that serves any number of sessions so holds the state of a few. Everything else about
        a session is on its tape; its next message opens it again.
        """
        spare = len(self._open) - MOST_OPEN
        if spare <= 0:
            return
        idle = (each for each in [*self._open] if self.queue(each).phase == "idle")
        for session_id in islice(idle, spare):
            with at(TurnContext(session_id)):  # not part of the turn that runs this
                async with self.queue(session_id).alone("close"):
                    await self.close(session_id)

    async def close_all(self, reason: ShutdownReason) -> None:
        """Close all open sessions."""
        for session_id in list(self._open):
            await self.close(session_id, reason)

    async def _shut_down(
        self, session_id: str, reason: ShutdownReason, target: str | None = None
    ) -> None:
        shutdown = self._app.hooks[SessionShutdownEvent]
        if shutdown.live:
            await shutdown.fire(SessionShutdownEvent(reason, target), self._app.context(session_id))

    async def tape(self, session_id: str) -> Tape:
        """Return the tape of a session; raise `UnknownSession` if it has no entries."""
        tape = await self._app.tape(session_id)
        if tape.leaf is None:
            raise UnknownSession(f"there is no session {session_id!r}; `hookline tape list` shows them")
        return tape

    def conversation(self, session_id: str) -> Conversation:
        """Return what an open session keeps of its context from turn to turn."""
        from hookline.agent.conversation import Conversation

        found = self._conversations.get(session_id) or Conversation()
        if session_id in self._open:
            self._conversations[session_id] = found
        return found

    async def is_cut_off(self, session_id: str) -> bool:
        """Whether a turn of this session was started and never finished."""
        from hookline.agent.journal import cut_off_turn

        return await cut_off_turn(await self._app.tape(session_id)) is not None

    # --- the model of a session -----------------------------------------------------------------

    async def find_model(self, session_id: str) -> str:
        """Return the model of a session, open or not."""
        return self._model(self._open.get(session_id) or Opened(*await self._choices(session_id)))

    def model_of(self, session_id: str) -> str:
        """Return the model of an open session."""
        return self._model(self._open.get(session_id))

    def _model(self, opened: Opened | None) -> str:
        chosen = opened.model if opened else None
        return chosen if chosen and self._may_have(chosen) else self._app.model

    def _may_have(self, model: str) -> bool:
        return self.models is None or model in self.models()

    def thinking_of(self, session_id: str) -> str | None:
        """Return the thinking level of an open session."""
        opened = self._open.get(session_id)
        return (opened.thinking if opened else None) or self._app.options.get(THINKING)

    async def choose_model(self, session_id: str, name: str, source: str = "user") -> None:
        """Choose the model of a session, from its next turn on and also after a restart."""
        app = self._app
        app.models.get(name)  # raises if it is unknown
        opened = await self.open(session_id)
        previous = self.model_of(session_id)
        await (await app.tape(session_id)).append(MODEL, {MODEL: name})
        opened.model = name
        select = app.hooks[ModelSelectEvent]
        if select.live:
            await select.fire(ModelSelectEvent(name, previous, source), app.context(session_id))

    async def choose_thinking(self, session_id: str, level: str) -> None:
        """Choose the thinking level of a session, also after a restart."""
        from hookline.models.thinking_level import check_thinking

        app = self._app
        check_thinking(level)
        opened = await self.open(session_id)
        previous = self.thinking_of(session_id)
        await (await app.tape(session_id)).append(THINKING, {THINKING: level})
        opened.thinking = level
        select = app.hooks[ThinkingLevelSelectEvent]
        if select.live:
            await select.fire(ThinkingLevelSelectEvent(level, previous), app.context(session_id))
