"""Who is told of what: one worker of each message, and whoever was cut off of what it missed."""

import asyncio

from hookline.models.script import Call, Turn

from .. import postgres
from ..app.test_admission import Gate
from ..proxy import through
from .conftest import QUICK, letter
from .test_approvals import CALL, Asked
from .test_parking import HASTY, STUCK, has_begun

WORK = Turn(tool_calls=[Call("wait")])
DEAF = QUICK.model_copy(update={"poll": 600.0})
"""Such a worker finds no job of which it is not told."""


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_of_every_message_a_worker_is_told_that_takes_it(cluster):
    box = await cluster.gateway()
    for _ in range(3):
        await cluster.worker(settings=DEAF)
    names = []
    for number in range(1, 4):
        for chat in ("ada", "bob", "eve", "dan"):
            await box.handle(letter(chat=chat, number=number))
            names.append(f"{chat}-{number}")
    assert {result.outcome for result in await box.answers(*names)} == {"answered"}


async def test_a_worker_that_has_enough_to_do_has_another_told(cluster):
    box = await cluster.gateway()
    narrow = DEAF.model_copy(update={"concurrency": 1})
    busy = await cluster.worker(STUCK, settings=narrow)
    await box.handle(letter(chat="stuck"))
    await has_begun(busy, "mail:stuck")
    await cluster.worker(settings=DEAF)
    chats = ("ada", "bob", "eve", "dan")  # in turn, each second one is told to the busy worker
    for chat in chats:
        await box.handle(letter(chat=chat))
    results = await box.answers(*(f"{chat}-1" for chat in chats))
    assert {result.outcome for result in results} == {"answered"}
    assert "stuck-1" not in box.ends
    await busy.app.cancel("mail:stuck")


async def test_a_message_for_a_session_that_has_just_become_free_needs_no_second_look(cluster):
    box = await cluster.gateway()
    await cluster.worker(settings=DEAF)
    for number in range(1, 21):  # each comes while the turn before it is being put away
        await box.handle(letter(number=number))
        await box.answers(f"ada-{number}")


async def test_the_job_of_a_session_ends_with_its_last_message(cluster):
    box = await cluster.gateway()
    worker = await cluster.worker(settings=DEAF)
    for number in (1, 2, 3):
        await box.handle(letter(number=number))
    await box.answers("ada-1", "ada-2", "ada-3")
    running = f"SELECT id FROM \"{cluster.schema}\".procrastinate_jobs WHERE status = 'doing'"
    await until(lambda: not postgres.fetch(running))
    assert await worker.queue.waiting() == 0


async def test_a_job_that_is_taken_while_a_worker_ends_is_left_to_another(cluster):
    box = await cluster.gateway()
    ending = await cluster.worker(settings=HASTY)
    workers = f'SELECT id FROM "{cluster.schema}".procrastinate_workers'
    taken = f'SELECT id FROM "{cluster.schema}".procrastinate_jobs WHERE attempts > 0'
    await until(lambda: postgres.fetch(workers))
    ending.lines.draining = True  # it was told to end when the job was on its way
    await box.handle(letter())
    await until(lambda: postgres.fetch(taken))
    await ending.drain()
    await cluster.worker("by another")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "by another"


async def test_a_cancel_that_a_worker_cannot_hear_is_kept_until_it_can(proxy, cluster):
    box = await cluster.gateway()
    app = cluster.app(WORK, "done", url=through(proxy))
    gate = Gate(app)
    await cluster.worker(app=app)
    await box.handle(letter("work"))
    await gate.entered.wait()
    proxy.refusing = True
    proxy.cut()
    assert await box.gateway.cancel("mail:ada")
    proxy.refusing = False
    (result,) = await box.answers("ada-1")
    assert result.outcome == "cancelled"


async def test_a_cancel_that_came_too_late_stops_no_later_turn(cluster):
    box = await cluster.gateway()
    await cluster.worker("first", "second")
    await box.handle(letter())
    await box.answers("ada-1")
    postgres.execute(f"INSERT INTO \"{cluster.schema}\".orders (session_id) VALUES ('mail:ada')")
    await box.handle(letter(number=2))
    (result,) = await box.answers("ada-2")
    assert result.model_output == "second"
    assert postgres.fetch(f'SELECT count(*) FROM "{cluster.schema}".orders') == [(0,)]


async def test_a_question_that_a_gateway_cannot_hear_is_asked_when_it_can(proxy, cluster):
    asking = {"policy": {"default": "ask"}}
    app = cluster.app(url=through(proxy), **asking)
    box = await cluster.gateway(app=app, box=Asked())
    app = cluster.app(WORK, CALL, "done", **asking)
    gate = Gate(app)
    await cluster.worker(app=app)
    await box.handle(letter())
    await box.is_asked()  # whether it may wait
    box.answer.put_nowait("approve")
    await gate.entered.wait()
    proxy.refusing = True
    proxy.cut()
    gate.open.set()
    await until(lambda: postgres.fetch(f'SELECT id FROM "{cluster.schema}".deliveries'))
    proxy.refusing = False
    await box.until(lambda: len(box.questions) == 2)
    assert box.questions[-1] == ("ada-1", "shell")
    box.answer.put_nowait("approve")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "done"
