"""Gateways accept, workers make the turns: answers, order, and what several processes do together."""

from .conftest import letter


async def test_a_worker_answers_what_a_gateway_accepted_and_the_pieces_reach_its_sender(cluster):
    box = await cluster.gateway()
    await cluster.worker("The garden is fine.")
    assert await box.handle(letter("How is the garden?"))
    (result,) = await box.answers("ada-1")
    assert (result.outcome, result.model_output) == ("answered", "The garden is fine.")
    assert "".join(box.shown["ada-1"]) == "The garden is fine."
    assert "send The garden is fine." in box.log
    assert not await box.handle(letter("How is the garden?"))  # known already


async def test_a_gateway_makes_turns_itself_unless_told_otherwise(cluster):
    box = await cluster.gateway(worker=True)
    await box.handle(letter())
    (result,) = await box.answers("ada-1")
    assert result.model_output == "answered"


async def test_messages_of_one_session_are_answered_in_order_by_several_workers(cluster):
    boxes = [await cluster.gateway() for _ in range(2)]
    workers = [await cluster.worker() for _ in range(3)]
    for number in range(1, 9):
        for chat in ("ada", "bob", "eve"):
            await boxes[number % 2].handle(letter(f"{number}", chat, number))
    for number, box in enumerate(boxes):
        theirs = [n for n in range(1, 9) if n % 2 == number]
        await box.answers(*(f"{chat}-{n}" for chat in ("ada", "bob", "eve") for n in theirs))
    store = workers[0].app.store()
    for chat in ("ada", "bob", "eve"):
        turns = await store.entries(f"mail:{chat}", kinds={"turn"})
        begun = [t.payload["envelope"]["message_id"] for t in turns if t.payload["status"] == "started"]
        assert begun == [f"{chat}-{n}" for n in range(1, 9)]
        assert [t.payload["status"] for t in turns] == ["started", "completed"] * 8
