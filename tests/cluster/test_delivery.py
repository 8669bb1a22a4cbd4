"""How answers come back: whole, in order, once, with all that belongs to them, over gateways' ends."""

import asyncio
from contextlib import AsyncExitStack

from hookline.events import MessageReceiveResult, MessageSendResult
from hookline.models.script import Turn
from hookline.types import AudioPart, ImagePart, TextPart

from .. import postgres
from .conftest import Cluster, letter


async def test_a_long_answer_arrives_whole_and_in_order_in_every_language(cluster):
    text = "".join(f"{number:05} Größe 大きい 🌻\x00\n" for number in range(4000))
    box = await cluster.gateway()
    await cluster.worker(Turn(text, chunk=9000))
    await box.handle(letter())
    (result,) = await box.answers("ada-1")
    assert result.model_output == text
    assert "".join(box.shown["ada-1"]) == text
    assert postgres.fetch(f'SELECT count(*) FROM "{cluster.schema}".pieces') == [(0,)]


async def test_pieces_come_before_their_end_while_gateways_look_for_what_was_missed(cluster):
    box = await cluster.gateway()
    text = "".join(f"{number:07}" for number in range(20_000))
    await cluster.worker(*[Turn(text, chunk=10_000, delay=0.005)] * 5)
    sweeping = True

    async def sweep():
        while sweeping:
            await box.gateway.cluster._sweep()

    task = asyncio.create_task(sweep())
    for number in range(1, 6):
        await box.handle(letter(number=number))
        await box.answers(f"ada-{number}")
        assert "".join(box.shown[f"ada-{number}"]) == text
    sweeping = False
    await task


async def test_what_hooks_add_to_an_answer_reaches_its_sender_before_the_end(cluster):
    parts = [ImagePart(b"\x89PNG" * 5000, "image/png"), AudioPart(b"RIFF", "audio/wav"), TextPart("ü")]
    box = await cluster.gateway()
    got = []

    async def publish(inbound, given):
        assert inbound["message_id"] not in box.ends
        got.extend(given)

    box.publish = publish
    app = cluster.app("said")
    app.hooks.register("message:send", lambda event: MessageSendResult(parts=parts))
    await cluster.worker(app=app)
    await box.handle(letter())
    await box.answers("ada-1")
    assert got == parts


async def test_pictures_of_a_message_reach_the_model_of_a_worker(cluster):
    box = await cluster.gateway()
    worker = await cluster.worker("seen")
    picture = ImagePart(b"\x89PNG" * 3000, "image/png")
    await box.handle(letter("look", parts=[TextPart("look"), picture]))
    await box.answers("ada-1")
    asked = worker.app.models.get("scripted").requests[0].messages[-1]["content"]
    assert picture in asked or any(getattr(part, "data", None) == picture.data for part in asked)


async def test_message_receive_changes_and_rejects_in_the_worker_and_the_sender_hears_why(cluster):
    def receive(event):
        if "no" in event.text:
            return MessageReceiveResult(action="reject", reason="closed on Sundays")
        return MessageReceiveResult(action="transform", parts=[TextPart(event.text.upper())])

    box = await cluster.gateway()
    app = cluster.app("yes")
    app.hooks.register("message:receive", receive)
    worker = await cluster.worker(app=app)
    await box.handle(letter("no"))
    await box.handle(letter("please", number=2))
    rejected, answered = await box.answers("ada-1", "ada-2")
    assert (rejected.outcome, rejected.stopped) == ("rejected", "closed on Sundays")
    assert answered.model_output == "yes"
    said = [m.payload["message"]["content"] for m in await messages(worker)]
    assert said == ["PLEASE", "yes"]


async def messages(worker, session="mail:ada"):
    return await worker.app.store().entries(session, kinds={"message"})


async def test_notifications_reach_the_sender_of_the_turn_that_they_are_about(cluster):
    box = await cluster.gateway()
    told = []

    async def notify(inbound, note):
        told.append((inbound["message_id"], note.text))

    box.notify = notify
    app = cluster.app("done")

    app.hooks.register("agent_start", lambda event, ctx: ctx.notify("it rains"))
    await cluster.worker(app=app)
    await box.handle(letter())
    await box.answers("ada-1")
    assert told == [("ada-1", "it rains")]


async def test_a_turn_that_fails_tells_its_sender_why_and_the_next_one_is_made(cluster):
    box = await cluster.gateway()
    await cluster.worker(Turn(error="the model is on fire"), "well again")
    await box.handle(letter())
    await box.handle(letter(number=2))
    failed, result = await box.answers("ada-1", "ada-2")
    assert "the model is on fire" in failed
    assert result.model_output == "well again"


async def test_an_answer_whose_gateway_is_gone_is_delivered_by_another_once(cluster):
    box = await cluster.gateway()
    other = await cluster.gateway()
    (cluster.folder / "gone").mkdir()
    async with AsyncExitStack() as stack:
        apart = Cluster(cluster.folder / "gone", cluster.schema, stack, cluster.url)
        leaving = await apart.gateway(drain=0.0)
        await leaving.handle(letter())
    await cluster.worker("late, but there")
    async with asyncio.timeout(30):
        while not (ends := [each.ends for each in (box, other) if each.ends]):
            await asyncio.sleep(0.05)
    assert [end["ada-1"].model_output for end in ends] == ["late, but there"]
    assert leaving.ends == {}
    await box.gateway.cluster._sweep()
    await other.gateway.cluster._sweep()
    assert sum("send late, but there" in each.log for each in (box, other)) == 1
    async with asyncio.timeout(10):
        while postgres.fetch(f'SELECT count(*) FROM "{cluster.schema}".deliveries') != [(0,)]:
            await asyncio.sleep(0.05)
