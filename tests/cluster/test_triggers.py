"""Triggers of a cluster: they run in gateways, their turns in workers, one for each event."""

import asyncio

from hookline.hookspecs import TriggerEvent
from hookline.models.script import Fault, Turn

from .conftest import letter

CHIMES = {
    "queue": {
        "type": "queue",
        "message": "Chime {n}",
        "channel": "mail",
        "chat": "ada",
        "poll": 0.05,
    },
}


async def test_the_turn_of_a_trigger_is_made_by_a_worker_and_answered_through_a_gateway(cluster):
    box = await cluster.gateway(app=cluster.app(triggers=CHIMES))
    await cluster.worker(app=cluster.app("Ding.", triggers=CHIMES))
    triggers = box.gateway.triggers
    result = await triggers.fire("queue", {"n": 1})
    assert (result.outcome, result.model_output) == ("answered", "Ding.")
    await box.until(lambda: "send Ding." in box.log)


async def test_one_event_at_two_gateways_is_one_turn(cluster):
    boxes = [await cluster.gateway(app=cluster.app(triggers=CHIMES)) for _ in range(2)]
    worker = await cluster.worker(app=cluster.app(triggers=CHIMES))
    both = [box.gateway.triggers for box in boxes]
    event = TriggerEvent("queue", {"n": 7}, id="seven")
    receipts = await asyncio.gather(*(each.emit(event) for each in both))
    assert sorted(receipt.taken for receipt in receipts) == [False, True]
    for receipt in receipts:
        if receipt.taken:
            assert (await receipt.settled()).state == "done"
    turns = await worker.app.store().entries("trigger:queue", kinds={"turn"})
    assert [turn.payload["status"] for turn in turns] == ["started", "completed"]


async def test_a_turn_that_failed_is_made_again_when_the_queue_tries_again(cluster):
    chimes = {"queue": {**CHIMES["queue"], "retry": {"first": 0.05}}}
    box = await cluster.gateway(app=cluster.app(triggers=chimes))
    cracked = Turn(error=Fault("the bell is cracked"))
    script = (cracked, cracked, "Ding at last.")
    worker = await cluster.worker(app=cluster.app(*script, triggers=chimes))
    triggers = box.gateway.triggers
    await triggers.enqueue("queue", {"n": 3}, "three")
    await box.until(lambda: "send Ding at last." in box.log)
    await triggers.drained()
    assert (await triggers.ledger.find("queue", "three")).state == "done"
    turns = await worker.app.store().entries("trigger:queue", kinds={"turn"})
    assert [t.payload["status"] for t in turns if t.payload["status"] != "started"] == [
        "failed",
        "failed",
        "completed",
    ]


async def test_a_trigger_and_a_person_share_a_session_one_after_the_other(cluster):
    chimes = {"queue": {**CHIMES["queue"], "session": "mail:ada"}}
    box = await cluster.gateway(app=cluster.app(triggers=chimes))
    workers = [await cluster.worker(app=cluster.app(triggers=chimes)) for _ in range(2)]
    triggers = box.gateway.triggers
    await asyncio.gather(*(box.handle(letter("hello", number=n)) for n in range(1, 5)),
                         *(triggers.fire("queue", {"n": n}) for n in range(4)))  # fmt: skip
    await box.answers(*(f"ada-{n}" for n in range(1, 5)))
    turns = await workers[0].app.store().entries("mail:ada", kinds={"turn"})
    assert [turn.payload["status"] for turn in turns] == ["started", "completed"] * 8
