"""The local model, really loaded: it answers, calls tools, and stops when told."""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from hookline import Agent
from hookline.agent.run import Limits
from hookline.models import (
    ContextOverflow,
    LocalModel,
    LocalSettings,
    ModelFailed,
    ModelRequest,
    ModelUnavailable,
)
from hookline.models.weights import weights_path

from .ask import events, one, text_of, user

pytestmark = pytest.mark.slow

WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "unit"],
    },
}
MOVE = {
    "name": "move",
    "description": "Move a robot.",
    "parameters": {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/Point"}},
        "required": ["to"],
        "$defs": {
            "Point": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x", "y"],
            }
        },
    },
}


def asked(said: str, **more) -> ModelRequest:
    options = {"max_tokens": 24, "seed": 1, **more.pop("options", {})}
    return ModelRequest(messages=user(said), options=options, **more)


async def test_it_answers_and_counts(shared_model: LocalModel):
    found = await events(shared_model, asked("Say hello.", options={"max_tokens": 12}))
    deltas = [event for event in found if event.kind == "text"]
    assert len(deltas) > 1
    assert text_of(found).strip()
    usage = one(found, "usage")
    assert usage["input_tokens"] > 5
    assert 0 < usage["output_tokens"] <= 12
    assert found[-1].kind == "final"
    assert found[-1].data["finish_reason"] in ("stop", "length")


async def test_a_second_turn_reads_only_what_is_new(shared_model: LocalModel):
    story = " ".join(f"Item {n} is a thing." for n in range(12))
    first = await events(shared_model, asked(story, options={"max_tokens": 4}))
    grown = asked(story, options={"max_tokens": 4})
    grown.messages += [{"role": "assistant", "content": text_of(first)}, *user("And now?")]
    second = one(await events(shared_model, grown), "usage")
    assert second["cached_tokens"] > 0.8 * one(first, "usage")["input_tokens"]


async def test_a_forced_call_follows_the_schema(shared_model: LocalModel):
    request = asked("What is the weather in Paris?", tools=[WEATHER, MOVE], tool_choice="required")
    request.options["max_tokens"] = 64
    found = await events(shared_model, request)
    call = one(found, "tool_call")
    assert call["id"]
    assert found[-1].data == {"finish_reason": "tool_calls"}
    assert not text_of(found)
    # Which tool a small model picks is not certain; that it follows the schema is.
    arguments = json.loads(call["arguments"])
    if call["name"] == "weather":
        assert set(arguments) == {"city", "unit"}
        assert len(arguments["city"]) <= 30
        assert arguments["unit"] in ("C", "F")
    else:
        assert (call["name"], set(arguments)) == ("move", {"to"})


async def test_a_named_call_follows_references_too(shared_model: LocalModel):
    request = asked("Go to 3, 4.", tools=[WEATHER, MOVE], tool_choice={"name": "move"})
    request.options["max_tokens"] = 64
    call = one(await events(shared_model, request), "tool_call")
    assert call["name"] == "move"
    to = json.loads(call["arguments"])["to"]
    assert set(to) == {"x", "y"}
    assert all(isinstance(value, int) for value in to.values())


async def test_a_schema_the_runtime_refuses_still_gives_a_call(shared_model: LocalModel):
    odd = {"name": "odd", "parameters": {"type": "what"}}
    request = asked("Do it.", tools=[odd], tool_choice="required", options={"max_tokens": 48})
    call = one(await events(shared_model, request), "tool_call")
    assert call["name"] == "odd"


async def test_tools_are_not_offered_unless_asked_for(shared_model: LocalModel, monkeypatch):
    request = asked("What is the weather in Paris?", tools=[WEATHER], options={"max_tokens": 8})
    assert text_of(await events(shared_model, request))
    monkeypatch.setattr(shared_model, "settings", LocalSettings(offer_tools=True))
    request.options["max_tokens"] = 16
    kinds = {event.kind for event in await events(shared_model, request)}
    assert kinds & {"tool_call", "text"}
    assert "final" in kinds


async def test_a_call_that_is_cut_short_is_told(shared_model: LocalModel):
    request = asked("Weather in Paris?", tools=[WEATHER], tool_choice="required")
    request.options["max_tokens"] = 2
    with pytest.raises(ModelFailed, match="max_tokens is too small"):
        await events(shared_model, request)


async def test_closing_the_stream_stops_the_model(shared_model: LocalModel):
    await shared_model.load()
    async with aclosing(
        shared_model.stream(asked("Tell a story.", options={"max_tokens": 2000}))
    ) as stream:
        async for event in stream:
            if event.kind == "text":
                break
    start = time.process_time()  # of all threads: it is the same however busy the machine is
    await events(shared_model, asked("Hi.", options={"max_tokens": 1}))
    assert time.process_time() - start < 3


async def test_cancel_while_a_long_prompt_is_read_stops_it(shared_model: LocalModel):
    await shared_model.load()
    long = " ".join(f"word{n}" for n in range(700))
    task = asyncio.create_task(events(shared_model, asked(long)))
    await asyncio.sleep(0.2)
    start = time.process_time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await events(shared_model, asked("Hi.", options={"max_tokens": 1}))
    assert time.process_time() - start < 5  # reading it all takes more than ten seconds


async def test_requests_at_once_are_answered_in_turn_and_the_loop_stays_free(shared_model: LocalModel):
    await shared_model.load()
    order: list[int] = []
    ticks = 0

    async def one_request(number: int) -> None:
        assert (await events(shared_model, asked(f"Say {number}", options={"max_tokens": 8})))[
            -1
        ].kind == "final"
        order.append(number)

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(one_request(number) for number in range(4)))
    ticking.cancel()
    assert order == [0, 1, 2, 3]
    assert ticks > 20


async def test_a_request_that_does_not_fit_is_refused(models_home: Path):
    model = LocalModel(home=models_home, settings=LocalSettings(context=128))
    try:
        with pytest.raises(ContextOverflow, match=r"the local model reads \d+") as raised:
            await events(model, asked("word " * 500))
        assert raised.value.needed > 500
        assert raised.value.window >= 128
        # An answer that reaches the end of the window ends as too long.
        nearly = "one " * (raised.value.window - 60)
        found = await events(model, asked(f"Go on: {nearly}", options={"max_tokens": 4000}))
        assert found[-1].data["finish_reason"] in ("length", "stop")
        assert one(found, "usage")["output_tokens"] <= raised.value.window
    finally:
        await model.close()


async def test_a_users_own_file_works_and_close_can_be_repeated(models_home: Path):
    model = LocalModel(weights_path(models_home))
    assert text_of(await events(model, asked("Hello", options={"max_tokens": 3})))
    await model.close()
    await model.close()
    assert text_of(await events(model, asked("Hello", options={"max_tokens": 3})))
    await model.close()


async def test_closing_ends_a_stream_that_is_read(models_home: Path):
    model = LocalModel(home=models_home)
    stream = model.stream(asked("Tell a long story.", options={"max_tokens": 3000, "ignore_eos": True}))
    await anext(stream)
    await model.close()
    with pytest.raises(ModelFailed, match="closed") as raised:
        [_ async for _ in stream]
    assert raised.value.transient


@pytest.mark.parametrize("limit", [0, -1, "many", True])
async def test_a_bad_limit_is_refused(shared_model: LocalModel, limit):
    with pytest.raises(ModelFailed, match="max_tokens must be"):
        await events(shared_model, asked("x", options={"max_tokens": limit}))


async def test_an_option_of_the_wrong_kind_is_refused(shared_model: LocalModel):
    with pytest.raises(ModelFailed, match="temperature"):
        await events(shared_model, asked("x", options={"temperature": "hot"}))


async def test_files_that_are_no_model_are_named(tmp_path: Path):
    with pytest.raises(ModelUnavailable, match=r"cannot read the model file .*no\.gguf"):
        await events(LocalModel(tmp_path / "no.gguf"), asked("x"))
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelUnavailable, match="is not a GGUF file"):
        await events(LocalModel(tmp_path / "text.gguf"), asked("x"))


async def test_a_broken_model_file_is_named(tmp_path: Path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\xff" * 5000)
    with pytest.raises(ModelUnavailable, match=r"could not load .*broken\.gguf") as raised:
        await events(LocalModel(tmp_path / "broken.gguf"), asked("x"))
    assert len(str(raised.value).splitlines()) <= 3


def test_without_the_runtime_three_lines_say_what_to_do(tmp_path: Path):
    # A real interpreter in which the runtime cannot be found.
    code = """
import asyncio, sys
sys.modules["xllamacpp"] = None
import importlib.util as util
real, util.find_spec = util.find_spec, lambda name, *a: None if name == "xllamacpp" else real(name, *a)
from hookline.models import ModelRequest, Models, ModelUnavailable
models = Models()
print(models.available()[0].usable)
async def ask():
    async for _ in models.get().stream(ModelRequest(messages=[{"role": "user", "content": "x"}])): pass
try:
    asyncio.run(ask())
except ModelUnavailable as error:
    print(error)
"""
    environment = {**os.environ, "HOOKLINE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    usable, *message = done.stdout.strip().splitlines()
    assert usable == "False"
    assert len(message) <= 3
    assert "pip install 'hookline[local]'" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_leaves_midway_ends_quickly_and_prints_nothing(models_home: Path):
    code = """
import asyncio, sys
from pathlib import Path
from hookline.models import LocalModel, ModelRequest
async def main():
    said = [{"role": "user", "content": "Tell a story."}]
    request = ModelRequest(messages=said, options={"max_tokens": 3000})
    async for event in LocalModel(home=Path(sys.argv[1])).stream(request):
        break
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(models_home)], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@dataclass
class Weather:
    sky: Literal["sunny", "rainy"]
    degrees: int


async def test_a_typed_answer_is_held_to_a_grammar(shared_model):
    """No retry is needed for valid JSON; whether it is right is another matter."""
    agent = Agent(shared_model, output=Weather, limits=Limits(output_retries=0))
    output = (await agent.run("Rome: sunny, 20 degrees.")).output
    assert output.sky in ("sunny", "rainy")
