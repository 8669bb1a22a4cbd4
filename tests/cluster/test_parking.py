"""A worker that ends in good order leaves its messages to another, which goes on where each stopped."""

import asyncio

from hookline.models.script import Call, Turn

from ..app.test_admission import Gate
from .conftest import QUICK, letter
from .test_takeover import turns_of

HASTY = QUICK.model_copy(update={"drain": 0.0})
STUCK = Turn("never", wait=600)


async def has_begun(worker, session="mail:ada", turns=1):
    """Wait until so many turns are on the tape."""
    async with asyncio.timeout(30):
        while len(await worker.app.store().entries(session, kinds={"turn"})) < turns:
            await asyncio.sleep(0.02)


async def test_a_turn_that_takes_too_long_is_parked_and_goes_on_before_those_that_wait(cluster):
    box = await cluster.gateway()
    first = await cluster.worker(STUCK, settings=HASTY)
    for number in (1, 2, 3):
        await box.handle(letter(number=number))
    await has_begun(first)
    await first.drain()
    assert box.ends == {}
    await cluster.worker("a", "b", "c")
    results = await box.answers("ada-1", "ada-2", "ada-3")
    assert [result.model_output for result in results] == ["a", "b", "c"]
    assert await turns_of(box) == (["ada-1", "ada-2", "ada-3"], ["started", "completed"] * 3)


async def test_a_turn_of_a_later_message_goes_on_too_though_its_job_was_never_taken(cluster):
    box = await cluster.gateway()
    app = cluster.app(Turn(tool_calls=[Call("wait")]), "one", STUCK)
    gate = Gate(app)
    first = await cluster.worker(app=app, settings=HASTY)
    await box.handle(letter("one"))
    await gate.entered.wait()
    await box.handle(letter("two", number=2))
    gate.open.set()
    await has_begun(first, turns=3)
    await first.drain()
    await cluster.worker("two", "twice")
    results = await box.answers("ada-1", "ada-2")
    assert [result.model_output for result in results] == ["one", "two"]
    assert await turns_of(box) == (["ada-1", "ada-2"], ["started", "completed"] * 2)


async def test_messages_that_became_one_all_end_when_another_worker_goes_on(cluster):
    boxes = [await cluster.gateway(), await cluster.gateway()]
    for number in (1, 2, 3):
        await boxes[number % 2].handle(letter(f"part {number}", number=number))
    first = await cluster.worker(STUCK, settings=HASTY, debounce=0.3)
    await has_begun(first)
    await first.drain()
    worker = await cluster.worker("all of it", debounce=0.3)
    one, three = await boxes[1].answers("ada-1", "ada-3")
    (two,) = await boxes[0].answers("ada-2")
    assert [each.outcome for each in (one, two, three)] == ["steered", "steered", "answered"]
    assert three.model_output == "all of it"
    assert await turns_of(boxes[0]) == (["ada-3"], ["started", "completed"])
    assert await worker.queue.waiting() == 0


async def test_workers_that_end_in_good_order_do_not_count_as_killed_by_a_message(cluster):
    box = await cluster.gateway()
    await box.handle(letter())
    for _ in range(8):
        worker = await cluster.worker(STUCK, settings=HASTY)
        await has_begun(worker)
        async with asyncio.timeout(30):
            while "mail:ada" not in worker.app.sessions.runs:
                await asyncio.sleep(0.01)
        await worker.drain()
    await cluster.worker("at last")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "at last"
