"""Processes that are killed at random moments, and the moments in between that kills seldom hit."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.runtime.inbox import key_of, packed
from hookline.serve.claimed_sessions import ClaimedSession, ClaimedSessions
from hookline.serve.cluster.queue import TASK

from .. import postgres
from ..effort import EFFORT
from .conftest import letter

SUITE = Path(__file__).parents[2] / "benchmarks" / "crash.py"


@pytest.mark.slow
def test_random_kills_of_workers_and_gateways_lose_nothing_and_repeat_nothing():
    asked = [str(SUITE), "--postgres", "--workers", "2", "--kills", str(3 * EFFORT), "--sessions", "2"]
    asked += ["--messages", "4", "--seed", "1"]
    done = subprocess.run([sys.executable, *asked], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_notice_that_comes_when_the_worker_has_left_the_session_starts_no_turn(cluster):
    box = await cluster.gateway()
    await box.handle(letter())  # it has a job, which is another worker's to take
    ours = box.gateway.cluster
    lines = ClaimedSessions(cluster.app(), ours.queue, ours.relay)
    left = ClaimedSession("mail:ada", worker=1, tries=0)
    left.over.set()
    await lines.follow(left)
    assert not left.unsettled
    await cluster.worker("answered once")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "answered once"


async def test_messages_of_a_session_that_waits_share_its_job(cluster):
    box = await cluster.gateway()
    queue = box.gateway.cluster.queue
    for number in range(1, 6):
        for chat in ("ada", "bob"):
            await box.handle(letter("later", chat, number))
    jobs = await queue.engine.job_manager.list_jobs_async(status="todo")
    assert sorted(job.lock for job in jobs) == ["mail:ada", "mail:bob"]
    await cluster.worker()
    names = [f"{chat}-{n}" for n in range(1, 6) for chat in ("ada", "bob")]
    assert {result.outcome for result in await box.answers(*names)} == {"answered"}


async def test_a_message_is_not_left_behind_when_its_sessions_job_is_taken_meanwhile(cluster):
    box = await cluster.gateway()
    queue, store = box.gateway.cluster.queue, box.gateway.app.store()
    await box.handle(letter())
    async with store.connection() as connection, connection.transaction():
        second = letter(number=2)
        values = (key_of(second), "ticket", "mail:ada", box.gateway.cluster.id, False, packed(second))
        told = (queue._name, TASK, queue.worker_channel(""), queue.silence)
        accepting = "SELECT hookline_accept(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        await connection.execute(accepting, (*values, *told))  # another gateway is about to keep one
        await cluster.worker()
        jobs = await queue.engine.job_manager.fetch_job([queue._name], 0)
        assert jobs is None, "nobody takes the job before the message is there"
    results = await box.answers("ada-1", "ada-2")
    assert [result.outcome for result in results] == ["answered", "answered"]


async def test_what_comes_while_the_last_message_is_settled_has_one_turn(cluster):
    box = await cluster.gateway()
    store = box.gateway.app.store()
    await box.handle(letter())
    settling = f"query LIKE '%UPDATE%{cluster.schema}%outcome%'"
    blocked = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {settling}"
    async with store.connection() as connection, connection.transaction():
        await connection.execute("SELECT FROM inbox WHERE id = %s FOR UPDATE", (key_of(letter()),))
        await cluster.worker("mine", "mine")
        await cluster.worker("yours", "yours")
        async with asyncio.timeout(30):
            while not await asyncio.to_thread(postgres.fetch, blocked):
                await asyncio.sleep(0.01)
        await box.handle(letter(number=2))
        for _ in range(30):  # whoever settles the first must not begin with the second
            await asyncio.sleep(0.01)
            assert len(await store.entries("mail:ada", kinds={"turn"})) == 2
    await box.answers("ada-1", "ada-2")
    turns = await store.entries("mail:ada", kinds={"turn"})
    assert [turn.payload["status"] for turn in turns] == ["started", "completed"] * 2
