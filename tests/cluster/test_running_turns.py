"""What comes for a session while a worker runs its turn: it reaches that worker, from any gateway."""

import asyncio

from hookline.models.script import Call, Turn

from ..app.test_admission import Gate
from .conftest import letter

WORK = Turn(tool_calls=[Call("wait")])


async def busy(cluster, *replies, admit=None):
    """Two gateways, and a worker in the middle of a tool of ada's first turn."""
    boxes = [await cluster.gateway(), await cluster.gateway()]
    app = cluster.app(WORK, *replies)
    gate = Gate(app)
    if admit:
        app.hooks.register("admit_message", admit)
    worker = await cluster.worker(app=app)
    await boxes[0].handle(letter("work"))
    await gate.entered.wait()
    return boxes, worker, gate


async def said_on(worker, kind="message"):
    return [entry.payload for entry in await worker.app.store().entries("mail:ada", kinds={kind})]


async def statuses(worker):
    return [payload["status"] for payload in await said_on(worker, "turn")]


async def test_another_gateways_cancel_stops_the_turn_and_the_session_goes_on(cluster):
    (first, second), worker, _ = await busy(cluster, "done")
    fired = []
    second.gateway.app.hooks.register("message:cancel", fired.append)
    assert await second.gateway.cancel("mail:ada", "mail", "ada")
    (result,) = await first.answers("ada-1")
    assert (result.outcome, len(fired)) == ("cancelled", 1)
    await first.handle(letter("again", number=2))
    (result,) = await first.answers("ada-2")
    assert result.model_output == "done"
    assert await statuses(worker) == ["started", "cancelled", "started", "completed"]
    asked = worker.app.models.get(worker.app.model).requests[-1].messages
    calls = [call["id"] for message in asked for call in message.get("tool_calls") or ()]
    assert calls == [message["tool_call_id"] for message in asked if message["role"] == "tool"]


async def test_a_cancel_that_finds_no_turn_says_so(cluster):
    box = await cluster.gateway()
    await cluster.worker()
    assert not await box.gateway.cancel("mail:ada")


async def test_slash_commands_are_carried_out_while_the_turn_runs(cluster):
    (first, second), worker, _ = await busy(cluster, "done")
    await second.handle(letter("/help", number=2))
    (helped,) = await second.answers("ada-2")
    assert helped.outcome == "handled"
    assert "/cancel" in helped.model_output
    assert "ada-1" not in first.ends
    await second.handle(letter("/cancel", number=3))
    (stopped,) = await second.answers("ada-3")
    (result,) = await first.answers("ada-1")
    assert (stopped.model_output, result.outcome) == ("stopped", "cancelled")
    assert await statuses(worker) == ["started", "cancelled"]
    assert not await second.handle(letter("/cancel", number=3))


async def test_follow_ups_of_several_gateways_are_answered_in_order(cluster):
    boxes, worker, gate = await busy(cluster, *"abcdef")
    for number in range(2, 7):
        await boxes[number % 2].handle(letter(str(number), number=number))
    gate.open.set()
    await boxes[0].answers("ada-1", "ada-2", "ada-4", "ada-6")
    await boxes[1].answers("ada-3", "ada-5")
    ends = boxes[0].ends | boxes[1].ends
    assert [ends[f"ada-{n}"].model_output for n in range(1, 7)] == [*"abcdef"]
    begun = [t["envelope"]["message_id"] for t in await said_on(worker, "turn") if "envelope" in t]
    assert begun == [f"ada-{n}" for n in range(1, 7)]


async def test_a_message_joins_the_turn_or_is_dropped_as_admit_message_says(cluster):
    def admit(turn, message):
        if turn.busy:
            return "drop" if "spam" in message["content"] else "steer"
        return None

    (first, second), worker, gate = await busy(cluster, "both", admit=admit)
    await second.handle(letter("spam", number=2))
    (dropped,) = await second.answers("ada-2")
    await second.handle(letter("also b", number=3))
    async with asyncio.timeout(30):
        while not worker.app.sessions.runs["mail:ada"].steering:
            await asyncio.sleep(0.01)
    gate.open.set()
    (steered,) = await second.answers("ada-3")
    (result,) = await first.answers("ada-1")
    assert (dropped.outcome, steered.outcome, result.model_output) == ("dropped", "steered", "both")
    said = [m["message"]["content"] for m in await said_on(worker) if m["message"]["role"] == "user"]
    assert said == ["work", "also b"]


async def test_messages_that_follow_quickly_become_one_and_all_of_them_end(cluster):
    boxes = [await cluster.gateway(), await cluster.gateway()]
    for number, text in enumerate(["one", "two", "three"], 1):
        await boxes[number % 2].handle(letter(text, number=number))
    worker = await cluster.worker("all three", debounce=0.3)
    first, third = await boxes[1].answers("ada-1", "ada-3")
    (second,) = await boxes[0].answers("ada-2")
    assert (third.model_output, third.outcome) == ("all three", "answered")
    assert (first.outcome, second.outcome) == ("steered", "steered")
    said = [m["message"]["content"] for m in await said_on(worker) if m["message"]["role"] == "user"]
    assert said == ["one\ntwo\nthree"]
    assert await worker.queue.waiting() == 0
    for number in (1, 2, 3):
        assert not await boxes[0].handle(letter(number=number))
