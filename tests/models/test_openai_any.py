"""Other providers go through any-llm-sdk, where it is installed."""

import json
import sys

import pytest

from hookline.models import (
    BadSetting,
    ContextOverflow,
    ModelFailed,
    ModelRequest,
    Models,
    ModelUnavailable,
    UnknownModel,
)

from .ask import events, one, text_of, user
from .hostile import ENDING, Exchange, event, hostile, says

KEY = "sk-very-secret-0123456789"


def hello() -> ModelRequest:
    return ModelRequest(messages=user("hello"))


async def ask(answer, name="any:openai/m", request=None):
    """The events of a model that the library asks on a server of ours."""
    pytest.importorskip("any_llm", reason="any-llm-sdk is not installed")
    async with hostile(answer) as server:
        models = Models(settings={"any": {"openai": {"base_url": server.url, "api_key": KEY}}})
        try:
            return await events(models.get(name), request or hello())
        finally:
            await models.close()


async def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "any_llm", None)
    with pytest.raises(ModelUnavailable, match="pip install any-llm-sdk"):
        await events(Models().get("any:mistral/m"), hello())


def test_settings_are_given_by_provider():
    with pytest.raises(BadSetting, match="unknown setting 'api_ke' of any:mistral"):
        Models(settings={"any": {"mistral": {"api_ke": "x"}}}).get("any:mistral/m")
    with pytest.raises(BadSetting, match="must be a table"):
        Models(settings={"any": {"mistral": "key"}}).get("any:mistral/m")
    with pytest.raises(BadSetting, match="'headers' cannot be set for any:mistral"):
        Models(settings={"any": {"mistral": {"headers": {"a": "b"}}}}).get("any:mistral/m")


async def test_an_answer_is_streamed_through_the_library():
    async def answer(exchange: Exchange) -> None:
        call = {
            "index": 0,
            "id": "c",
            "type": "function",
            "function": {"name": "a_b", "arguments": "{}"},
        }
        await exchange.chunked(says("Hel"), says("lo"), event({"tool_calls": [call]}), ENDING)

    request = hello()
    request.tools = [{"name": "a.b", "description": "", "parameters": {"type": "object"}}]
    found = await ask(answer, request=request)
    assert text_of(found) == "Hello"
    assert one(found, "tool_call") == {"id": "c", "name": "a.b", "arguments": "{}"}
    assert one(found, "usage")["input_tokens"] == 7
    assert one(found, "final") == {"finish_reason": "tool_calls"}


async def test_a_cut_stream_is_worth_another_try():
    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(says("half"))

    with pytest.raises(ModelFailed, match="cut off") as caught:
        await ask(answer)
    assert caught.value.transient


@pytest.mark.parametrize(
    ("status", "error", "kind", "transient"),
    [
        ("401 No", {"message": f"Incorrect API key {KEY}"}, ModelFailed, False),
        ("429 No", {"message": "rate limit reached"}, ModelFailed, True),
        ("500 No", {"message": "broke"}, ModelFailed, True),
        ("404 No", {"message": "The model `m` does not exist"}, UnknownModel, None),
        (
            "400 No",
            {"message": "maximum context length is 10", "code": "context_length_exceeded"},
            ContextOverflow,
            None,
        ),
    ],
)
async def test_the_librarys_errors_are_ours(status, error, kind, transient):
    asked: list[Exchange] = []

    async def answer(exchange: Exchange) -> None:
        asked.append(exchange)
        headers = "Content-Type: application/json\r\nRetry-After: 7\r\n"
        await exchange.reply(status, json.dumps({"error": error}), headers)

    with pytest.raises(kind) as caught:
        await ask(answer)
    assert KEY not in str(caught.value)
    assert getattr(caught.value, "transient", None) == transient
    assert len(asked) == 1, "it does not try again by itself"
    if status.startswith("429"):
        assert caught.value.retry_after == 7


async def test_an_unknown_provider_gets_a_hint():
    pytest.importorskip("any_llm", reason="any-llm-sdk is not installed")
    with pytest.raises(UnknownModel, match="did you mean 'any:mistral'"):
        await events(Models().get("any:mistrl/m"), hello())


def anthropic_events(*events: dict[str, object]) -> list[str]:
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]


ANTHROPIC_USAGE = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 40}
ANTHROPIC = anthropic_events(
    {
        "type": "message_start",
        "message": {
            "id": "1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": ANTHROPIC_USAGE,
        },
    },
    {"type": "content_block_start", "index": 0,
     "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0,
     "delta": {"type": "thinking_delta", "thinking": "Let me see."}},
    {"type": "content_block_delta", "index": 0,
     "delta": {"type": "signature_delta", "signature": "sealed"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Yes."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": ANTHROPIC_USAGE},
    {"type": "message_stop"},
)  # fmt: skip


async def ask_anthropic(request, **settings):
    """The events of a model that speaks Anthropic's API, and what it was asked."""
    pytest.importorskip("any_llm", reason="any-llm-sdk is not installed")
    pytest.importorskip("anthropic", reason="anthropic is not installed")

    async def answer(exchange: Exchange) -> None:
        await exchange.chunked(*ANTHROPIC)

    async with hostile(answer) as server:
        base = server.url.removesuffix("/v1")
        models = Models(settings={"any": {"anthropic": {"base_url": base, "api_key": KEY, **settings}}})
        try:
            found = await events(models.get("any:anthropic/claude-x"), request)
        finally:
            await models.close()
        return found, server.exchanges[0].body


async def test_anthropic_is_told_what_to_cache_and_how_long_to_think():
    request = ModelRequest(system="Be brief.", messages=user("hi"), options={"thinking": "low"})
    found, asked = await ask_anthropic(request)
    marked = {"type": "ephemeral"}
    assert asked["system"] == [{"type": "text", "text": "Be brief.", "cache_control": marked}]
    assert asked["cache_control"] == marked
    assert asked["thinking"] == {"type": "adaptive"}
    assert asked["output_config"] == {"effort": "low"}
    assert text_of(found) == "Yes."
    thoughts = [event.data for event in found if event.kind == "reasoning"]
    assert "".join(each["delta"] for each in thoughts) == "Let me see."
    assert thoughts[-1]["signature"] == "sealed"
    assert one(found, "usage") == {"input_tokens": 43, "output_tokens": 5, "cached_tokens": 40}


async def test_caching_can_be_switched_off():
    request = ModelRequest(system="Be brief.", messages=user("hi"))
    _, asked = await ask_anthropic(request, options={"cache_control": None})
    assert asked["system"] == "Be brief."
    assert "cache_control" not in asked


async def test_anthropic_sees_again_what_it_thought_in_this_turn_and_not_before():
    thought = {"reasoning": "Let me see.", "reasoning_signature": "sealed"}
    call = {"id": "1", "name": "look", "arguments": "{}"}
    before = [*user("a"), {"role": "assistant", "content": "b", **thought}]
    said = [
        {"role": "assistant", "content": "", "tool_calls": [call], **thought},
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "seen"},
    ]
    _, asked = await ask_anthropic(ModelRequest(messages=[*before, *user("c"), *said]))
    assert asked["messages"][1] == {"role": "assistant", "content": "b"}
    block = {"type": "thinking", "thinking": "Let me see.", "signature": "sealed"}
    assert asked["messages"][3]["content"][0] == block
