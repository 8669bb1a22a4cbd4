"""`Worker`: takes jobs from a cluster's queue, sends heartbeats, and replaces dead workers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from procrastinate import BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.worker import Worker as Engine

from hookline.errors import ConfigError, TapeError, TapeVersionMismatch
from hookline.hooks import HooklineError
from hookline.tape.open import postgres_of

from .claimed_sessions import ClaimedSessions
from .cluster import Queue, Relay, prepare
from .cluster.engine import FORMAT, listen, queue_of
from .cluster.jobs import LONG_AGO, Jobs
from .cluster.queue import TASK
from .cluster.schema import checked
from .message_channel import Outgoing
from .settings import has_triggers

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.tape.postgres.store import PostgresStore

    from .settings import WorkerSettings

log = logging.getLogger("hookline.serve.worker")


class _Again(BaseRetryStrategy):
    """Every job that ends with an error is retried: what it did is on record."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        return RetryDecision(retry_at=LONG_AGO)


class Worker:
    """Runs the turns of a cluster's messages, many sessions at once."""

    def __init__(self, app: Hookline, settings: WorkerSettings, *, debounce: float = 0.0) -> None:
        self.app = app
        self.settings = settings
        self._debounce = debounce
        self.leaving = asyncio.Event()
        """Set when the worker should stop, or cannot continue."""
        self.error: HooklineError | None = None
        """Why it cannot continue."""
        self._lost: set[int] = set()
        self._jobs: set[int] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._engine: Engine | None = None

    # --- the running scope --------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Worker]:
        """Work inside the app's running scope, and drain at the end."""
        store = postgres_of(self.app.store())
        if store is None:
            raise ConfigError(
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
        self.queue.silence = self.settings.silence
        relay, deaths = Relay(self.queue), self.settings.deaths
        self.lines = ClaimedSessions(
            self.app, self.queue, relay, debounce=self._debounce, deaths=deaths
        )
        self._all_jobs.silence = self.settings.silence
        job = self.queue.engine.task(
            name=TASK, queue=queue_of(store), pass_context=True, retry=_Again()
        )
        job(self._job)
        if has_triggers(self.app):
            self.app.plugins.check_loaded("triggers", "[triggers]")
            from hookline.ext.triggers import Triggers

            answer = Triggers(self.app).answer
            stack.callback(self.app.hooks.register("dispatch_outbound", answer))
        stack.callback(setattr, self.app, "channel", self.app.channel)
        self.app.channel = Outgoing(self.lines)
        stack.push_async_callback(_ended, self._start(self._sweeping()))
        self._working = self._start(self._work())

    @staticmethod
    def _start(work: Any) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    async def _work(self) -> None:
        """Take jobs until told to stop. While the database is away, wait for it."""
        failures = 0
        while not self.lines.draining:
            queues = [queue_of(self._store, form) for form in range(1, FORMAT + 1)]
            engine = self._engine = Engine(
                self.queue.engine,
                queues=queues,
                name="hookline",
                concurrency=self.settings.concurrency,
                fetch_job_polling_interval=self.settings.poll,
                abort_job_polling_interval=3600.0,  # a turn is stopped by other means
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=self.settings.heartbeat,
                stalled_worker_timeout=10 * self.settings.silence,  # only cleans up
            )
            control = self._start(self._controlled(engine))
            try:
                await engine.run()
                failures = 0
            except (ConnectorException, TapeError) as error:
                log.warning("worker.waiting error=%s", error)
            finally:
                await _ended(control)
            if not self.lines.draining:
                failures += 1
                await asyncio.sleep(self.settings.retry.delay(failures))

    async def drain(self) -> None:
        """Take no more jobs, let turns finish, and leave to others what takes too long."""
        self.lines.draining = True
        if self._engine is not None:
            self._engine.stop()
        await self.lines.answering.drain(self.settings.drain)
        await asyncio.wait([self._working], timeout=self.settings.drain + 5.0)
        await _ended(self._working)

    @property
    def place(self) -> str:
        """The queue of the cluster."""
        return self._store.place

    def leave(self) -> None:
        """Ask the worker's runner to stop it gracefully."""
        self.leaving.set()

    async def reload(self) -> str:
        """Reload the settings and the hook files, and return a summary."""
        self.app.config.reload()
        done = str(await self.app.hook_files.reload())
        self.lines.answering.commands.forget()
        return done

    # --- what others ask ------------------------------------------------------------------------

    async def _controlled(self, engine: Engine) -> None:
        """Listen to gateways while one engine runs."""
        while engine.worker_id is None:
            await asyncio.sleep(0.01)
        await self._all_jobs.update_heartbeat(engine.worker_id)
        channel = self.queue.worker_channel(engine.worker_id)
        await listen(self._store, [channel], self._heard, opened=self._listens)

    async def _listens(self) -> None:
        """Read what was sent while no one listened."""
        await self.lines.look()
        await self._stop_turns(self.lines.sessions)
        await self._all_jobs.look()

    async def _heard(self, channel: str, notice: str) -> None:
        said: dict[str, Any] = json.loads(notice)
        if "jobs" in said:
            await self._new_jobs(said["jobs"])
        if "arrived" in said and not await self.lines.arrived(said["arrived"]):
            await self._all_jobs.look()  # the session was claimed here, and is free now
        if "cancel" in said:
            await self._stop_turns([said["cancel"]])

    async def _new_jobs(self, told: Sequence[int]) -> None:
        """Take new jobs, or pass them to workers with less to do that were not notified."""
        if len(self._jobs) < self.settings.concurrency:
            await self._all_jobs.look()
        elif self._engine is not None and self._engine.worker_id is not None:
            channel, worker_id = self.queue.worker_channel(""), self._engine.worker_id
            self._all_jobs.pass_on(channel, told, worker_id)

    async def _stop_turns(self, sessions: Sequence[str]) -> None:
        for session_id in await self.queue.cancelled(sessions):
            stopping = self._start(self._stop_turn(session_id))  # which may take a while
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

    async def _stop_turn(self, session_id: str) -> None:
        await self.app.cancel(session_id)

    async def _sweeping(self) -> None:
        """Detect dead workers, lost jobs, and tables that are newer than this version."""
        clock = asyncio.get_running_loop().time
        heartbeat, silence = self.settings.heartbeat, self.settings.silence
        looked, since = clock(), -silence
        while True:
            await asyncio.sleep(heartbeat)
            try:
                await checked(self._store)
                now = clock()
                if now - looked > max(silence - heartbeat, 1.5 * heartbeat):
                    since = now  # the database or this process was away: the others may be alive
                looked = now
                if now - since >= silence:
                    await self._take_over()
                await self._find_lost()
            except TapeVersionMismatch as error:
                self.error = error
                self.leaving.set()
            except (ConnectorException, TapeError) as error:
                log.warning("worker.sweep_failed error=%s", error)

    async def _take_over(self) -> None:
        """Let others take the jobs of silent workers."""
        for job in await self._all_jobs.get_stalled_jobs(seconds_since_heartbeat=self.settings.silence):
            if await self._all_jobs.take_over(job):
                log.warning("worker.takes_over job=%s session=%s", job.id, job.lock)

    @property
    def _all_jobs(self) -> Jobs:
        return cast("Jobs", self.queue.engine.job_manager)

    async def _find_lost(self) -> None:
        """Give back jobs assigned to this worker whose assignment never arrived."""
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
        """Own a session until no message of it waits."""
        job = context.job
        assert job.id is not None
        self._jobs.add(job.id)
        try:
            if await self.lines.have(job):
                self._all_jobs.finished.add(job.id)
        except Exception:
            if not self.lines.draining:  # what failed may not be possible yet
                await asyncio.sleep(self.settings.retry.delay(job.attempts + 1))
            raise
        finally:
            self._jobs.discard(job.id)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
