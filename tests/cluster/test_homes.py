"""One database and many who use it: homes beside each other, duplicates, what is kept of messages."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from hookline.errors import BadInput
from hookline.models.script import Turn

from .. import postgres
from .conftest import Cluster, letter
from .test_parking import HASTY, has_begun


async def test_two_homes_in_one_database_do_not_disturb_each_other(cluster, tmp_path):
    schema = postgres.new_schema()
    (tmp_path / "other").mkdir()
    async with AsyncExitStack() as stack:
        _, url = await postgres.restricted(schema, parts=True)
        neighbour = Cluster(tmp_path / "other", schema, stack, url)
        boxes = [await cluster.gateway(), await neighbour.gateway()]
        await cluster.worker("ours", "still ours")
        for number in (1, 2):
            assert await boxes[0].handle(letter(number=number))
            assert await boxes[1].handle(letter(number=number))
        first = await boxes[0].answers("ada-1", "ada-2")
        assert [result.model_output for result in first] == ["ours", "still ours"]
        assert boxes[1].ends == {}
        assert not await boxes[0].gateway.cancel("mail:ada")
        await neighbour.worker("theirs", "still theirs")
        second = await boxes[1].answers("ada-1", "ada-2")
        assert [result.model_output for result in second] == ["theirs", "still theirs"]
    postgres.drop_roles(schema)


async def test_one_message_at_many_gateways_at_once_has_one_turn(cluster):
    boxes = [await cluster.gateway() for _ in range(4)]
    worker = await cluster.worker()
    for number in range(1, 6):
        new = await asyncio.gather(*(box.handle(letter(number=number)) for box in boxes))
        assert sum(new) == 1
        (taken,) = [box for box, is_new in zip(boxes, new, strict=True) if is_new]
        await taken.answers(f"ada-{number}")
    turns = await worker.app.store().entries("mail:ada", kinds={"turn"})
    assert [turn.payload["status"] for turn in turns] == ["started", "completed"] * 5
    assert sum(len(box.ends) for box in boxes) == 5
    jobs = f'SELECT count(*) FROM "{cluster.schema}".procrastinate_jobs'
    async with asyncio.timeout(10):
        while postgres.fetch(jobs) != [(0,)]:
            await asyncio.sleep(0.02)


async def test_what_is_redacted_is_not_kept_and_the_answer_still_finds_its_sender(cluster):
    chat = "ada@lovelace.org"
    redaction = {"enabled": True, "detectors": ["emails"]}
    box = await cluster.gateway(app=cluster.app(redaction=redaction))
    first = await cluster.worker(app=cluster.app(Turn(wait=600), redaction=redaction), settings=HASTY)
    await box.handle(letter("write to eve@example.org", chat))
    await box.handle(letter("and to bob@example.org", chat, 2))
    await has_begun(first, f"mail:{chat}")
    await first.drain()
    replies = ["eve@example.org it is", "and bob@example.org"]
    worker = await cluster.worker(app=cluster.app(*replies, redaction=redaction))
    results = await box.answers(f"{chat}-1", f"{chat}-2")
    assert [result.model_output for result in results] == replies
    assert box.log.count("send eve@example.org it is") == 1
    entries = await worker.app.store().entries(f"mail:{chat}")
    assert entries
    assert "@example.org" not in repr([entry.payload for entry in entries])
    rows = postgres.fetch(f'SELECT envelope, outcome FROM "{cluster.schema}".inbox')
    assert rows == [(None, "answered")] * 2
    async with asyncio.timeout(10):
        while postgres.fetch(f'SELECT count(*) FROM "{cluster.schema}".deliveries') != [(0,)]:
            await asyncio.sleep(0.02)
    assert not await box.handle(letter("write to eve@example.org", chat))


async def test_a_message_that_no_database_can_keep_is_refused_and_leaves_nothing_behind(cluster):
    box = await cluster.gateway()
    for wrong in ("ada\0", "ada\ud800"):
        with pytest.raises(BadInput, match="message_id 'mail"):
            await box.handle(letter(message_id=wrong))
        with pytest.raises(BadInput, match="chat_id"):
            await box.handle(letter(chat=wrong))
    assert postgres.fetch(f'SELECT FROM "{cluster.schema}".procrastinate_jobs') == []
    await cluster.worker("and on it goes")
    await box.handle(letter("a \0 and half a \ud800 in the text"))
    (result,) = await box.answers("ada-1")
    assert result.model_output == "and on it goes"
