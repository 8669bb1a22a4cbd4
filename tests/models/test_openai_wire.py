"""Requests and chunks are mapped between Hookline's form and the wire's."""

import pytest

from hookline.errors import BadResponse
from hookline.models import BadSetting, ModelRequest
from hookline.models.http.providers import service
from hookline.models.http.reply import ToolNames
from hookline.models.http.settings import Endpoint, Settings
from hookline.models.openai.wire import ChatReply, body, messages, usage
from hookline.models.prices import check_prices, cost
from hookline.types import AudioPart, ImagePart, TextPart

from ..tables import each_row


def written(request: ModelRequest, provider: str = "openai", **settings):
    names = ToolNames(tool["name"] for tool in request.tools)
    return body(request, "m", names, service(provider), Settings.read(settings, provider))


def chunk(delta=None, reason=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def piece(index, arguments="", **more):
    function = {"arguments": arguments}
    if "name" in more:
        function["name"] = more.pop("name")
    return {"index": index, "function": function, **more}


def test_a_conversation_with_tools_is_written_as_the_api_reads_it():
    request = ModelRequest(
        system="Be brief.",
        messages=[
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "1", "name": "fs.read", "arguments": {"path": "a"}},
                    {"id": "2", "name": "gone.tool", "arguments": '{"path": '},
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": "text"},
            {"role": "tool", "tool_call_id": "2", "content": "failed"},
        ],
        tools=[{"name": "fs.read", "description": "d", "parameters": {"type": "object"}}],
        tool_choice={"name": "fs.read"},
    )
    found = written(request)
    assert found["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "fs_read", "arguments": '{"path": "a"}'},
                },
                {
                    "id": "2",
                    "type": "function",
                    "function": {"name": "gone_tool", "arguments": '{"invalid": "{\\"path\\": "}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "text"},
        {"role": "tool", "tool_call_id": "2", "content": "failed"},
    ]
    [tool] = found["tools"]
    assert tool["function"] == {"name": "fs_read", "description": "d", "parameters": {"type": "object"}}
    assert found["tool_choice"] == {"type": "function", "function": {"name": "fs_read"}}
    assert found["stream"] is True
    assert found["stream_options"] == {"include_usage": True}


def test_images_and_sound_become_parts_and_text_alone_stays_text():
    picture = ImagePart(b"\x00\x01", "image/jpeg")
    content = [TextPart("See"), picture, ImagePart(url="https://x/y.png"), AudioPart(b"\x02")]
    request = ModelRequest(
        messages=[
            {"role": "user", "content": content},
            {"role": "user", "content": [TextPart("a"), {"type": "text", "text": "b"}]},
        ]
    )
    first, second = messages(request, ToolNames([]))
    assert first["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAE="}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        {"type": "input_audio", "input_audio": {"data": "Ag==", "format": "wav"}},
    ]
    assert second["content"] == "a\nb"


def test_an_image_from_a_tool_follows_after_all_answers():
    image = {"type": "image", "data": "AAE=", "mime_type": "image/png"}
    request = ModelRequest(
        messages=[
            {"role": "tool", "tool_call_id": "1", "content": [TextPart("a picture"), image]},
            {"role": "tool", "tool_call_id": "2", "content": "text"},
            {"role": "user", "content": "And?"},
        ]
    )
    found = messages(request, ToolNames([]))
    assert [each["role"] for each in found] == ["tool", "tool", "user", "user"]
    assert found[0]["content"] == "a picture"
    assert found[2]["content"][1]["image_url"]["url"] == "data:image/png;base64,AAE="


def test_tool_names_go_there_and_back_without_clashing():
    own = ["a.b", "a_b", "a/b", "ok", "é", "x" * 80, "x" * 81, ""]
    names = ToolNames(own)
    wires = [names.wire(name) for name in own]
    assert len(set(wires)) == len(own)
    assert all(len(wire) <= 64 and wire.isascii() for wire in wires)
    assert [names.own(wire) for wire in wires] == own
    assert (names.wire("a_b"), names.wire("ok"), names.own("made up")) == ("a_b", "ok", "made up")
    assert ToolNames(own[::-1]).wire("x" * 80) == names.wire("x" * 80)


@pytest.mark.parametrize(
    ("provider", "thinking", "effort"),
    [
        ("openai", "high", "high"),
        ("openai", None, None),
        ("openai", "off", None),
        ("ollama", "off", "none"),
        ("llamacpp", "high", None),
    ],
)
def test_thinking_is_passed_on_where_the_provider_has_it(provider, thinking, effort):
    assert written(ModelRequest(thinking=thinking), provider).get("reasoning_effort") == effort
    asked = written(ModelRequest(options={"thinking": thinking}), provider)
    assert asked.get("reasoning_effort") == effort
    assert "thinking" not in asked


def test_the_settings_say_how_long_to_think_where_the_request_does_not():
    options = {"thinking": "low"}
    assert written(ModelRequest(), options=options)["reasoning_effort"] == "low"
    asked = written(ModelRequest(options={"thinking": "high"}), options=options)
    assert asked["reasoning_effort"] == "high"


@pytest.mark.parametrize("level", ["hihg", "none", 3, {"type": "enabled"}])
def test_a_level_that_does_not_exist_is_refused(level):
    with pytest.raises(BadSetting, match="'thinking' must be one of off, low, medium, high, got"):
        written(ModelRequest(options={"thinking": level}))


def test_reasoning_goes_back_only_to_those_who_want_it():
    message = {"role": "assistant", "content": "x", "reasoning": "hm", "reasoning_signature": "s"}
    request = ModelRequest(messages=[message])
    assert written(request)["messages"] == [{"role": "assistant", "content": "x"}]
    [kept] = written(request, "deepseek")["messages"]
    assert kept["reasoning_content"] == "hm"


def test_options_of_the_request_go_before_those_of_the_settings():
    request = ModelRequest(
        options={"temperature": 1, "max_tokens": 5, "messages": "no"}, session_id="s"
    )
    options = {"temperature": 0, "seed": 3, "stream_options": None}
    found = written(request, options=options)
    assert (found["temperature"], found["seed"], found["max_completion_tokens"]) == (1, 3, 5)
    assert "max_tokens" not in found
    assert "stream_options" not in found
    assert found["messages"] == []
    assert found["prompt_cache_key"] == "s"
    assert written(request, "vllm")["max_tokens"] == 5


def test_several_tool_calls_are_put_together_from_their_pieces():
    reply = ChatReply(ToolNames(["fs.read"]))
    for delta in (
        {"content": None, "tool_calls": [piece(1, id="b", name="other")]},
        {"tool_calls": [piece(0, '{"a"', id="a", name="fs_read"), piece(1, "[")]},
        {"tool_calls": [piece(0, ": 1}", name="fs_read"), piece(1, "]")]},
    ):
        assert reply.take(chunk(delta)) == []
    reply.take(chunk({}, "stop"))
    assert [event.data for event in reply.end()] == [
        {"id": "a", "name": "fs.read", "arguments": '{"a": 1}'},
        {"id": "b", "name": "other", "arguments": "[]"},
    ]
    assert reply.finish_reason == "tool_calls"


def test_calls_without_an_index_are_told_apart_by_their_ids():
    reply = ChatReply(ToolNames([]))
    for call in (
        {"id": "a", "function": {"name": "x", "arguments": {"n": 1}}},
        {"id": "b", "function": {"name": "y", "arguments": "{"}},
        {"function": {"arguments": "}"}},
    ):
        reply.take(chunk({"tool_calls": [call]}))
    assert [event.data["arguments"] for event in reply.end()] == ['{"n": 1}', "{}"]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_told_from_text(field):
    reply = ChatReply(ToolNames([]))
    found = reply.take(chunk({field: "hm", "content": "so"}))
    assert [(event.kind, event.data["delta"]) for event in found] == [
        ("reasoning", "hm"),
        ("text", "so"),
    ]


@pytest.mark.parametrize("odd", [{}, {"choices": []}, {"choices": None}, chunk(None), chunk({})])
def test_chunks_that_say_nothing_are_passed_over(odd):
    assert ChatReply(ToolNames([])).take(odd) == []


@each_row(
    "odd",
    [
        {"choices": 5},
        {"choices": ["x"]},
        {"choices": {"a": 1}},
        chunk("text"),
        chunk({"content": 5}),
        chunk({"tool_calls": 5}),
        chunk({"tool_calls": ["x"]}),
        chunk({"tool_calls": [{"index": [], "function": {}}]}),
        chunk({"tool_calls": [{"index": 0, "function": "x"}]}),
    ],
)
def test_chunks_of_another_form_are_malformed(odd):
    with pytest.raises(BadResponse):
        ChatReply(ToolNames([])).take(odd)


def test_endless_tool_calls_are_malformed():
    reply = ChatReply(ToolNames([]))
    with pytest.raises(BadResponse, match="tool calls"):
        reply.take(chunk({"tool_calls": [piece(index) for index in range(1000)]}))


def test_usage_has_cached_and_reasoning_tokens_and_a_cost():
    found = usage(
        {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 600},
            "completion_tokens_details": {"reasoning_tokens": 40},
        }
    )
    assert found == {
        "input_tokens": 1000,
        "output_tokens": 100,
        "cached_tokens": 600,
        "reasoning_tokens": 40,
    }
    prices = {"input": 2.0, "cached_input": 0.5, "output": 10.0}
    assert cost(found, prices) == pytest.approx((400 * 2 + 600 * 0.5 + 100 * 10) / 1e6)
    assert usage({"prompt_cache_hit_tokens": 5, "prompt_tokens": 9})["cached_tokens"] == 5
    assert usage({"prompt_tokens": "x", "prompt_tokens_details": 3})["input_tokens"] == 0


@pytest.mark.parametrize("wrong", [5, {"m": 5}, {"m": {"inptu": 1}}, {"m": {"input": -1}}])
def test_wrong_prices_are_named(wrong):
    with pytest.raises(BadSetting, match="of p"):
        check_prices(wrong, "p")


@each_row(
    "url",
    [
        "localhost:8080",
        "ftp://x/v1",
        "http://",
        "http://a b/v1",
        "http://x:99999/v1",
        "http://[::1/v1",
        "https://user:sk-secret@x/v1",
        "https://x/v1?key=sk-secret",
    ],
)
def test_an_invalid_base_url_is_refused_without_showing_secrets(url):
    with pytest.raises(BadSetting, match="the base URL of openai") as refused:
        Endpoint.of(service("openai"), Settings(base_url=url))
    assert "sk-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"base_ur": "x"}, "unknown setting 'base_ur' of openai; did you mean 'base_url'"),
        ({"timeout": 0}, "'timeout' of openai must be seconds above 0"),
        ({"options": {"messages": []}}, "'messages' cannot be an option of openai"),
        ({"headers": {"X": "a\nb"}}, "'X' of openai has a line break"),
        ({"headers": {"X:": "a"}}, "invalid name"),
        ({"api_key": 5}, "'api_key' of openai must be text"),
        ({"context_window": 0}, "'context_window'"),
    ],
)
def test_wrong_settings_are_named(values, problem):
    with pytest.raises(BadSetting, match=problem):
        Settings.read(values, "openai")


def test_settings_do_not_show_their_secrets():
    settings = Settings.read({"api_key": "sk-secret", "headers": {"X-Key": "hidden-value"}}, "openai")
    assert "sk-secret" not in repr(settings)
    assert "hidden-value" not in repr(Endpoint.of(service("openai"), settings))
