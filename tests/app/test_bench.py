"""`hookline bench`: what it measures, and that it leaves nothing behind."""

import asyncio

import pytest

from hookline.cli.bench import measure
from hookline.errors import BadInput
from hookline.models import ModelError, ScriptedModel
from hookline.models.script import Fault, Turn


def use(app, *turns, repeat=True):
    model = ScriptedModel(turns, repeat=repeat)
    app.models.add(model)
    app.model = model.name
    return model


async def test_every_turn_is_made_once_beside_the_first_and_counted(app):
    model = use(app, "Hello.")
    result = await measure(app, turns=7, concurrency=3)
    assert len(model.requests) == 8
    assert (result.turns, result.concurrency, result.failed) == (7, 3, 0)
    assert result.turns_per_second == pytest.approx(7 / result.seconds)
    assert set(result.shares) == {"model", "tape", "plugins", "rest"}
    assert 0 < result.shares["tape"] < 1
    assert sum(result.shares.values()) == pytest.approx(1)


async def test_a_slow_model_and_a_slow_plugin_have_the_time_that_they_took(app):
    use(app, Turn("Hello.", wait=0.05))
    app.hooks.register("agent_start", lambda event: asyncio.sleep(0.05))
    shares = (await measure(app, turns=2)).shares
    assert shares["model"] > shares["tape"]
    assert shares["plugins"] > shares["tape"]


async def test_nothing_is_left_in_the_home_and_the_app_is_as_before(app):
    model = use(app, "Hello.")
    await measure(app, turns=1)
    assert not [*app.home.glob("bench-*")]
    assert app.models.get(app.model) is model
    async with app.running():
        assert await app.store().sessions() == []


async def test_a_model_that_does_not_answer_is_told_before_anything_is_measured(app):
    use(app, Turn(error=Fault("out of order")))
    with pytest.raises(ModelError, match="out of order"):
        await measure(app, turns=2)


async def test_no_turns_are_refused(app):
    use(app, "Hello.")
    with pytest.raises(BadInput, match="at least 1"):
        await measure(app, turns=0)


async def test_turns_that_fail_are_counted_and_the_reason_is_kept(app):
    class Fickle(ScriptedModel):
        async def stream(self, request):
            if request.session_id == "bench:1":
                raise ModelError("not this one")
            async for event in super().stream(request):
                yield event

    model = Fickle(["Hello."], repeat=True)
    app.models.add(model)
    app.model = model.name
    result = await measure(app, turns=3)
    assert (result.turns, result.failed) == (3, 1)
    assert "not this one" in result.first_failure
