"""The sessions that a worker has, and the messages that are being answered in them.

A job is one session's. While it lasts, this worker has the session alone: what comes for it meanwhile
goes through the same lane, so that it may join the running turn, stop it, or wait for it. When the
worker dies, another takes the job, and the tape says how far each message came.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from procrastinate.jobs import Job

from hookline.channel import NOWHERE, Channel, Note, Question
from hookline.errors import TapeConflict, TapeError, TapeFull, TapeLocked, TapeReadOnly, TapeUnavailable
from hookline.events import MessageCancelEvent
from hookline.runtime.delivery import to_session
from hookline.runtime.inbox import Fate, fates_of, keys_of, packed
from hookline.runtime.turn import TurnResult
from hookline.types import Envelope, StreamEvent, address_of

from .cluster import Bundle, Queue, Queued, Relay
from .cluster.answer_batches import Gathering
from .cluster.items import Item, address
from .cluster.queue import End
from .message_processor import TOGETHER, Answering, told
from .outcomes import ending_of, give_up
from .remote_channel import RemoteChannel

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

log = logging.getLogger("hookline.worker")

PAGE: Final = 32
"""How many messages of one session are taken at a time."""
PASSING: Final = (TapeUnavailable, TapeReadOnly, TapeFull, TapeLocked, TapeConflict)
"""Errors of the tape that are no message's: what they cut off is taken up again."""
CONFLICTS: Final = 20
"""How often a message is taken up again whose turn found another writer on the tape."""


class Parked(Exception):
    """A job is not done, and goes on in another worker."""


@dataclass(slots=True)
class ClaimedSession:
    """A session that this worker has, with the messages that are being answered in it."""

    session_id: str
    worker: int
    tries: int
    """How often the job was taken before: other workers may have begun with these messages."""
    last: int = 0
    """The number of the message that was taken last."""
    unsettled: set[str] = field(default_factory=set[str])
    running: set[str] = field(default_factory=set[str])
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    fates: dict[str, Fate] | None = None
    is_broken: bool = False
    """Whether a message could not be finished, so that those after it must wait too."""
    has_ended: bool = False
    """Whether its job was ended with its last message."""


class ClaimedSessions:
    """The sessions of one worker: a house to those who answer its messages."""

    kept = "the worker is going down; another goes on with the message"

    def __init__(
        self, app: Hookline, queue: Queue, relay: Relay, *, debounce: float = 0.0, deaths: int = 5
    ) -> None:
        self.app = app
        self._deaths = deaths
        self.answering = Answering(self, debounce)
        self.draining = False
        """Whether nothing more is begun here."""
        self._queue = queue
        self._relay = relay
        self._gathering = Gathering(relay)
        self._lines: dict[str, ClaimedSession] = {}
        self._queued: dict[str, Queued] = {}
        self._replies: dict[str, RemoteChannel] = {}

    # --- sessions -----------------------------------------------------------------------------

    async def have(self, job: Job) -> bool:
        """Have the session of a job until no message of it waits; whether its job was ended with it."""
        session_id, worker = job.lock or "", job.worker_id or 0
        page: list[Queued] = []
        while session_id in self._lines or not page:
            known = self._lines.get(session_id)
            if known is not None:
                await self._put_away(known, worker)
            page = await self._queue.following(session_id, 0, PAGE)
            if not page:
                return False
        line = self._lines[session_id] = ClaimedSession(session_id, worker, job.attempts)
        await self._have(line, page)
        return line.has_ended

    async def _put_away(self, line: ClaimedSession, worker: int) -> None:
        """Wait until a session is no longer had here, of which there is a job again."""
        if not line.has_ended:  # this worker was silent, and is given the job that it still has
            line.worker = worker
        await line.over.wait()
        if not line.has_ended:
            raise Parked

    async def arrived(self, session_id: str) -> bool:
        """Something came for a session; where that is had here, it is taken. Whether it is."""
        line = self._lines.get(session_id)
        if line is None or line.has_ended:
            return False
        await self.follow(line)
        return not line.has_ended

    @property
    def sessions(self) -> list[str]:
        """The sessions at hand."""
        return [*self._lines]

    async def look(self) -> None:
        """See what came for all sessions at hand while nobody listened."""
        for line in [*self._lines.values()]:
            await self.follow(line)

    async def _have(self, line: ClaimedSession, page: list[Queued]) -> None:
        try:
            await self._to_the_end(line, page)
        except BaseException:  # what is under way for it must not go on beside whoever takes it next
            line.is_broken = True
            await self.answering.park(line.session_id)
            raise
        finally:
            del self._lines[line.session_id]
            line.over.set()
            for key in line.unsettled:
                self._queued.pop(key, None)
                self._replies.pop(key, None)
        # What waits and was not taken may have no other job than this.
        if line.unsettled or (not line.has_ended and (self.draining or line.is_broken)):
            raise Parked

    async def _to_the_end(self, line: ClaimedSession, page: list[Queued]) -> None:
        await self.app.sessions.refresh(line.session_id)  # another worker may have had it since
        await self.follow(line, page)
        while line.running:
            await line.idle.wait()
            if line.has_ended:
                return
            await self.follow(line)

    async def follow(self, line: ClaimedSession, page: list[Queued] | None = None) -> None:
        """Take the messages of a session that wait, in their order; those of a page that was read."""
        async with line.reading:
            # A notice may come when the line is over: then what it tells of has a job of its own.
            while not (self.draining or line.is_broken or line.has_ended or line.over.is_set()):
                if page is None:
                    page = await self._queue.following(line.session_id, line.last, PAGE)
                is_last = len(page) < PAGE
                for queued in page:
                    if self.draining or line.is_broken:  # since these were read
                        return
                    if queued.number <= line.last:  # taken since these were read
                        continue
                    line.last = queued.number
                    try:
                        await self._take(line, queued)
                    except BaseException:  # it is not answered here, and those after it must wait
                        line.is_broken = True
                        self.left(queued.envelope)
                        raise
                if is_last:
                    return
                page = None

    async def _take(self, line: ClaimedSession, queued: Queued) -> None:
        self._queued[queued.id] = queued
        self._replies[queued.id] = RemoteChannel(self._relay, self._gathering, queued)
        line.unsettled.add(queued.id)
        line.running.add(queued.id)
        line.idle.clear()
        if queued.deaths > self._deaths:
            await self._give_up(line, queued)
            return
        if not line.tries:
            self.answering.take(queued.envelope, alone=queued.alone)
            return
        if line.fates is None:
            line.fates = await fates_of(self.app.store(), line.session_id, queued.accepted)
        fate = line.fates.get(queued.envelope["message_id"])
        await self.answering.take_up(queued.envelope, line.session_id, fate)

    async def _give_up(self, line: ClaimedSession, queued: Queued) -> None:
        """Settle a message that nobody survives."""
        why = f"{queued.deaths} workers ended in the middle of this message; it is given up"
        log.error("worker.gives_up session=%s message=%s", line.session_id, queued.number)
        await give_up(await self.app.tape(line.session_id), queued.envelope, why)
        self._end(self._replies[queued.id], TurnResult("", outcome="failed", stopped=why))
        await self.settled(queued.envelope, "failed", 0.0)
        self.left(queued.envelope)

    # --- a house, to those who answer -----------------------------------------------------------

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message."""
        return self._replies.get(keys_of(message)[0], NOWHERE)

    @staticmethod
    def _end(reply: RemoteChannel, result: TurnResult) -> None:
        reply.stream(StreamEvent("end", {"result": result}))

    def session_of(self, message: Envelope) -> str | None:
        """The session that its gateway found for it."""
        queued = self._queued.get(keys_of(message)[0])
        return queued.session_id if queued is not None else None

    def left(self, message: Envelope) -> None:
        """Nothing more is done for a message here."""
        key = keys_of(message)[0]
        line = self._line_of(key)
        self._queued.pop(key, None)
        if line is not None:
            line.running.discard(key)
            if not line.running:
                line.idle.set()

    def _line_of(self, key: str) -> ClaimedSession | None:
        queued = self._queued.get(key)
        return self._lines.get(queued.session_id) if queued is not None else None

    async def settled(self, message: Envelope, outcome: str, seconds: float) -> None:
        """Note what became of a message, and send its end on its way."""
        key, *joined = keys_of(message)
        line = self._line_of(key)
        reply = self._replies.get(key)
        if line is None or reply is None or line.is_broken:
            return
        if not reply.has_ended:
            await ending_of(reply, self.app.store(), line.session_id, message, outcome)
        ends = [await self._part_of_another(line, name) for name in joined if name in self._replies]
        ends.append(await reply.closed())
        # With the last message of a session its job ends. While it is asked whether that was the last,
        # nothing more is taken here: what comes meanwhile has a job of its own, which another may have.
        alone = not line.reading.locked() and line.running <= {key, *joined}
        try:
            async with line.reading if alone else nullcontext():
                settled = await self._queue.settle(
                    message,
                    outcome,
                    session_id=line.session_id,
                    worker=line.worker,
                    ends=ends,
                    alone=alone,
                )
                line.has_ended = settled == "over"
        except TapeError as error:  # whoever takes the job next finds on the tape what became of it
            log.warning("worker.not_settled session=%s error=%s", line.session_id, error)
            return
        if settled == "too late":
            log.warning("worker.too_late session=%s: another worker has it", line.session_id)
            return
        for name in (key, *joined):
            line.unsettled.discard(name)
            self._replies.pop(name, None)

    async def _part_of_another(self, line: ClaimedSession, key: str) -> End:
        """The end of a message that became part of the one that followed it."""
        reply = self._replies[key]
        if not reply.has_ended:  # another worker had taken them together
            self._end(reply, TurnResult(line.session_id, outcome="steered", stopped=TOGETHER))
        return await reply.closed()

    async def failed(self, channel: str, error: Exception) -> None:
        """Tell of something that failed; the rest goes on."""
        log.error("message.failed channel=%s error=%s", channel, told(error))
        log.debug("message.failed", exc_info=error)

    async def keeps(self, message: Envelope, error: Exception) -> bool:
        """Whether an error is the tape's: then the message, and those after it, are taken up again."""
        line = self._line_of(keys_of(message)[0])
        if line is None or not isinstance(error, PASSING):
            return False
        if isinstance(error, TapeConflict) and line.tries >= CONFLICTS:
            return False
        line.is_broken = True
        await self.answering.park(line.session_id)
        return True

    async def cancel(self, session_id: str, channel: str = "", chat_id: str = "") -> bool:
        """Stop a session's running turn; whether there was one."""
        cancelled = await self.app.cancel(session_id)
        hook = self.app.hooks["message:cancel"]
        if cancelled and hook.live:
            await hook.fire(MessageCancelEvent(channel, chat_id), self.app.context(session_id))
        return cancelled

    async def notify(self, to: Envelope, note: Note) -> None:
        """Show a note in a chat, through whichever gateway has its channel."""
        await self._to(to, ("notify", [note.text, note.session_id]))

    async def ask(self, to: Envelope, question: Question) -> None:
        """Ask in a chat; the answer is kept with the question, where the one who asks finds it."""
        await self._to(to, ("ask", dict(question.request or {})))
        try:
            await asyncio.Event().wait()
        finally:
            await self._to(to, ("asked", question.id))

    async def _to(self, to: Envelope, item: Item) -> None:
        await self._relay.send(address_of(to)[0], Bundle(address(to), [item]))

    async def deliver(self, outbound: Envelope) -> bool:
        """Send an envelope to whichever gateway has its channel."""
        outbound = await to_session(self.app, outbound)
        bundle = Bundle(address(outbound), [("send", packed(outbound))])
        await self._relay.send(address_of(outbound)[0], bundle)
        return True
