"""`SessionQueue`: the turns of one session run one after the other, in the order of their messages."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from hookline.errors import SessionBusy

if TYPE_CHECKING:
    from asyncio import Future

    from .turn import ActiveTurn

Phase: TypeAlias = Literal["idle", "turn", "compaction"]


@dataclass(frozen=True, slots=True)
class Activity:
    """The state of a session, as passed to `admit_message`."""

    session_id: str
    phase: Phase = "idle"
    waiting: int = 0
    """How many messages are queued already."""

    @property
    def busy(self) -> bool:
        """Whether a message has to wait."""
        return self.phase != "idle"


class SessionQueue:
    """The running turn of a session, and the turns waiting for it.

    `app.sessions.queue(session_id)` returns it. It exists while something refers to it.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.phase: Phase = "idle"
        self.turn: ActiveTurn | None = None
        """The turn that holds the session."""
        self._first: deque[Future[None]] = deque()
        self._later: deque[Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many turns wait."""
        return len(self._first) + len(self._later)

    @property
    def activity(self) -> Activity:
        """What the session is doing now."""
        return Activity(self.session_id, self.phase, self.waiting)

    @asynccontextmanager
    async def hold(self, turn: ActiveTurn, *, ahead: bool = False) -> AsyncGenerator[None]:
        """Wait until the session is free, then hold it; `ahead` goes before the follow-ups."""
        await self._wait(self._first if ahead else self._later)
        self.phase = "turn"
        self.turn = turn
        try:
            yield
        finally:
            self.turn = None
            self._release()

    @asynccontextmanager
    async def alone(self, what: str, phase: Phase = "turn") -> AsyncGenerator[None]:
        """Hold an idle session without a turn; raise `SessionBusy` if it is not idle."""
        if self.phase != "idle":
            raise SessionBusy(self.session_id, self.phase, what)
        self.phase = phase
        try:
            yield
        finally:
            self._release()

    async def _wait(self, line: deque[Future[None]]) -> None:
        if self.phase == "idle":
            self.phase = "turn"
            return
        from asyncio import CancelledError, get_running_loop

        place: Future[None] = get_running_loop().create_future()
        line.append(place)
        try:
            await place
        except CancelledError:
            if not place.cancelled():
                self._release()
            elif place in line:
                line.remove(place)
            raise

    def _release(self) -> None:
        """Pass the session to the next in line; it is never free in between."""
        for line in (self._first, self._later):
            while line:
                place = line.popleft()
                if not place.done():
                    place.set_result(None)
                    return
        self.phase = "idle"
