"""Every provider with a client of ours, against servers that are as strict as the published types."""

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from annotated_types import Ge

from hookline import Agent
from hookline.errors import ContextOverflow, ModelError, ModelFailed, ModelUnavailable, UnknownModel
from hookline.models import ModelRequest, Models
from hookline.models.capabilities import CAPABILITIES
from hookline.types import AudioPart, FilePart, ImagePart, TextPart

from .. import anthropic_server, google_server, openai_server
from ..anthropic_server import AnthropicServer
from ..google_server import GoogleServer
from ..openai_server import OpenAIServer, Refused, Thought
from ..responses_server import ResponsesServer, Stream
from ..tables import each_row
from .ask import events, one, text_of, user

SERVERS: dict[str, tuple[type[OpenAIServer], str]] = {
    "openai": (OpenAIServer, "gpt-5"),
    "openai-responses": (ResponsesServer, "gpt-5"),
    "anthropic": (AnthropicServer, "claude-sonnet-5"),
    "google": (GoogleServer, "gemini-3-flash"),
}
WEATHER = {
    "name": "weather", "description": "Tell the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}  # fmt: skip


@dataclass
class Case:
    """A running server, and the model behind it."""

    provider: str
    server: OpenAIServer
    model: str
    settings: dict[str, Any] = field(default_factory=dict)

    async def ask(self, request: ModelRequest) -> list[Any]:
        models = Models(settings={self.provider: self.settings})
        try:
            return await events(models.get(self.model), request)
        finally:
            await models.close()

    @property
    def last(self) -> dict[str, Any]:
        return self.server.requests[-1]


@pytest.fixture(params=SERVERS)
def case(request, monkeypatch) -> Iterator[Case]:
    kind, model = SERVERS[request.param]
    with kind(["Hello, world."]) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield Case(request.param, server, f"{request.param}:{model}")


def only(*names: str) -> Any:
    return pytest.mark.parametrize("case", names, indirect=True)


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def error_body(provider: str, status: int, kind: str, message: str) -> bytes:
    """An error as the provider writes it."""
    if provider == "anthropic":
        return anthropic_server.refused(status, kind, message)[1]
    if provider == "google":
        return google_server.refused(status, kind.upper(), message)[1]
    return openai_server.refused(status, message, type=kind)[1]


# --- what every provider does -----------------------------------------------------------------------


async def test_an_answer_streams_in_pieces_and_ends_with_its_usage(case):
    found = await case.ask(ModelRequest(messages=user("hi"), system="Be brief."))
    assert text_of(found) == "Hello, world."
    assert len([event for event in found if event.kind == "text"]) > 1
    usage = one(found, "usage")
    assert usage["output_tokens"] == 5
    if case.provider != "openai":
        assert (usage["input_tokens"], usage["cached_tokens"]) == (9, 2)
    assert found[-1].data == {"finish_reason": "stop"}
    assert "Be brief." in json.dumps(case.last)


async def test_the_usage_has_a_cost_if_the_model_has_prices_and_none_otherwise(case):
    assert "cost" not in one(await case.ask(ModelRequest(messages=user("hi"))), "usage")
    _, name = SERVERS[case.provider]
    case.settings["prices"] = {name: {"input": 1_000_000.0, "cached_input": 0.0, "output": 0.0}}
    usage = one(await case.ask(ModelRequest(messages=user("hi"))), "usage")
    assert usage["cost"] == usage["input_tokens"] - usage.get("cached_tokens", 0)


def test_an_agent_calls_tools_several_at_once_and_continues(case):
    both = [("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})]
    case.server.answers = [both, ("weather", {"city": "Bonn"}), "All sunny."]
    result = Agent(case.model, instructions="Be brief.", tools=[weather]).run_sync("Is it sunny?")
    assert result.text == "All sunny."
    assert [call.result for call in result.tool_calls] == [
        "sunny in Rome", "sunny in Oslo", "sunny in Bonn",
    ]  # fmt: skip


def test_a_denied_call_reaches_the_model_with_its_reason(case):
    case.server.answers = [("weather", {"city": "Rome"}), "No."]
    agent = Agent(case.model, tools=[weather])
    agent.on.tool_call(lambda event: event.deny("not today"))
    agent.run_sync("hi")
    assert "not today" in json.dumps(case.last)


@each_row("choice", ["none", "required", {"name": "weather"}])
async def test_the_choice_of_tools_has_a_form_that_the_api_takes(choice, case):
    request = ModelRequest(messages=user("hi"), tools=[WEATHER], tool_choice=choice)
    await case.ask(request)
    assert "weather" in json.dumps(case.last)


async def test_tools_with_names_that_no_api_takes_are_renamed_and_come_back_under_their_own(case):
    tool = {**WEATHER, "name": "my tools/weather:now"}
    case.server.answers = [
        lambda body: (next(n for n in _strings(body) if n.startswith("my_tools")), {"city": "Rome"})
    ]
    found = await case.ask(ModelRequest(messages=user("hi"), tools=[tool]))
    assert one(found, "tool_call")["name"] == "my tools/weather:now"
    assert found[-1].data == {"finish_reason": "tool_calls"}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(each)


@dataclass
class Count:
    number: Annotated[int, Ge(1)]
    words: list[str]


def test_a_typed_answer_has_the_form_that_was_asked_for(case):
    case.server.answers = ['{"number": 3, "words": ["a"]}']
    assert Agent(case.model, output=Count).run_sync("count").output == Count(3, ["a"])
    assert '"words"' in json.dumps(case.last)
    assert "final_answer" not in json.dumps(case.last)


def test_a_typed_answer_can_come_after_tool_calls(case):
    case.server.answers = [("weather", {"city": "Rome"}), '{"number": 3, "words": ["a"]}']
    agent = Agent(case.model, output=Count, tools=[weather])
    assert agent.run_sync("count").output == Count(3, ["a"])


@pytest.mark.parametrize("case", ["anthropic", "google"], indirect=True)
def test_older_models_give_typed_answers_by_a_tool(case):
    older = {"anthropic": "claude-sonnet-4-20250514", "google": "gemini-2.5-flash"}[case.provider]
    calls = [("weather", {"city": "Rome"}), ("final_answer", {"number": 3, "words": []})]
    case.server.answers = list(calls)
    agent = Agent(f"{case.provider}:{older}", output=Count, tools=[weather])
    assert agent.run_sync("count").output == Count(3, [])


@each_row(
    "messages",
    [
        [*user("a"), *user("b")],
        [*user("a"), {"role": "assistant", "content": ""}, *user("b")],
        [{"role": "system", "content": "more"}, *user("a")],
        [*user("a"), {"role": "assistant", "content": "", "tool_calls": [
            {"id": "other:1/x", "name": "fs.read", "arguments": "{no json"}]},
         {"role": "tool", "tool_call_id": "other:1/x", "content": ""}],
        [*user("a"), {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "name": "x", "arguments": {"a": 1}},
            {"id": "2", "name": "x", "arguments": "[]"}]},
         {"role": "tool", "tool_call_id": "1", "content": "ok", "is_error": True},
         {"role": "tool", "tool_call_id": "2", "content": [ImagePart(b"x"), TextPart("t")]}],
        [*user("a"), {"role": "assistant", "content": "b", "reasoning": "hm"}, *user("c")],
        [*user("a"), {"role": "assistant", "content": "b", "reasoning": "hm",
                      "reasoning_signature": "c2lnbmVk"}, *user("c")],
        [*user("a"), {"role": "assistant", "content": "b", "reasoning": "h",
                      "reasoning_signature": '{"anthropic":[["own",null,{"size":9}]]}'}, *user("c")],
        [*user("a"), {"role": "assistant", "content": "b",
                      "reasoning_signature": '{"google":[["text",1,7],[3]]}'}, *user("c")],
    ],
)  # fmt: skip
async def test_every_conversation_has_a_form_that_the_api_takes(messages, case):
    case.server.requests.clear()
    await case.ask(ModelRequest(messages=messages, thinking="low"))
    assert len(case.server.requests) == 1


# --- media ------------------------------------------------------------------------------------------

PDF, WAV = FilePart(b"%PDF-1.7", name="a.pdf"), AudioPart(b"RIFF")
MEDIA = {"images": ImagePart(b"\x89PNG"), "audio": WAV, "files": PDF}


@each_row("feature", list(MEDIA))
async def test_media_are_sent_exactly_if_the_capabilities_say_so(feature, case):
    part = MEDIA[feature]
    encoded = base64.b64encode(part.data).decode()
    plain = {"type": part.type, "mime_type": part.mime_type, "data": encoded}  # as on the tape
    for written in (part, plain):
        await case.ask(
            ModelRequest(messages=[{"role": "user", "content": [TextPart("look"), written]}])
        )
        supported = bool(getattr(CAPABILITIES[case.provider], feature))
        assert (encoded in json.dumps(case.last)) is supported
        assert (": this model takes none]" in json.dumps(case.last)) is not supported


async def test_pictures_and_documents_can_be_addresses(case):
    parts = [ImagePart(url="https://x.org/a.png"), FilePart(url="https://x.org/b.pdf")]
    await case.ask(ModelRequest(messages=[{"role": "user", "content": parts}]))
    assert "https://x.org/a.png" in json.dumps(case.last)
    assert "https://x.org/b.pdf" in json.dumps(case.last)


async def test_a_file_of_text_is_sent_as_text(case):
    part = FilePart(b"name,age\n", "text/csv", "people.csv")
    await case.ask(ModelRequest(messages=[{"role": "user", "content": [part]}]))
    assert "people.csv:\\n\\nname,age" in json.dumps(case.last)


async def test_pictures_and_documents_that_tools_return_reach_the_model(case):
    called = {"id": "call_1", "name": "weather", "arguments": "{}"}
    result = [TextPart("see"), ImagePart(b"\x89PNG"), PDF]
    messages = [
        *user("hi"),
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_1", "name": "weather", "content": result},
    ]
    await case.ask(ModelRequest(messages=messages, tools=[WEATHER]))
    for part in result[1:]:
        assert base64.b64encode(part.data).decode() in json.dumps(case.last)


# --- thinking ---------------------------------------------------------------------------------------


@each_row("level", ["off", "low", "medium", "high"])
async def test_every_level_of_thinking_has_a_form_that_the_api_takes(level, case):
    names = {
        "anthropic": ["claude-sonnet-5", "claude-opus-4-8", "claude-sonnet-4-5", "claude-opus-4-1"],
        "google": ["gemini-3-flash", "gemini-3-pro", "gemini-2.5-flash", "gemini-2.5-pro"],
    }.get(case.provider, ["gpt-5", "gpt-4o"])  # fmt: skip
    if case.provider == "openai":
        names = ["gpt-5"]
    for name in names:
        case.model = f"{case.provider}:{name}"
        options = {"temperature": 0.2} if case.provider == "anthropic" else {}
        await case.ask(ModelRequest(messages=user("hi"), thinking=level, options=options))


@only("openai-responses", "anthropic", "google")
def test_thoughts_stream_as_reasoning_and_go_back_unchanged_in_their_places(case):
    first = Thought("Hm. ", Thought("Or: ", [("weather", {"city": "A"}), ("weather", {"city": "B"})]))
    first.text, first.redacted = "Let me look.", "cmVkYWN0ZWQ="
    case.server.answers = [first, Thought("So: ", ("weather", {"city": "C"})), "Sunny."]
    seen: list[str] = []

    async def run() -> None:
        agent = Agent(case.model, tools=[weather], options={"thinking": "low"})
        async with agent.stream("hi") as stream:
            seen.extend([e.data["delta"] async for e in stream if e.kind == "reasoning"])

    asyncio.run(run())
    assert [piece for piece in seen if piece.strip()] == ["Hm. ", "Or: ", "So: "]
    assert len(case.server.requests) == 3  # the server refuses what is changed or misplaced
    back = {
        "openai-responses": lambda b: [i.get("type") or i["role"] for i in b["input"]],
        "anthropic": lambda b: [x["type"] for m in b["messages"] for x in m["content"]],
        "google": lambda b: [
            (*(k for k in p if k != "thoughtSignature"), "thoughtSignature" in p)
            for c in b["contents"] for p in c["parts"]
        ],
    }[case.provider](case.last)  # fmt: skip
    expected = {
        "openai-responses": ["user", "reasoning", "assistant", "reasoning", *["function_call"] * 2,
                             *["function_call_output"] * 2, "reasoning", "function_call",
                             "function_call_output"],
        "anthropic": ["text", "redacted_thinking", "thinking", "text", "thinking", *["tool_use"] * 2,
                      *["tool_result"] * 2, "thinking", "tool_use", "tool_result"],
        "google": [("text", False), ("text", True), ("functionCall", True), ("functionCall", False),
                   *[("functionResponse", False)] * 2, ("functionCall", True),
                   ("functionResponse", False)],
    }[case.provider]  # fmt: skip
    assert back == expected


@only("openai-responses", "anthropic", "google")
async def test_thoughts_survive_a_gate_that_changes_text_and_calls(case):
    case.server.answers = [Thought("Hm.", [("weather", {"city": "A"}), ("weather", {"city": "B"})])]
    found = await case.ask(ModelRequest(messages=user("hi"), tools=[WEATHER], thinking="low"))
    calls = [e.data for e in found if e.kind == "tool_call"][:1]
    signature = [e.data["signature"] for e in found if e.data.get("signature")][-1]
    answered = {"role": "assistant", "content": "Changed.", "tool_calls": calls, "reasoning": "Hm.",
                "reasoning_signature": signature}  # fmt: skip
    result = {"role": "tool", "tool_call_id": calls[0]["id"], "name": "weather", "content": "sunny"}
    case.server.answers = ["Sunny."]
    messages = [*user("hi"), answered, result]
    await case.ask(ModelRequest(messages=messages, tools=[WEATHER], thinking="low"))
    assert len(case.server.requests) == 2


@only("openai-responses", "anthropic", "google")
async def test_thoughts_of_one_provider_are_not_sent_to_another(case):
    case.server.answers = [Thought("Hm.", ("weather", {"city": "A"}))]
    found = await case.ask(ModelRequest(messages=user("hi"), tools=[WEATHER], thinking="low"))
    signature = [e.data["signature"] for e in found if e.data.get("signature")][-1]
    call = one(found, "tool_call")
    said = {"role": "assistant", "content": "", "tool_calls": [call], "reasoning": "Hm.",
            "reasoning_signature": signature}  # fmt: skip
    result = {"role": "tool", "tool_call_id": call["id"], "name": "weather", "content": "sunny"}
    for provider, (kind, model) in SERVERS.items():
        if provider == case.provider:
            continue
        with kind(["Sunny."]) as server:
            url = server.url if provider.startswith("openai") else server.url.removesuffix("/v1")
            models = Models(settings={provider: {"base_url": url, "api_key": server.key}})
            asked = ModelRequest(messages=[*user("hi"), said, result], tools=[WEATHER], thinking="low")
            found = await events(models.get(f"{provider}:{model}"), asked)
            await models.close()
            assert text_of(found) == "Sunny."
            assert "signature" not in json.dumps(server.requests[-1]).replace(
                '"thoughtSignature": "skip_thought_signature_validator"', ""
            )


# --- errors -----------------------------------------------------------------------------------------


@each_row(
    ("status", "kind", "message", "error", "says"),
    [
        (400, "invalid_request_error", "bad", ModelFailed, r"refused the request \(400\): bad"),
        (401, "authentication_error", "who?", ModelFailed, r"refused the key in .*; check it \(401\)"),
        (403, "permission_error", "not yours", ModelFailed, r"refused the key in .*; check it \(403\)"),
        (413, "request_too_large", "too big", ContextOverflow, "too long"),
        (429, "rate_limit_error", "slow down", ModelFailed, r"limits the rate of requests \(429\)"),
        (500, "api_error", "oops", ModelFailed, r"failed \(500\): oops"),
        (503, "unavailable", "busy", ModelFailed, r"failed \(503\): busy"),
        (529, "overloaded_error", "Overloaded", ModelFailed, r"failed \(529\)"),
        (302, "moved", "", ModelFailed, r"has moved \(302\)"),
    ],
)  # fmt: skip
async def test_an_error_is_explained(status, kind, message, error, says, case):
    body = error_body(case.provider, status, kind, message)
    case.server.answers = [Refused(status, body, {"Retry-After": "7"})]
    with pytest.raises(error, match=says) as raised:
        await case.ask(ModelRequest(messages=user("hi")))
    assert case.provider in str(raised.value)
    if isinstance(raised.value, ModelFailed):
        assert raised.value.transient is (status in (429, 500, 503, 529))
        assert raised.value.retry_after == (7.0 if raised.value.transient else None)


OVERFLOWS = {
    "openai": "This model's maximum context length is 200000 tokens. However, your messages resulted "
    "in 200001 tokens. Please reduce the length of the messages.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust it.",
    "anthropic": "prompt is too long: 200001 tokens > 200000 maximum",
    "google": "The input token count (200001) exceeds the maximum number of tokens allowed (200000).",
}


async def test_a_conversation_that_does_not_fit_is_told_apart(case):
    message = OVERFLOWS[case.provider]
    body = error_body(case.provider, 400, "invalid_request_error", message)
    case.server.answers = [Refused(400, body)]
    with pytest.raises(ContextOverflow) as raised:
        await case.ask(ModelRequest(messages=user("hi")))
    if "200001" in message:
        assert (raised.value.needed, raised.value.window) == (200001, 200000)


UNKNOWN = {
    "openai": "The model `{}` does not exist or you do not have access to it.",
    "openai-responses": "The requested model '{}' does not exist.",
    "anthropic": "model: {}",
    "google": "models/{} is not found for API version v1beta, or is not supported for "
    "generateContent. Call ListModels to see the list of available models.",
}


async def test_an_unknown_model_is_refused_with_the_nearest_names(case):
    _, name = SERVERS[case.provider]
    case.server.models = [f"models/{name}" if case.provider == "google" else name, "other"]
    message = UNKNOWN[case.provider].format(f"{name}-x")
    kind = "not_found" if case.provider == "google" else "not_found_error"
    case.server.answers = [Refused(404, error_body(case.provider, 404, kind, message))]
    case.model = f"{case.model}-x"
    with pytest.raises(UnknownModel, match=f"did you mean '{case.provider}:{name}'"):
        await case.ask(ModelRequest(messages=user("hi")))
    case.server.models = []
    with pytest.raises(UnknownModel, match="does not have it"):
        await case.ask(ModelRequest(messages=user("hi")))


async def test_a_missing_key_is_named(case, monkeypatch):
    for name in case.server.environment:
        if name.endswith("KEY"):
            monkeypatch.delenv(name)
    with pytest.raises(ModelUnavailable, match=rf"{case.provider} needs a key: set .*_API_KEY"):
        await case.ask(ModelRequest(messages=user("hi")))


async def test_a_wrong_key_is_named_and_not_shown(case, monkeypatch):
    [name] = [each for each in case.server.environment if each.endswith("KEY")]
    monkeypatch.setenv(name, "sk-wrong-key")
    with pytest.raises(ModelFailed, match=f"key in {name}; check it") as raised:
        await case.ask(ModelRequest(messages=user("hi")))
    assert "sk-wrong" not in str(raised.value)


@only("google")
async def test_the_first_of_two_variables_that_is_set_has_the_key(case, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "sk-wrong-key")
    with pytest.raises(ModelFailed, match="key in GOOGLE_API_KEY"):
        await case.ask(ModelRequest(messages=user("hi")))
    monkeypatch.setenv("GOOGLE_API_KEY", " ")
    assert text_of(await case.ask(ModelRequest(messages=user("hi")))) == "Hello, world."


@only("google")
async def test_a_quota_that_fills_again_is_waited_for_and_one_that_does_not_is_not(case):
    message = "You exceeded your current quota, please check your plan and billing details."
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    _, body = google_server.refused(429, "RESOURCE_EXHAUSTED", message, details=[info])
    case.server.answers = [Refused(429, body)]
    with pytest.raises(ModelFailed, match="limits the rate") as raised:
        await case.ask(ModelRequest(messages=user("hi")))
    assert raised.value.retry_after == 34.5
    case.server.answers = [Refused(429, google_server.refused(429, "RESOURCE_EXHAUSTED", message)[1])]
    with pytest.raises(ModelFailed, match="requires payment"):
        await case.ask(ModelRequest(messages=user("hi")))


IN_STREAM = {
    "openai": b'data: {"error":{"message":"busy","type":"server_error","code":null}}\n\n',
    "openai-responses": b'data: {"type":"error","code":"server_error","message":"busy","param":null,'
    b'"sequence_number":1}\n\n',
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
    b'"message":"busy"}}\n\n',
    "google": b'data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}\n\n',
}


async def test_an_error_in_the_middle_of_a_stream_is_explained(case):
    whole = await recorded(case)
    for start in (b"", whole[: whole.index(b"\n\n") + 2] if b"\n\n" in whole else b""):
        case.server.answers = [start + IN_STREAM[case.provider]]
        with pytest.raises(ModelFailed, match=r"failed \(\d+\): busy") as raised:
            await case.ask(ModelRequest(messages=user("hi")))
        assert raised.value.transient


@only("openai-responses")
@each_row(
    ("kind", "fields", "expected"),
    [
        ("failed", {"error": {"code": "rate_limit_exceeded", "message": "slow"}}, "limits the rate"),
        ("failed", {"error": {"code": "server_error", "message": "oops"}}, r"failed \(500\): oops"),
        ("failed", {"error": {"code": "invalid_prompt", "message": "no"}}, "refused the request .*no"),
        ("failed", {"error": None}, "the response failed"),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, {"length"}),
        ("incomplete", {"incomplete_details": {"reason": "content_filter"}}, {"content_filter"}),
    ],
)
async def test_failed_and_incomplete_responses_are_told_apart(kind, fields, expected, case):
    stream = Stream("gpt-5")
    if kind == "incomplete":
        stream.say("Hello")
    case.server.answers = [stream.end(kind, **fields)]
    if isinstance(expected, str):
        with pytest.raises(ModelFailed, match=expected):
            await case.ask(ModelRequest(messages=user("hi")))
    else:
        found = await case.ask(ModelRequest(messages=user("hi")))
        assert {found[-1].data["finish_reason"]} == expected


@only("google")
@each_row(
    "reason",
    ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "OTHER",
     "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "IMAGE_SAFETY"],
)  # fmt: skip
async def test_an_answer_that_google_stops_is_an_error_with_its_reason(reason, case):
    stopped = google_server.chunks([{"text": "Well"}], reason, finishMessage="it says why")
    case.server.answers = [stopped]
    with pytest.raises(ModelFailed, match=rf"stopped the answer \({reason}\): it says why"):
        await case.ask(ModelRequest(messages=user("hi")))


@only("google")
async def test_a_prompt_that_google_blocks_is_an_error_with_its_reason(case):
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": "not that"}
    case.server.answers = [google_server.written([{"promptFeedback": feedback}])]
    with pytest.raises(ModelFailed, match=r"blocked the prompt \(SAFETY\): not that") as raised:
        await case.ask(ModelRequest(messages=user("hi")))
    assert not raised.value.transient


@only("anthropic")
async def test_a_refusal_of_anthropic_is_an_error_with_its_explanation(case):
    whole = await recorded(case)
    details = (
        b'"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "not that"}'
    )
    case.server.answers = [whole.replace(b'"stop_reason": "end_turn"', details)]
    with pytest.raises(ModelFailed, match=r"declined to answer .*not that"):
        await case.ask(ModelRequest(messages=user("hi")))


async def recorded(case: Case, answer: Any = "Hello, world.") -> bytes:
    """The bytes of an answer of the server."""
    body = {"model": "x"}
    if case.provider == "openai":
        return openai_server.events(answer, "x")
    if case.provider == "anthropic":
        return anthropic_server.events(answer, body)
    return case.server.events(answer, body)  # type: ignore[attr-defined]


async def test_an_answer_that_is_cut_off_anywhere_is_an_error(case):
    whole = await recorded(case)
    last = {"openai": b'"stop"', "google": b'"STOP"'}.get(case.provider, b"message_delta")
    last = b"response.completed" if case.provider == "openai-responses" else last
    end = whole.rindex(last) - 1
    for place in range(0, end, max(end // 25, 1)):
        case.server.answers = [whole[:place]]
        with pytest.raises(ModelFailed, match=r"cut off|no JSON|ended without"):
            await case.ask(ModelRequest(messages=user("hi")))


@each_row(
    ("sent", "says"),
    [
        (b"data: no json\n\n", "no JSON"),
        (b"data: [1]\n\n", "no object"),
        (b"data: " + b"[" * 200_000 + b"\n\n", "no JSON"),
        (b'data: {"a": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}\n\n", "no JSON"),
        (b"data: {" + b" " * 17_000_000, "more than|no JSON"),
        (b"", "cut off|ended"),
        (b": ping\n\n", "cut off|ended"),
        (b"<html>", "cut off|ended"),
    ],
)
async def test_a_stream_that_is_no_answer_is_explained(sent, says, case):
    case.server.answers = [sent]
    with pytest.raises(ModelFailed, match=says) as raised:
        await case.ask(ModelRequest(messages=user("hi")))
    assert len(str(raised.value)) < 500


async def test_endless_calls_are_refused(case):
    case.server.answers = [[("weather", {"city": "Rome"})] * 300]
    with pytest.raises(ModelFailed, match="more than 256 tool calls"):
        await case.ask(ModelRequest(messages=user("hi"), tools=[WEATHER]))


@only("anthropic", "google")
async def test_endless_blocks_are_refused(case):
    blocks = {
        "anthropic": [
            {"type": "content_block_start", "index": n, "content_block": {"type": kind, "data": "x"}}
            for kind in ("redacted_thinking", "thinking") for n in range(12_000)
        ],
        "google": [
            {"candidates": [{"content": {"parts": [{"text": "a", "thoughtSignature": "eA=="}]}}]}
        ] * 12_000,
    }[case.provider]  # fmt: skip
    halves = (blocks, blocks[12_000:] or blocks)
    for half in halves:
        case.server.answers = ["".join(f"data: {json.dumps(each)}\n\n" for each in half).encode()]
        with pytest.raises(ModelFailed, match=r"more than \d+ (open )?blocks"):
            await case.ask(ModelRequest(messages=user("hi")))


@only("google")
async def test_a_signature_on_a_thought_goes_back_with_the_thought(case):
    thought = {"text": "Hm.", "thought": True}
    signed = case.server.signed(thought, "thought")
    call = {"functionCall": {"id": "1", "name": "weather", "args": {"city": "Rome"}}}
    whole = google_server.chunks([signed, case.server.signed(call, "call")], "STOP")
    case.server.answers = [whole]
    found = await case.ask(ModelRequest(messages=user("hi"), tools=[WEATHER], thinking="low"))
    signature = [e.data["signature"] for e in found if e.data.get("signature")][-1]
    said = {"role": "assistant", "content": "", "tool_calls": [one(found, "tool_call")],
            "reasoning": "Hm.", "reasoning_signature": signature}  # fmt: skip
    result = {"role": "tool", "tool_call_id": "1", "name": "weather", "content": "sunny"}
    await case.ask(ModelRequest(messages=[*user("hi"), said, result], tools=[WEATHER]))
    assert case.last["contents"][1]["parts"][0] == signed


async def test_endless_arguments_are_refused(case, monkeypatch):
    monkeypatch.setattr("hookline.models.http.reply.MOST_ARGUMENTS", 1000)
    case.server.answers = [("weather", {"city": "x" * 2000})]
    with pytest.raises(ModelFailed, match="more than 1000 characters of arguments"):
        await case.ask(ModelRequest(messages=user("hi"), tools=[WEATHER]))


async def test_an_endless_answer_is_refused(case, monkeypatch):
    monkeypatch.setattr("hookline.models.http.client.LARGEST_ANSWER", 300)
    with pytest.raises(ModelFailed, match="more than 300 bytes"):
        await case.ask(ModelRequest(messages=user("hi")))


WRONG: list[Any] = [None, True, -1, 3.5, "x", "", [], [1], {}, {"a": 1}]


def test_a_wrong_type_in_any_field_of_an_answer_is_a_clear_error_or_harmless(case):
    """Each field of each chunk is replaced by values of every type; the client is driven directly."""
    model = Models().get(case.model)
    answers = [Thought("Hm.", [("weather", {"city": "A"})], text="So"), "Hello"]
    streams = [asyncio.run(recorded(case, answer)) for answer in answers]
    for stream in streams:
        payloads = [
            line[6:] for line in stream.replace(b"\r", b"").split(b"\n") if line[:6] == b"data: "
        ]
        chunks = [json.loads(each) for each in payloads if each != b"[DONE]"]
        for number, chunk in enumerate(chunks):
            for changed in mutations(chunk):
                drive(model, [*chunks[:number], changed, *chunks[number + 1 :]])


def mutations(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
            for each in (*WRONG, *mutations(value[key])):
                yield {**value, key: each}
    elif isinstance(value, list):
        for number, item in enumerate(value):
            for each in (*WRONG, *mutations(item)):
                yield [*value[:number], each, *value[number + 1 :]]


def drive(model: Any, chunks: list[dict[str, Any]]) -> None:
    """What `stream` does with chunks, without a connection; only errors of a model may come out."""
    from hookline.models.http.reply import ToolNames

    reply = model._reply(ToolNames(["weather"]))
    found: list[Any] = []
    try:
        for chunk in chunks:
            found += reply.take(model._chunk(json.dumps(chunk).encode()))
            if reply.done:
                break
        model._check_end(reply, reply.done)
        found += reply.end()
        usage = reply.usage
        reason = reply.finish_reason
    except ModelError:
        return
    assert isinstance(reason, str)
    assert all(type(value) in (int, float) for value in usage.values())
    for event in found:
        fields = {"tool_call": ("id", "name", "arguments")}.get(event.kind, ("delta",))
        assert all(isinstance(event.data[name], str) for name in fields), (chunks, event)


# --- the official clients as oracles ----------------------------------------------------------------


def test_the_official_client_reads_the_same_from_the_server(case):
    """Shows that the server is right: the provider's own library understands it as ours does."""
    case.server.answers = ["Hello, world."]
    url, key = case.server.url, case.server.key
    if case.provider.startswith("openai"):
        from openai import OpenAI

        with OpenAI(base_url=url, api_key=key) as client:
            chat: Any = [{"role": "user", "content": "hi"}]
            if case.provider == "openai":
                stream = client.chat.completions.create(model="gpt-5", messages=chat, stream=True)
                text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
            else:
                with client.responses.stream(model="gpt-5", input=chat, store=False) as answer:
                    text = answer.get_final_response().output_text
    elif case.provider == "anthropic":
        from anthropic import Anthropic

        with Anthropic(base_url=url.removesuffix("/v1"), api_key=key) as client:
            said: Any = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
            with client.messages.stream(model="claude-x", max_tokens=9, messages=said) as answer:
                text = "".join(answer.text_stream)
    else:
        from google import genai

        options: Any = {"base_url": url.removesuffix("/v1")}
        client = genai.Client(api_key=key, http_options=options, vertexai=False)
        pieces = client.models.generate_content_stream(model="gemini-3-flash", contents="hi")
        text = "".join(piece.text or "" for piece in pieces)
    assert text == "Hello, world."
