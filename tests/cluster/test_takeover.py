"""Workers that end or fall silent in the middle: others go on, once, in order, on a valid tape."""

import asyncio
import signal

import pytest

from .. import postgres
from .conftest import letter
from .processes import machines

pytestmark = pytest.mark.slow

NEVER = '[[turns]]\ntext = "never"\nwait = 600\n'
ONE_THEN_STUCK = (
    '[[turns]]\ntext = "one"\n'
    """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo once >> ran.txt" } }]
""" + NEVER
)
TOOL_THEN_STUCK = (
    """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo once >> ran.txt" } }]
"""
    + NEVER
)
STUCK_IN_A_TOOL = (
    """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo once >> ran.txt; exec sleep 600" } }]
"""
    + NEVER
)

LATE = """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo once >> ran.txt" } }]
[[turns]]
text = "too late"
wait = 3
tool_calls = [{ name = "shell", arguments = { command = "echo twice >> ran.txt" } }]
[[turns]]
text = "whoever takes it"
"""
CALLS_DEADLY = '[[turns]]\ntool_calls = [{ name = "deadly" }]\n'
DEADLY = """
import os
from hookline.tools import tool
from hookline.tools.registry import Registry

@tool(side_effects="none", registry=Registry())
def deadly() -> str:
    "Ends the worker."
    os.kill(os.getpid(), 9)

hooks = [("register_tools", lambda: [deadly])]
"""


@pytest.fixture
async def others(cluster):
    async with machines(cluster.folder, cluster.schema) as made:
        yield made


async def turns_of(box, chat="ada"):
    """The statuses and messages of a session's turns, after the tape was checked."""
    store = box.gateway.app.store()
    entries = await store.entries(f"mail:{chat}")
    called, answered = [], []
    for entry in entries:
        if entry.kind == "message" and entry.payload["message"]["role"] == "assistant":
            called += [call["id"] for call in entry.payload["message"].get("tool_calls") or ()]
        if entry.kind == "tool_result":
            answered.append(entry.payload["tool_call_id"])
    assert sorted(called) == sorted(answered), "every call has one result"
    turns = [e.payload for e in entries if e.kind == "turn"]
    started = [t["envelope"]["message_id"] for t in turns if t["status"] == "started"]
    return started, [t["status"] for t in turns]


async def has_turns(box, count):
    """Wait until so many turns have begun."""
    begun = (
        f"SELECT count(*) FROM \"{box.gateway.cluster.queue.store.schema}\".entries WHERE kind = 'turn'"
    )
    async with asyncio.timeout(30):
        while postgres.fetch(begun)[0][0] < count:
            await asyncio.sleep(0.05)


async def test_a_killed_workers_turn_goes_on_elsewhere_before_the_messages_that_wait(cluster, others):
    box = await cluster.gateway()
    doomed = await others.worker(TOOL_THEN_STUCK)
    await box.handle(letter("work"))
    await others.until(others.ran)
    for number in (2, 3):
        await box.handle(letter("and then", number=number))
    doomed.signal(signal.SIGKILL)
    await cluster.worker("first", "second", "third")
    results = await box.answers("ada-1", "ada-2", "ada-3")
    assert [result.model_output for result in results] == ["first", "second", "third"]
    assert await turns_of(box) == (["ada-1", "ada-2", "ada-3"], ["started", "completed"] * 3)
    assert others.ran() == ["once"]


async def test_a_killed_workers_second_message_goes_on_too_though_its_own_job_was_never_taken(
    cluster, others
):
    box = await cluster.gateway()
    doomed = await others.worker(ONE_THEN_STUCK)
    await asyncio.gather(box.handle(letter("one")), box.handle(letter("work", number=2)))
    await others.until(others.ran)
    doomed.signal(signal.SIGKILL)
    await cluster.worker("gone on", "again", "again")
    await box.answers("ada-1", "ada-2")
    assert {result.model_output for result in box.ends.values()} == {"one", "gone on"}
    started, statuses = await turns_of(box)
    assert (sorted(started), statuses) == (["ada-1", "ada-2"], ["started", "completed"] * 2)
    assert others.ran() == ["once"]


async def test_of_several_who_notice_a_death_one_takes_over_and_the_turn_is_made_once(
    cluster, others, caplog
):
    box = await cluster.gateway()
    doomed = await others.worker(NEVER)
    for chat in ("ada", "bob", "eve"):
        await box.handle(letter(chat=chat))
    for _ in range(3):
        await cluster.worker("done", "twice")
    await has_turns(box, 3)
    doomed.signal(signal.SIGKILL)
    results = await box.answers("ada-1", "bob-1", "eve-1")
    assert [result.model_output for result in results] == ["done"] * 3
    for chat in ("ada", "bob", "eve"):
        assert await turns_of(box, chat) == ([f"{chat}-1"], ["started", "completed"])
    taken = [record.message for record in caplog.records if "takes_over" in record.message]
    assert len(taken) == len({*taken}) <= 3


async def test_a_message_that_ends_every_worker_is_given_up_and_the_session_goes_on(cluster, others):
    home = others.folder / "deadly"
    hooks = home / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "deadly.py").write_text(DEADLY)
    box = await cluster.gateway()
    doomed = await others.worker(CALLS_DEADLY, HOME=str(home))
    await box.handle(letter("poison"))
    await box.handle(letter("are you well?", number=2))
    assert await doomed.ended() == -signal.SIGKILL
    second = await others.worker(CALLS_DEADLY, HOME=str(home))
    assert await second.ended() == -signal.SIGKILL
    counted = f'SELECT deaths FROM "{cluster.schema}".inbox WHERE outcome IS NULL ORDER BY number'
    assert postgres.fetch(counted) == [(1,), (0,)]
    postgres.execute(f'UPDATE "{cluster.schema}".inbox SET deaths = 5 WHERE deaths = 1')
    worker = await cluster.worker("very well")
    given_up, result = await box.answers("ada-1", "ada-2")
    assert "6 workers ended in the middle of this message" in given_up
    assert result.model_output == "very well"
    asked = worker.app.models.get("scripted").requests[0].messages
    assert [m["role"] for m in asked] == ["user", "assistant", "tool", "user"]
    store = box.gateway.app.store()
    turns = [e.payload["status"] for e in await store.entries("mail:ada", kinds={"turn"})]
    assert turns == ["started", "failed", "started", "completed"]


async def test_a_worker_that_was_stopped_and_comes_back_too_late_says_nothing_and_runs_nothing(
    cluster, others
):
    box = await cluster.gateway()
    late = await others.worker(LATE)
    await box.handle(letter("work"))
    await others.until(others.ran)
    late.signal(signal.SIGSTOP)
    await cluster.worker("gone on", "never")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "gone on"
    tape = await box.gateway.app.store().entries("mail:ada")
    late.signal(signal.SIGCONT)
    await late.until("not_told|too_late|failed|another writer")
    late.signal(signal.SIGTERM)
    assert await late.ended() == 0
    await box.handle(letter("and now?", number=2))
    await box.answers("ada-2")
    after = await box.gateway.app.store().entries("mail:ada")
    assert after[: len(tape)] == tape
    assert await turns_of(box) == (["ada-1", "ada-2"], ["started", "completed"] * 2)
    assert box.log.count("send gone on") == 1
    assert others.ran() == ["once"]


async def test_where_two_workers_have_one_turn_the_tape_takes_one_answer_and_that_is_delivered(
    cluster, others
):
    box = await cluster.gateway()
    late = await others.worker('[[turns]]\ntext = "by the first"\nwait = 2\n')
    await box.handle(letter("work"))
    await has_turns(box, 1)
    late.signal(signal.SIGSTOP)
    app, entered, go = cluster.app("by the second", "never"), asyncio.Event(), asyncio.Event()

    async def wait(event):
        entered.set()
        await go.wait()

    app.hooks.register("turn_start", wait)
    await cluster.worker(app=app)
    await entered.wait()
    late.signal(signal.SIGCONT)
    await late.until("too_late")
    assert box.ends == {}
    go.set()
    (result,) = await box.answers("ada-1")
    assert (result.outcome, result.model_output) == ("answered", "by the first")
    assert await turns_of(box) == (["ada-1"], ["started", "completed"])
    assert box.log.count("send by the first") == 1


async def test_a_worker_that_was_stopped_for_a_while_works_on_afterwards(cluster, others):
    box = await cluster.gateway()
    worker = await others.worker('[[turns]]\ntext = "there"\n')
    other = await cluster.worker()
    worker.signal(signal.SIGSTOP)
    await asyncio.sleep(2.5)  # past its silence: it is no longer on the list of workers
    postgres.execute(
        f'DELETE FROM "{cluster.schema}".procrastinate_workers '
        "WHERE last_heartbeat < now() - interval '2 seconds'"
    )
    await other.drain()
    worker.signal(signal.SIGCONT)
    await box.handle(letter())
    (result,) = await box.answers("ada-1")
    assert result.model_output == "there"
