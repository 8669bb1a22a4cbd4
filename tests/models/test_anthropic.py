"""`anthropic:` models, against a server that is as strict as the Messages API."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hookline import Agent
from hookline.errors import ContextOverflow, ModelFailed, ModelUnavailable, UnknownModel
from hookline.models import ModelRequest, Models
from hookline.types import AudioPart, ImagePart, TextPart

from ..anthropic_server import AnthropicServer, Thought, events
from .ask import events as asked

MODEL = "anthropic:claude-x"


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


@pytest.fixture
def server(monkeypatch) -> Iterator[AnthropicServer]:
    with AnthropicServer(["Hello, world."]) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


async def ask(request: ModelRequest) -> list[Any]:
    models = Models()
    try:
        return await asked(models.get(MODEL), request)
    finally:
        await models.close()


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def test_an_answer_streams_with_its_usage(server):
    found = await ask(ModelRequest(messages=[said("hi")], system="Be brief."))
    text = "".join(event.data["delta"] for event in found if event.kind == "text")
    assert text == "Hello, world."
    [usage] = [event.data for event in found if event.kind == "usage"]
    assert usage == {"input_tokens": 9, "output_tokens": 5, "cached_tokens": 2, "cache_write_tokens": 3}
    assert found[-1].data == {"finish_reason": "stop"}


async def test_the_system_prompt_and_the_end_of_the_conversation_are_cached(server):
    messages = [said("a"), {"role": "assistant", "content": "b"}, said("c")]
    await ask(ModelRequest(messages=messages, system="Be brief."))
    [body] = server.requests
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert "cache_control" not in json.dumps(body["messages"][:-1])
    assert body["max_tokens"] == 8192


def test_an_agent_calls_tools_several_at_once_and_goes_on(server):
    both = [("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})]
    server.answers = [both, ("weather", {"city": "Bonn"}), "All sunny."]
    result = Agent(MODEL, instructions="Be brief.", tools=[weather]).run_sync("Is it sunny?")
    assert result.text == "All sunny."
    assert [call.result for call in result.tool_calls] == [
        "sunny in Rome", "sunny in Oslo", "sunny in Bonn",
    ]  # fmt: skip
    last = server.requests[-1]["messages"]
    assert [m["role"] for m in last] == ["user", "assistant", "user", "assistant", "user"]
    assert [b["type"] for b in last[2]["content"]] == ["tool_result", "tool_result"]


def test_a_denied_call_goes_back_as_an_error(server):
    server.answers = [("weather", {"city": "Rome"}), "No."]
    agent = Agent(MODEL, tools=[weather])
    agent.on.tool_call(lambda event: event.deny("not today"))
    agent.run_sync("hi")
    [result] = server.requests[-1]["messages"][-1]["content"]
    assert result["is_error"] is True
    assert result["content"] == [{"type": "text", "text": "not today"}]


def test_a_typed_answer_is_a_forced_tool_call(server):
    server.answers = [("final_answer", {"response": [1, 2]})]
    assert Agent(MODEL, output=list[int]).run_sync("count").output == [1, 2]
    assert server.requests[0]["tool_choice"] == {"type": "tool", "name": "final_answer"}


async def test_thinking_streams_as_reasoning_and_goes_back_with_its_signature(server):
    server.answers = [Thought("Let me see.", ("weather", {"city": "Rome"})), "Sunny."]
    first = ModelRequest(messages=[said("hi")], thinking="medium", options={"temperature": 0.2})
    first.tools = [{"name": "weather", "description": "x", "parameters": {"type": "object"}}]
    first.tool_choice = "required"
    found = await ask(first)
    reasoning = [e.data for e in found if e.kind == "reasoning"]
    assert "".join(each["delta"] for each in reasoning) == "Let me see."
    assert reasoning[-1]["signature"] == "c2lnbmVk"
    body = server.requests[0]
    assert body["max_tokens"] - body["thinking"]["budget_tokens"] == 8192
    [call] = [e.data for e in found if e.kind == "tool_call"]
    answered = {"role": "assistant", "content": "", "tool_calls": [call], "reasoning": "Let me see.",
                "reasoning_signature": "c2lnbmVk"}  # fmt: skip
    result = {"role": "tool", "tool_call_id": call["id"], "name": "weather", "content": "sunny"}
    await ask(ModelRequest(messages=[said("hi"), answered, result], thinking="low", tools=first.tools))
    kinds = [block["type"] for block in server.requests[1]["messages"][1]["content"]]
    assert kinds == ["thinking", "tool_use"]
    await ask(ModelRequest(messages=[said("hi"), answered, result], tools=first.tools))
    kinds = [block["type"] for block in server.requests[2]["messages"][1]["content"]]
    assert kinds == ["tool_use"]  # thoughts go back only to a model that thinks


async def test_pictures_and_what_it_cannot_take(server):
    parts = [
        TextPart("look"),
        ImagePart(b"\x89PNG"),
        ImagePart(url="https://x.org/a.png"),
        AudioPart(b"x"),
    ]
    await ask(ModelRequest(messages=[{"role": "user", "content": parts}]))
    blocks = server.requests[0]["messages"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image", "image", "text"]
    assert blocks[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert blocks[2]["source"] == {"type": "url", "url": "https://x.org/a.png"}


@pytest.mark.parametrize(
    "messages",
    [
        [said("a"), said("b")],
        [said("a"), {"role": "assistant", "content": ""}, said("b")],
        [{"role": "system", "content": "more"}, said("a")],
        [said("a"), {"role": "assistant", "content": "", "tool_calls": [
            {"id": "other:1/x", "name": "fs.read", "arguments": "{no json"}]},
         {"role": "tool", "tool_call_id": "other:1/x", "content": ""}],
        [said("a"), {"role": "assistant", "content": "b", "reasoning": "hm"}, said("c")],
    ],
)  # fmt: skip
async def test_every_conversation_has_a_form_that_the_api_takes(messages, server):
    await ask(ModelRequest(messages=messages))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ((404, "not_found_error", "model: claude-x"), UnknownModel, "does not have it"),
        ((400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"),
         ContextOverflow, "too long"),
        ((529, "overloaded_error", "Overloaded"), ModelFailed, r"failed \(529\)"),
        ((429, "rate_limit_error", "slow down"), ModelFailed, "limits how often"),
        (b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
         ModelFailed, r"failed \(529\)"),
        (b'data: {"type":"message_start","message":{}}\n\n', ModelFailed, "cut off"),
        (b'data: {"type":"content_block_delta","index":0}\n\n', ModelFailed, "another form"),
        (b"data: no json\n\n", ModelFailed, "no JSON"),
    ],
)  # fmt: skip
async def test_failures_are_explained(answer, error, message, server):
    server.answers = [answer]
    with pytest.raises(error, match=message):
        await ask(ModelRequest(messages=[said("hi")]))


async def test_an_answer_that_is_cut_off_anywhere_is_an_error(server):
    whole = events("Hello, world.", {"model": "x"})
    for end in range(0, len(whole) - 60, 97):
        server.answers = [whole[:end]]
        with pytest.raises(ModelFailed):
            await ask(ModelRequest(messages=[said("hi")]))


async def test_a_missing_key_is_named(server, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(ModelUnavailable, match="anthropic needs a key: set ANTHROPIC_API_KEY"):
        await ask(ModelRequest(messages=[said("hi")]))


async def test_a_wrong_key_is_named_and_not_shown(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-wrong")
    with pytest.raises(ModelFailed, match="key in ANTHROPIC_API_KEY; check it") as raised:
        await ask(ModelRequest(messages=[said("hi")]))
    assert "sk-ant-wrong" not in str(raised.value)
