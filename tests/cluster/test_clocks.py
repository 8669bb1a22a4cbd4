"""The clocks of machines may differ: no turn is lost or made twice for that."""

import time
from dataclasses import replace

from hookline.tape import Entry

from .. import postgres
from .conftest import letter
from .test_takeover import turns_of


async def test_a_turn_of_a_machine_whose_clock_is_hours_late_is_found_and_not_made_again(cluster):
    box = await cluster.gateway()
    await box.handle(letter())
    started = {"status": "started", "turn_id": "t", "envelope": letter(), "system": ""}
    said = [{"message": {"role": "assistant", "content": f"step {number}"}} for number in range(600)]
    kinds = [("turn", started), ("message", {"message": {"role": "user", "content": "hi"}})]
    kinds += [("message", payload) for payload in said]
    entries, parent = [], None
    for kind, payload in kinds:
        entry = replace(Entry.new("mail:ada", parent, kind, payload), time=time.time() - 20 * 3600)
        entries.append(entry)
        parent = entry.id
    await box.gateway.app.store().append(entries)
    postgres.execute(f'UPDATE "{cluster.schema}".procrastinate_jobs SET attempts = 1')
    await cluster.worker("made again")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "step 599"
    assert await turns_of(box) == (["ada-1"], ["started", "completed"])
