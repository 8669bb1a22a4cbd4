"""Thoughts, and what an answer costs: from the app's options to the tape."""

import pytest

from hookline.models import BadSetting, Turn


async def test_reasoning_is_kept_on_the_tape_and_seen_by_the_next_request_only_as_that(app, scripted):
    model = scripted(Turn("Yes.", reasoning="Let me see."), "No.")
    async with app.running():
        await app.process({"content": "is it?"})
        await app.process({"content": "sure?"})
        said = await app.store().entries("default:default", kinds={"message"})
        found = await app.store().search("see")
    assert said[1].payload["message"] == {
        "role": "assistant", "content": "Yes.", "reasoning": "Let me see."
    }  # fmt: skip
    assert [hit.entry.id for hit in found] == [said[1].id]
    assert model.requests[1].messages[1]["content"] == "Yes."


async def test_the_level_reaches_the_model_and_a_wrong_one_fails_the_turn_with_its_name(app, scripted):
    model = scripted("ok")
    app.options = {"thinking": "low"}
    async with app.running():
        await app.process({"content": "hi"})
    asked = model.requests[0]
    assert (asked.thinking or asked.options.get("thinking")) == "low"
    app.model = "openai-compatible:http://127.0.0.1:9/v1#m"
    app.options = {"thinking": "lots"}
    async with app.running():
        with pytest.raises(BadSetting, match="must be one of off, low, medium, high, got 'lots'"):
            await app.process({"content": "hi", "session_id": "another"})


async def test_the_cost_of_every_model_call_is_added_up(app, scripted):
    usage = {"input_tokens": 10, "output_tokens": 5, "cost": 0.25}
    scripted(Turn(tool_calls=[{"name": "todo"}], usage=usage), Turn("Done.", usage=usage))
    async with app.running():
        result = await app.process({"content": "go"})
    assert result.usage == {"input_tokens": 20, "output_tokens": 10, "cost": 0.5}
