"""Lanes: one per session, so that it does one thing at a time and everyone else waits in order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakValueDictionary

from hookline.hooks import HooklineError
from hookline.types import NOBODY, Identity

if TYPE_CHECKING:
    from asyncio import Future

Phase: TypeAlias = Literal["idle", "turn", "compaction"]


class SessionBusy(HooklineError, RuntimeError):
    """Something was asked of a session that only an idle one can do."""

    def __init__(self, session_id: str, phase: Phase, what: str) -> None:
        doing = {"turn": "in the middle of a turn", "compaction": "being compacted"}.get(phase, phase)
        super().__init__(f"cannot {what}: session {session_id!r} is {doing}; wait for it, or cancel it")


@dataclass(frozen=True, slots=True)
class Activity:
    """What a session is doing, as `admit_message` sees it."""

    session_id: str
    phase: Phase = "idle"
    waiting: int = 0
    """How many messages are queued already."""

    @property
    def busy(self) -> bool:
        """Whether a message has to wait."""
        return self.phase != "idle"


class Lane:
    """One session's line: what it is doing, and who waits for it."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.phase: Phase = "idle"
        self.identity: Identity = NOBODY
        """On whose behalf the turn at hand runs."""
        self._first: deque[Future[None]] = deque()
        self._later: deque[Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._first) + len(self._later)

    @property
    def activity(self) -> Activity:
        """What the session is doing now."""
        return Activity(self.session_id, self.phase, self.waiting)

    @asynccontextmanager
    async def turn(self, identity: Identity = NOBODY, *, ahead: bool = False) -> AsyncGenerator[None]:
        """Wait for one's turn and have the session alone; `ahead` goes before the follow-ups."""
        await self._wait(self._first if ahead else self._later)
        self.phase = "turn"
        self.identity = identity
        try:
            yield
        finally:
            self.identity = NOBODY
            self._pass_on()

    @asynccontextmanager
    async def alone(self, what: str, phase: Phase = "turn") -> AsyncGenerator[None]:
        """Have an idle session alone; a busy one is not waited for."""
        if self.phase != "idle":
            raise SessionBusy(self.session_id, self.phase, what)
        self.phase = phase
        try:
            yield
        finally:
            self._pass_on()

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
                self._pass_on()
            elif place in line:
                line.remove(place)
            raise

    def _pass_on(self) -> None:
        """Hand the session to whoever waits; it is never free in between."""
        for line in (self._first, self._later):
            while line:
                place = line.popleft()
                if not place.done():
                    place.set_result(None)
                    return
        self.phase = "idle"


class Lanes:
    """The lanes by session; one that nobody uses is forgotten."""

    def __init__(self) -> None:
        self._lanes: WeakValueDictionary[str, Lane] = WeakValueDictionary()

    def of(self, session_id: str) -> Lane:
        """A session's lane. Keep it as long as it is used."""
        lane = self._lanes.get(session_id)
        if lane is None:
            lane = self._lanes[session_id] = Lane(session_id)
        return lane

    def identity_of(self, session_id: str) -> Identity:
        """On whose behalf the session's turn runs; `NOBODY` if there is none."""
        lane = self._lanes.get(session_id)
        return NOBODY if lane is None else lane.identity
