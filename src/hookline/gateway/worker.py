"""`Worker`: takes messages from a cluster's queue, and makes their turns.

A job is one session's. While it lasts, this worker has the session alone: what comes for it meanwhile
goes through the same lane, so that it may join the running turn, stop it, or wait for it. When the
worker dies, another takes the job, and the tape says how far each message came.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from procrastinate import BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.worker import Worker as Engine

from hookline.catalog.envelope import Envelope, address_of
from hookline.catalog.events.gateway import MessageCancelEvent
from hookline.cluster import Bundle, Queue, Queued, Relay, prepare
from hookline.cluster.engine import FORMAT, listen, queue_of
from hookline.cluster.items import address
from hookline.cluster.jobs import LONG_AGO, Jobs
from hookline.cluster.queue import TASK, End
from hookline.cluster.schema import checked
from hookline.hooks import HooklineError
from hookline.inbox import Fate, fates_of, keys_of, packed
from hookline.tape.errors import (
    TapeConflict,
    TapeError,
    TapeFull,
    TapeLocked,
    TapeReadOnly,
    TapeTooNew,
    TapeTooOld,
    TapeUnavailable,
)
from hookline.tape.opening import postgres_of
from hookline.turn import TurnResult

from .answering import TOGETHER, Answering, told
from .channel import Channel, inbound
from .past import ending_of, give_up, outcome_of
from .relaying import Reply

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.tape.postgres import PostgresStore

    from .settings import WorkerSettings

log = logging.getLogger("hookline.worker")

PAGE: Final = 32
"""How many messages of one session are taken at a time."""
DEATHS: Final = 5
"""How many workers may end in the middle of one message: it may be what ends them."""
PASSING: Final = (TapeUnavailable, TapeReadOnly, TapeFull, TapeLocked, TapeConflict)
"""Errors of the tape that are no message's: what they cut off is taken up again."""
CONFLICTS: Final = 20
"""How often a message is taken up again whose turn found another writer on the tape."""
LONGEST_REST: Final = 2.0
"""Seconds at most before a job is given back that could not be done."""


class NotClustered(HooklineError, RuntimeError):
    """A worker was started where there is no cluster."""


class Parked(Exception):
    """A job is not done, and goes on in another worker."""


class _Again(BaseRetryStrategy):
    """Every job that ends with an error is taken again: what is done of it is on record."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        return RetryDecision(retry_at=LONG_AGO)


@dataclass(slots=True)
class Line:
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


class Worker:
    """Makes the turns of a cluster's messages, many sessions at once."""

    kept = "the worker is going down; another goes on with the message"

    def __init__(self, app: Hookline, settings: WorkerSettings, *, debounce: float = 0.0) -> None:
        self.app = app
        self.settings = settings
        self.answering = Answering(self, debounce)
        self.leaving = asyncio.Event()
        """Set when somebody asks the worker to end, or it cannot go on."""
        self.error: HooklineError | None = None
        """Why it cannot go on."""
        self._lines: dict[str, Line] = {}
        self._queued: dict[str, Queued] = {}
        self._replies: dict[str, Reply] = {}
        self._lost: set[int] = set()
        self._jobs: set[int] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._draining = False
        self._engine: Engine | None = None
        self._nowhere = Channel()

    # --- the running scope --------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Worker]:
        """Work, inside the app's running scope; drain at the end."""
        store = postgres_of(self.app.store())
        if store is None:
            raise NotClustered(
                "workers need tapes that several processes share: set [tape] url to a PostgreSQL "
                "database; without one, `hookline gateway` makes the turns itself"
            )
        async with AsyncExitStack() as stack:
            await self._open(stack, store)
            try:
                yield self
            finally:
                await self.drain()

    async def _open(self, stack: AsyncExitStack, store: PostgresStore) -> None:
        await prepare(store)
        self._store = store
        self.queue = Queue(store)
        self.relay = Relay(self.queue)
        self._all_jobs.silence = self.settings.silence
        job = self.queue.engine.task(
            name=TASK, queue=queue_of(store), pass_context=True, retry=_Again()
        )
        job(self._job)
        self.answering.attach(stack)
        if self.app.config.section("triggers"):
            from hookline.triggers import Triggers

            answer = Triggers(self.app).answer
            stack.callback(self.app.hooks.register("dispatch_outbound", answer))
        stack.callback(setattr, self.app, "deliver", self.app.deliver)
        self.app.deliver = self.deliver
        stack.push_async_callback(_ended, *(self._start(work) for work in (self._sweeping(),)))
        self._working = self._start(self._work())

    @staticmethod
    def _start(work: Any) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    async def _work(self) -> None:
        """Take jobs until told to stop; where the database goes away, wait for it."""
        pause = 0.1
        while not self._draining:
            queues = [queue_of(self._store, form) for form in range(1, FORMAT + 1)]
            engine = self._engine = Engine(
                self.queue.engine,
                queues=queues,
                name="hookline",
                concurrency=self.settings.concurrency,
                fetch_job_polling_interval=self.settings.poll,
                abort_job_polling_interval=3600.0,  # a turn is stopped by its own means
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=self.settings.heartbeat,
                stalled_worker_timeout=10 * self.settings.silence,  # only tidies up
            )
            control = self._start(self._controlled(engine))
            try:
                await engine.run()
                pause = 0.1
            except (ConnectorException, TapeError) as error:
                log.warning("worker.waiting error=%s", error)
            finally:
                await _ended(control)
            if not self._draining:
                await asyncio.sleep(pause)
                pause = min(2 * pause, 2.0)

    async def drain(self) -> None:
        """Take no more jobs; let turns finish, and leave to others what takes too long."""
        self._draining = True
        if self._engine is not None:
            self._engine.stop()
        await self.answering.drain(self.settings.drain)
        await asyncio.wait([self._working], timeout=self.settings.drain + 5.0)
        await _ended(self._working)

    @property
    def place(self) -> str:
        """Where the work comes from."""
        return self._store.place

    def leave(self) -> None:
        """Ask whoever runs the worker to end it in good order."""
        self.leaving.set()

    async def reload(self) -> str:
        """Read the settings and the hook files again; say what came of it."""
        self.app.config.reload()
        done = str(await self.app.hook_files.reload())
        self.answering.commands.forget()
        return done

    # --- what others ask ------------------------------------------------------------------------

    async def _controlled(self, engine: Engine) -> None:
        """Hear what gateways say to this worker, as long as one engine runs."""
        while engine.worker_id is None:
            await asyncio.sleep(0.01)
        await self._all_jobs.update_heartbeat(engine.worker_id)
        channel = self.queue.worker_channel(engine.worker_id)
        await listen(self._store, [channel], self._heard, opened=self._look)

    async def _heard(self, channel: str, notice: str) -> None:
        said: dict[str, str] = json.loads(notice)
        line = self._lines.get(said.get("arrived", ""))
        if line is not None:
            await self._follow(line)
        if "cancel" in said:  # what is being stopped may take its time
            stopping = self._start(self._stop_turn(said["cancel"]))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

    async def _stop_turn(self, session_id: str) -> None:
        await self.app.cancel(session_id)

    async def _look(self) -> None:
        """See what came for the sessions at hand while nobody listened."""
        for line in [*self._lines.values()]:
            await self._follow(line)

    async def _sweeping(self) -> None:
        """Notice workers that are gone, jobs that got lost, and tables that are newer than this."""
        clock = asyncio.get_running_loop().time
        heartbeat, silence = self.settings.heartbeat, self.settings.silence
        looked, since = clock(), -silence
        while True:
            await asyncio.sleep(heartbeat)
            try:
                await checked(self._store)
                now = clock()
                if now - looked > max(silence - heartbeat, 1.5 * heartbeat):
                    since = now  # the database was away, or this process: the others may be well
                looked = now
                if now - since >= silence:
                    await self._take_over()
                await self._find_lost()
            except (TapeTooNew, TapeTooOld) as error:
                self.error = error
                self.leaving.set()
            except (ConnectorException, TapeError) as error:
                log.warning("worker.sweep_failed error=%s", error)

    async def _take_over(self) -> None:
        """Have the jobs of silent workers taken by others."""
        for job in await self._all_jobs.get_stalled_jobs(seconds_since_heartbeat=self.settings.silence):
            if await self._all_jobs.take_over(job):
                log.warning("worker.takes_over job=%s session=%s", job.id, job.lock)

    @property
    def _all_jobs(self) -> Jobs:
        return cast("Jobs", self.queue.engine.job_manager)

    async def _find_lost(self) -> None:
        """Give back jobs that this worker was given and never got: the answer was lost."""
        engine = self._engine
        if engine is None or engine.worker_id is None:
            return
        jobs = await self._all_jobs.list_jobs_async(status="doing", worker_id=engine.worker_id)
        mine = {job.id: job for job in jobs if job.id is not None and job.id not in self._jobs}
        for job_id in mine.keys() & self._lost:
            await self._all_jobs.retry_job(mine[job_id])
        self._lost = {*mine}

    # --- jobs -----------------------------------------------------------------------------------

    async def _job(self, context: JobContext) -> None:
        """Have a session until no message of it waits."""
        job = context.job
        assert job.id is not None
        self._jobs.add(job.id)
        try:
            line = await self._line(job)
            if line is not None:
                await self._have(line)
        except Exception:
            if not self._draining:  # what could not be done may not be possible yet
                await asyncio.sleep(min(0.05 * 2 ** min(job.attempts, 10), LONGEST_REST))
            raise
        finally:
            self._jobs.discard(job.id)

    async def _line(self, job: Job) -> Line | None:
        """The session of a job, to be had from now on; None where nothing is left to do."""
        session_id, worker = job.lock or "", job.worker_id or 0
        if not await self.queue.following(session_id, 0, 1):
            return None
        known = self._lines.get(session_id)
        if known is not None:  # this worker was silent, and is given the job that it still has
            known.worker = worker
            await known.over.wait()
            raise Parked
        line = self._lines[session_id] = Line(session_id, worker, job.attempts)
        return line

    async def _have(self, line: Line) -> None:
        try:
            await self._to_the_end(line)
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
        if line.unsettled:
            raise Parked

    async def _to_the_end(self, line: Line) -> None:
        await self.app.sessions.refresh(line.session_id)  # another worker may have had it since
        while True:
            await self._follow(line)
            if not line.running:
                return
            await line.idle.wait()

    async def _follow(self, line: Line) -> None:
        """Take the messages of a session that wait, in their order."""
        async with line.reading:
            # A notice may come when the line is over: then what it tells of has a job of its own.
            while not (self._draining or line.is_broken or line.over.is_set()):
                page = await self.queue.following(line.session_id, line.last, PAGE)
                for queued in page:
                    line.last = queued.number
                    try:
                        await self._take(line, queued)
                    except BaseException:  # it is not answered here, and those after it must wait
                        line.is_broken = True
                        self.left(queued.envelope)
                        raise
                if len(page) < PAGE:
                    return

    async def _take(self, line: Line, queued: Queued) -> None:
        self._queued[queued.id] = queued
        self._replies[queued.id] = Reply(self.relay, queued)
        line.unsettled.add(queued.id)
        line.running.add(queued.id)
        line.idle.clear()
        if queued.deaths > DEATHS:
            await self._give_up(line, queued)
            return
        if not line.tries:
            self.answering.take(queued.envelope, alone=queued.alone)
            return
        if line.fates is None:
            line.fates = await fates_of(self.app.store(), line.session_id, queued.accepted)
        fate = line.fates.get(queued.envelope["message_id"])
        await self.answering.take_up(queued.envelope, line.session_id, fate)

    async def _give_up(self, line: Line, queued: Queued) -> None:
        """Settle a message that nobody survives."""
        why = f"{DEATHS + 1} workers ended in the middle of this message; it is given up"
        log.error("worker.gives_up session=%s message=%s", line.session_id, queued.number)
        await give_up(await self.app.tape(line.session_id), queued.envelope, why)
        await self._replies[queued.id].error(queued.envelope, why)
        await self.settled(queued.envelope, "failed", 0.0)
        self.left(queued.envelope)

    # --- a house, to those who answer -----------------------------------------------------------

    def channel_of(self, envelope: Envelope) -> Channel:
        """The reply to a message."""
        return self._replies.get(keys_of(envelope)[0], self._nowhere)

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

    def _line_of(self, key: str) -> Line | None:
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
        try:
            known = outcome_of(outcome)
            in_time = await self.queue.settle(message, known, worker=line.worker, ends=ends)
        except TapeError as error:  # whoever takes the job next finds on the tape what became of it
            log.warning("worker.not_settled session=%s error=%s", line.session_id, error)
            return
        if not in_time:
            log.warning("worker.too_late session=%s: another worker has it", line.session_id)
            return
        for name in (key, *joined):
            line.unsettled.discard(name)
            self._replies.pop(name, None)

    async def _part_of_another(self, line: Line, key: str) -> End:
        """The end of a message that became part of the one that followed it."""
        reply = self._replies[key]
        if not reply.has_ended:  # another worker had taken them together
            await reply.end(reply.to, TurnResult(line.session_id, outcome="steered", stopped=TOGETHER))
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

    async def deliver(self, outbound: Envelope) -> bool:
        """Send an envelope: with the answer at hand, or to whichever gateway has its channel."""
        current = inbound.get()
        if current is not None and address_of(current) == address_of(outbound):
            return await self.channel_of(current).send(outbound)
        bundle = Bundle(address(outbound), [("send", packed(outbound))])
        await self.relay.send(address_of(outbound)[0], bundle)
        return True


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
