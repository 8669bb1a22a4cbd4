"""The jobs of a cluster, each its worker's alone, over every loss of the database.

A worker that was silent for too long may have been replaced, and not know it. So whoever ends a job or
gives it back says whose it is: what has become another's is left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback

log = logging.getLogger("hookline.cluster")

LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""When a job is due that is due at once, whatever the clocks of the machines say."""

_MINE: Final = """
    WITH mine AS MATERIALIZED (
        SELECT id, lock FROM procrastinate_jobs
        WHERE id = %(job)s AND status = 'doing' AND worker_id IS NOT DISTINCT FROM %(worker)s::bigint
        FOR UPDATE
    )
"""
_FINISH: Final = f"""
    {_MINE} SELECT procrastinate_finish_job_v1(
        id, %(status)s::procrastinate_job_status, %(delete)s::boolean
    ) FROM mine
"""
_RETRY: Final = f"{_MINE} SELECT procrastinate_retry_job_v2(id, %(at)s, NULL, NULL, NULL) FROM mine"
# Messages have their turns in their order: the first that is not done with is the one that the worker
# had in hand.
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
# Whoever was silent for long is no longer on the list of workers: it is put there again.
_ALIVE: Final = """
    WITH alive AS (
        INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker)s)
        ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
    )
    SELECT count(*) FILTER (WHERE id < %(worker)s) AS before, count(*) AS others
    FROM procrastinate_workers
    WHERE id != %(worker)s AND last_heartbeat > now() - %(silence)s * interval '1 second'
"""
SECOND_LOOK: Final = 0.5
"""Seconds after which a worker looks for a job that is another's to take, or that it missed."""


class Jobs(JobManager):
    """Procrastinate's jobs. Where the database is away, a worker waits for it, and ends nothing."""

    silence: float = 30.0
    """Seconds without a sign of life after which a worker is not counted on."""
    _place: int = 0
    _workers: int = 1

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Hear of new jobs, until cancelled.

        All workers hear of each job, and one can have it: so they take turns. The one whose turn it is
        asks at once; the others look a little later, once for all that came meanwhile.
        """
        looking: set[asyncio.Task[None]] = set()

        async def look(channel: str, notification: Notification) -> None:
            await asyncio.sleep(SECOND_LOOK)
            await on_notification(channel=channel, notification=notification)

        async def heard(*, channel: str, notification: Notification) -> None:
            if notification["type"] != "job_inserted" or self._is_next(notification["job_id"]):
                await on_notification(channel=channel, notification=notification)
            if not looking:
                task = asyncio.get_running_loop().create_task(look(channel, notification))
                looking.add(task)
                task.add_done_callback(looking.discard)

        try:
            await super().listen_for_jobs(on_notification=heard, queues=queues)
        finally:
            for task in looking:
                task.cancel()

    def _is_next(self, job: int) -> bool:
        return job % self._workers == self._place

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """The next job for a worker; None where there is none, or no telling."""
        try:
            return await super().fetch_job(queues, worker_id)
        except ConnectorException as error:
            log.warning("jobs.not_fetched error=%s", error)
            return None

    async def update_heartbeat(self, worker_id: int) -> None:
        """Give a sign of life, and see which of how many workers this one is."""
        rows = await self._patiently(_ALIVE, worker=worker_id, silence=self.silence)
        for row in rows:
            self._place, self._workers = row["before"], row["others"] + 1

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """End a job, unless it has become another's."""
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
        """Give a job back, unless it has become another's."""
        await self._patiently(_RETRY, job=job.id, worker=job.worker_id, at=LONG_AGO)

    async def take_over(self, job: Job) -> bool:
        """Have the job of a worker that is gone taken by another; False where somebody did already."""
        values: dict[str, Any] = {"job": job.id, "worker": job.worker_id, "at": LONG_AGO}
        return bool(await self.connector.execute_query_all_async(_TAKE_OVER, **values))

    async def _patiently(self, query: LiteralString, **values: Any) -> list[dict[str, Any]]:
        """Say something of a job; where it cannot be said, others find out that it was not."""
        try:
            return await self.connector.execute_query_all_async(query, **values)
        except ConnectorException as error:
            log.warning("jobs.not_told error=%s", error)
            return []
