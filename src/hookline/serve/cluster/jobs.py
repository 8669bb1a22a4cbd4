"""The jobs of a cluster, each owned by one worker, through any loss of the database.

A worker that was silent too long may have been replaced without knowing. So ending a job or giving it
back names its owner, and a job that now belongs to another worker is left alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback

log = logging.getLogger("hookline.serve.cluster")

LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""A due time in the past, so that the clocks of the machines do not matter."""

_MINE: Final = """
    WITH mine AS MATERIALIZED (
        SELECT id, lock FROM procrastinate_jobs
        WHERE id = %(job)s AND status = 'doing' AND worker_id IS NOT DISTINCT FROM %(worker)s::bigint
        FOR UPDATE
    )
"""
# Taking or ending a job need not wait for the disk. The tape is durable; if the database loses an
# update from before a crash, the job comes back and finds nothing to do.
_UNHURRIED: Final = "set_config('synchronous_commit', 'off', true)"
_FETCH: Final = f"""
    SELECT {_UNHURRIED}, id, status, task_name, priority, lock, queueing_lock, args, scheduled_at,
        queue_name, attempts, worker_id, EXISTS (
            SELECT FROM procrastinate_jobs others WHERE others.status = 'todo' AND others.id != job.id
        ) AS has_more
    FROM procrastinate_fetch_job_v2(%(queues)s::varchar[], %(worker)s::bigint) AS job
"""
_FINISH: Final = f"""
    {_MINE} SELECT {_UNHURRIED}, procrastinate_finish_job_v1(
        id, %(status)s::procrastinate_job_status, %(delete)s::boolean
    ) FROM mine
"""
_RETRY: Final = f"{_MINE} SELECT procrastinate_retry_job_v2(id, %(at)s, NULL, NULL, NULL) FROM mine"
# Messages get their turns in order, so the first unfinished one is the one the worker was processing.
_TAKE_OVER: Final = f"""
    {_MINE}, counted AS (
        UPDATE inbox SET deaths = deaths + 1 WHERE id = (
            SELECT inbox.id FROM inbox JOIN mine ON session_id = lock
            WHERE outcome IS NULL ORDER BY number LIMIT 1
        ) RETURNING deaths
    )
    SELECT procrastinate_retry_job_v2(id, %(at)s, NULL, NULL, NULL),
        coalesce((SELECT max(deaths) FROM counted), 0) AS deaths FROM mine
"""
# A worker that was silent for long has been removed from the list: add it again.
_ALIVE: Final = """
    INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker)s)
    ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
_PASS_ON: Final = """
    SELECT pg_notify(%(channel)s || id, %(said)s) FROM (
        SELECT id FROM procrastinate_workers
        WHERE id != ALL(%(told)s::bigint[])
        AND last_heartbeat > now() - %(silence)s * interval '1 second'
        ORDER BY id < %(worker)s, id LIMIT 1
    ) AS next
"""
PASSED_ON: Final = 0.5
"""Seconds in which a busy worker passes on at most one notification of jobs."""


class Jobs(JobManager):
    """Procrastinate's jobs. While the database is away, a worker waits and ends nothing."""

    def __init__(self, connector: BaseConnector) -> None:
        super().__init__(connector)
        self.silence = 30.0
        """Seconds of silence after which a worker counts as dead."""
        self.finished: set[int] = set()
        """Jobs that ended with their last message."""
        self._tell: NotificationCallback | None = None
        self._is_asking = False
        self._has_missed = False
        self._has_more = True
        """Whether there may be more jobs after the one just taken."""
        self._told: set[int] | None = None
        """Workers already notified of the jobs that another worker is about to be notified of."""
        self._passed_on = -PASSED_ON
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Notify the engine of jobs until cancelled. `look` is called for each notification sent to
        this worker.
        """
        self._tell = on_notification
        try:
            await asyncio.Event().wait()
        finally:
            self._tell = None

    async def look(self) -> None:
        """Make the engine ask for jobs. It forgets notifications that arrive while it asks, so repeat
        them.
        """
        self._has_missed = self._is_asking
        self._has_more = True
        if self._tell is not None:
            await self._tell(channel="", notification={"type": "job_inserted", "job_id": 0})

    def pass_on(self, channel: str, told: Iterable[int], worker_id: int) -> None:
        """Let another worker look for jobs while this one and some others are busy."""
        if self._told is not None:
            self._told &= {*told, worker_id}
            return
        self._told = {*told, worker_id}
        self._start(self._pass_on(channel, worker_id))

    async def _pass_on(self, channel: str, worker_id: int) -> None:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(self._passed_on + PASSED_ON - clock())
        told, self._told, self._passed_on = self._told or set[int](), None, clock()
        values: dict[str, Any] = {
            "channel": channel,
            "said": json.dumps({"jobs": [*told]}),
            "told": [*told],
            "worker": worker_id,
            "silence": self.silence,
        }
        await self._patiently(_PASS_ON, **values)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Return the next job for a worker, or None."""
        if not self._has_more:  # a worker that got a job asks for the next one immediately
            self._has_more = True
            return None
        self._is_asking, self._has_missed = True, False
        try:
            values = {"queues": queues, "worker": worker_id}
            row = await self.connector.execute_query_one_async(_FETCH, **values)
        except ConnectorException as error:
            log.warning("jobs.not_fetched error=%s", error)
            return None
        finally:
            self._is_asking = False
        if row["id"]:
            self._has_more = row["has_more"] or self._has_missed
            return Job.from_row(row)
        if self._has_missed:
            asyncio.get_running_loop().call_soon(self._look_again)
        return None

    def _look_again(self) -> None:
        self._start(self.look())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def update_heartbeat(self, worker_id: int) -> None:
        """Record a heartbeat."""
        await self._patiently(_ALIVE, worker=worker_id)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """End a job, unless it belongs to another worker or has already ended."""
        if job.id in self.finished:
            self.finished.discard(job.id)
            return
        await self._patiently(
            _FINISH, job=job.id, worker=job.worker_id, status=status.value, delete=delete_job
        )

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Give a job back, unless it belongs to another worker."""
        await self._patiently(_RETRY, job=job.id, worker=job.worker_id, at=LONG_AGO)

    async def take_over(self, job: Job) -> bool:
        """Let another worker take the job of a dead one. Returns False if that already happened."""
        values: dict[str, Any] = {"job": job.id, "worker": job.worker_id, "at": LONG_AGO}
        return bool(await self.connector.execute_query_all_async(_TAKE_OVER, **values))

    async def _patiently(self, query: LiteralString, **values: Any) -> list[dict[str, Any]]:
        """Update a job. If that fails, other workers will notice."""
        try:
            return await self.connector.execute_query_all_async(query, **values)
        except ConnectorException as error:
            log.warning("jobs.not_told error=%s", error)
            return []
