"""The sessions that a worker has claimed, and the messages it is answering in them.

A job belongs to one session. While it lasts, this worker alone owns the session: new messages go
through the same queue, so they can join the running turn, stop it, or wait. If the worker dies,
another takes the job, and the tape says how far each message got.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from procrastinate.jobs import Job

from hookline.channel import NOWHERE, Channel, Note, Question
from hookline.errors import TapeConflict, TapeError, TapeUnavailable
from hookline.events import MessageCancelEvent
from hookline.runtime.delivery import to_session
from hookline.runtime.inbox import Fate, fates_of, keys_of, packed
from hookline.runtime.turn import TurnResult
from hookline.types import Envelope, StreamEvent, address_of

from .cluster import Bundle, Queue, Queued, Relay
from .cluster.answer_batches import Gathering
from .cluster.items import Item, address
from .cluster.queue import End
from .message_processor import TOGETHER, MessageProcessor, told
from .outcomes import ending_of, give_up
from .remote_channel import RemoteChannel

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

log = logging.getLogger("hookline.serve.worker")

PAGE: Final = 32
"""How many messages of one session are read at a time."""
PASSING: Final = (TapeUnavailable, TapeConflict)
"""Tape errors that no message caused. The interrupted messages are retried."""
CONFLICTS: Final = 20
"""How often a message is retried when its turn finds another writer on the tape."""


class _Parked(Exception):
    """The job is not done; another worker continues it."""


@dataclass(slots=True)
class ClaimedSession:
    """A session that this worker owns, with the messages being answered in it."""

    session_id: str
    worker: int
    tries: int
    """How often the job was taken before. Other workers may have started these messages."""
    last: int = 0
    """The number of the last message taken."""
    unsettled: set[str] = field(default_factory=set[str])
    running: set[str] = field(default_factory=set[str])
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    fates: dict[str, Fate] | None = None
    is_broken: bool = False
    """Whether a message could not be finished, so that later ones must wait."""
    has_ended: bool = False
    """Whether the job ended with its last message."""


class ClaimedSessions:
    """The claimed sessions of one worker; the `MessageHost` of their messages."""

    kept = "the worker is going down; another goes on with the message"

    def __init__(
        self, app: Hookline, queue: Queue, relay: Relay, *, debounce: float = 0.0, deaths: int = 5
    ) -> None:
        self.app = app
        self._deaths = deaths
        self.answering = MessageProcessor(self, debounce)
        self.draining = False
        """Whether the worker has stopped starting work."""
        self._queue = queue
        self._relay = relay
        self._gathering = Gathering(relay)
        self._lines: dict[str, ClaimedSession] = {}
        self._queued: dict[str, Queued] = {}
        self._replies: dict[str, RemoteChannel] = {}

    # --- sessions -----------------------------------------------------------------------------

    async def have(self, job: Job) -> bool:
        """Own the session of a job until no message waits. Returns whether the job ended with the last
        one.
        """
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
        """Wait until this worker releases the session before taking its new job."""
        if not line.has_ended:  # this worker was silent, and got the job that it still holds
            line.worker = worker
        await line.over.wait()
        if not line.has_ended:
            raise _Parked

    async def arrived(self, session_id: str) -> bool:
        """Process a queued message if this worker owns the session. Returns whether it does."""
        line = self._lines.get(session_id)
        if line is None or line.has_ended:
            return False
        await self.follow(line)
        return not line.has_ended

    @property
    def sessions(self) -> list[str]:
        """The claimed sessions."""
        return [*self._lines]

    async def look(self) -> None:
        """Read new messages of all claimed sessions, after a time without notifications."""
        for line in [*self._lines.values()]:
            await self.follow(line)

    async def _have(self, line: ClaimedSession, page: list[Queued]) -> None:
        try:
            await self._to_the_end(line, page)
        except BaseException:  # stop the work in progress: the next owner must not run beside it
            line.is_broken = True
            await self.answering.park(line.session_id)
            raise
        finally:
            del self._lines[line.session_id]
            line.over.set()
            for key in line.unsettled:
                self._queued.pop(key, None)
                self._replies.pop(key, None)
        # Waiting messages that were not taken may have no job but this one.
        if line.unsettled or (not line.has_ended and (self.draining or line.is_broken)):
            raise _Parked

    async def _to_the_end(self, line: ClaimedSession, page: list[Queued]) -> None:
        await self.app.sessions.refresh(line.session_id)  # another worker may have owned it since
        await self.follow(line, page)
        while line.running:
            await line.idle.wait()
            if line.has_ended:
                return
            await self.follow(line)

    async def follow(self, line: ClaimedSession, page: list[Queued] | None = None) -> None:
        """Take the waiting messages of a session in order, from a page that was read."""
        async with line.reading:
            # A notification may arrive after the session was released: then the message has its own
            # job.
            while not (self.draining or line.is_broken or line.has_ended or line.over.is_set()):
                if page is None:
                    page = await self._queue.following(line.session_id, line.last, PAGE)
                is_last = len(page) < PAGE
                for queued in page:
                    if self.draining or line.is_broken:  # settled since the page was read
                        return
                    if queued.number <= line.last:  # taken since the page was read
                        continue
                    line.last = queued.number
                    try:
                        await self._take(line, queued)
                    except BaseException:  # it is not answered here, and later messages must wait
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
        """Settle a message that killed every worker that tried it."""
        why = f"{queued.deaths} workers ended in the middle of this message; it is given up"
        log.error("worker.gives_up session=%s message=%s", line.session_id, queued.number)
        await give_up(await self.app.tape(line.session_id), queued.envelope, why)
        self._end(self._replies[queued.id], TurnResult("", outcome="failed", stopped=why))
        await self.settled(queued.envelope, "failed", 0.0)
        self.left(queued.envelope)

    # --- a host, to those who answer -----------------------------------------------------------

    def reply_to(self, message: Envelope) -> Channel:
        """The channel of a message."""
        return self._replies.get(keys_of(message)[0], NOWHERE)

    @staticmethod
    def _end(reply: RemoteChannel, result: TurnResult) -> None:
        reply.stream(StreamEvent("end", {"result": result}))

    def session_of(self, message: Envelope) -> str | None:
        """The session that the gateway resolved for it."""
        queued = self._queued.get(keys_of(message)[0])
        return queued.session_id if queued is not None else None

    def left(self, message: Envelope) -> None:
        """Stop working on a message."""
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
        """Record the outcome of a message and send the end of its answer."""
        key, *joined = keys_of(message)
        line = self._line_of(key)
        reply = self._replies.get(key)
        if line is None or reply is None or line.is_broken:
            return
        if not reply.has_ended:
            await ending_of(reply, self.app.store(), line.session_id, message, outcome)
        ends = [await self._part_of_another(line, name) for name in joined if name in self._replies]
        ends.append(await reply.closed())
        # The job ends with the session's last message. While the database decides whether this was the
        # last, nothing more is taken here: a message that arrives meanwhile gets its own job.
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
        except TapeError as error:  # the next owner of the job finds the outcome on the tape
            log.warning("worker.not_settled session=%s error=%s", line.session_id, error)
            return
        if settled == "too late":
            log.warning("worker.too_late session=%s: another worker has it", line.session_id)
            return
        for name in (key, *joined):
            line.unsettled.discard(name)
            self._replies.pop(name, None)

    async def _part_of_another(self, line: ClaimedSession, key: str) -> End:
        """The end of a message that was merged into the following one."""
        reply = self._replies[key]
        if not reply.has_ended:  # another worker had merged them
            self._end(reply, TurnResult(line.session_id, outcome="steered", stopped=TOGETHER))
        return await reply.closed()

    async def failed(self, channel: str, error: Exception) -> None:
        """Report a failure; everything else continues."""
        log.error("message.failed channel=%s error=%s", channel, told(error))
        log.debug("message.failed", exc_info=error)

    async def keeps(self, message: Envelope, error: Exception) -> bool:
        """Whether an error is the tape's. Then this message and the later ones are retried."""
        line = self._line_of(keys_of(message)[0])
        if line is None or not isinstance(error, PASSING):
            return False
        if isinstance(error, TapeConflict) and line.tries >= CONFLICTS:
            return False
        line.is_broken = True
        await self.answering.park(line.session_id)
        return True

    async def cancel(self, session_id: str, channel: str = "", chat_id: str = "") -> bool:
        """Stop a session's running turn. Returns whether there was one."""
        cancelled = await self.app.cancel(session_id)
        hook = self.app.hooks["message:cancel"]
        if cancelled and hook.live:
            await hook.fire(MessageCancelEvent(channel, chat_id), self.app.context(session_id))
        return cancelled

    async def notify(self, to: Envelope, note: Note) -> None:
        """Show a note in a chat, through the gateway that has its channel."""
        await self._to(to, ("notify", [note.text, note.session_id]))

    async def ask(self, to: Envelope, question: Question) -> None:
        """Ask in a chat. The answer is stored with the question, where the asking process finds it."""
        await self._to(to, ("ask", dict(question.request or {})))
        try:
            await asyncio.Event().wait()
        finally:
            await self._to(to, ("asked", question.id))

    async def _to(self, to: Envelope, item: Item) -> None:
        await self._relay.send(address_of(to)[0], Bundle(address(to), [item]))

    async def deliver(self, outbound: Envelope) -> bool:
        """Send an envelope through the gateway that has its channel."""
        outbound = await to_session(self.app, outbound)
        bundle = Bundle(address(outbound), [("send", packed(outbound))])
        await self._relay.send(address_of(outbound)[0], bundle)
        return True
