"""What only `anthropic:` models do, against a server that is as strict as the Messages API."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Len, Lt
from pydantic import BaseModel, Field

from hookline import Agent
from hookline.agent.output import OutputForm
from hookline.models import ModelRequest, Models
from hookline.models.anthropic.wire import enforceable

from ..anthropic_server import AnthropicServer, unenforceable
from ..openai_server import Thought
from .ask import events, one, user

OLDER = "anthropic:claude-opus-4-1"


@pytest.fixture
def server(monkeypatch) -> Iterator[AnthropicServer]:
    with AnthropicServer(["Hello, world."]) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


async def ask(request: ModelRequest, model: str = "anthropic:claude-sonnet-5") -> list[Any]:
    models = Models()
    try:
        return await events(models.get(model), request)
    finally:
        await models.close()


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


async def test_tokens_that_go_into_the_cache_or_come_from_it_are_counted(server):
    usage = one(await ask(ModelRequest(messages=user("hi"))), "usage")
    assert usage == {"input_tokens": 9, "output_tokens": 5, "cached_tokens": 2, "cache_write_tokens": 3}


async def test_the_system_prompt_and_the_end_of_the_conversation_are_cached(server):
    messages = [*user("a"), {"role": "assistant", "content": "b"}, *user("c")]
    await ask(ModelRequest(messages=messages, system="Be brief."))
    [body] = server.requests
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert "cache_control" not in json.dumps(body["messages"][:-1])
    assert body["max_tokens"] == 8192


async def test_without_a_system_prompt_the_tools_are_cached(server):
    tools = [{"name": name, "parameters": {"type": "object"}} for name in "ab"]
    await ask(ModelRequest(messages=user("hi"), tools=tools))
    assert ["cache_control" in tool for tool in server.requests[0]["tools"]] == [False, True]


def test_a_denied_call_goes_back_as_an_error(server):
    server.answers = [("weather", {"city": "Rome"}), "No."]
    agent = Agent("anthropic:claude-sonnet-5", tools=[weather])
    agent.on.tool_call(lambda event: event.deny("not today"))
    agent.run_sync("hi")
    [result] = server.requests[-1]["messages"][-1]["content"]
    assert result["is_error"] is True
    assert result["content"] == [{"type": "text", "text": "not today"}]


def test_a_typed_answer_of_an_older_model_is_a_forced_tool_call(server):
    server.answers = [("final_answer", {"response": [1, 2]})]
    assert Agent(OLDER, output=list[int]).run_sync("count").output == [1, 2]
    assert server.requests[0]["tool_choice"] == {"type": "tool", "name": "final_answer"}


async def test_an_older_model_thinks_within_a_budget_and_sees_its_thoughts_only_while_it_thinks(server):
    server.answers = [Thought("Let me see.", ("weather", {"city": "Rome"})), "Sunny."]
    tools = [{"name": "weather", "description": "x", "parameters": {"type": "object"}}]
    first = ModelRequest(messages=user("hi"), thinking="medium", tools=tools, tool_choice="required")
    found = await ask(first, OLDER)
    body = server.requests[0]
    assert body["max_tokens"] - body["thinking"]["budget_tokens"] == 8192
    call = one(found, "tool_call")
    signature = [e.data["signature"] for e in found if e.data.get("signature")][-1]
    answered = {"role": "assistant", "content": "", "tool_calls": [call], "reasoning": "Let me see.",
                "reasoning_signature": signature}  # fmt: skip
    result = {"role": "tool", "tool_call_id": call["id"], "name": "weather", "content": "sunny"}
    for level, expected in (("low", ["thinking", "tool_use"]), (None, ["tool_use"])):
        messages = [*user("hi"), answered, result]
        await ask(ModelRequest(messages=messages, thinking=level, tools=tools), OLDER)
        kinds = [block["type"] for block in server.requests[-1]["messages"][1]["content"]]
        assert kinds == expected


class Order(BaseModel):
    """An order."""

    number: Annotated[int, Ge(1), Lt(10)] = Field(description="its number")
    kind: Literal["a", "b"]
    items: Annotated[list[Annotated[float, Ge(0)]], Len(2, 5)]
    next: "Order | None"


def test_limits_that_the_api_refuses_are_written_as_words_like_the_official_library_does():
    from anthropic import transform_schema

    schema = OutputForm(Order).schema.schema
    ours = enforceable(schema)
    assert unenforceable(schema)
    assert not unenforceable(ours)
    assert ours == transform_schema(schema)
