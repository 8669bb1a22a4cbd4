"""Requests are written as bytes, their tools once until they change."""

import json
import random
from dataclasses import replace

import pytest

from hookline.models import ModelRequest
from hookline.models.http.providers import service
from hookline.models.http.reply import ToolNames
from hookline.models.http.settings import Endpoint, Settings
from hookline.models.openai import request as request_module
from hookline.models.openai.request import RequestWriter
from hookline.models.openai.wire import body

ENDPOINT = Endpoint.of(service("openai"), Settings.read({}, "openai"))


def schema(name: str, **properties):
    return {"name": name, "description": name, "parameters": {"properties": properties}}


def asked(tools, *called: str) -> ModelRequest:
    calls = [{"id": name, "name": name, "arguments": "{}"} for name in called]
    messages = [{"role": "assistant", "content": "", "tool_calls": calls}] if calls else []
    return ModelRequest(messages=[{"role": "user", "content": "Grüße"}, *messages], tools=tools)


def expected(request: ModelRequest):
    names = ToolNames(tool["name"] for tool in request.tools)
    return body(request, "m", names, ENDPOINT.service, ENDPOINT.settings)


def test_what_is_sent_is_the_request_whatever_was_sent_before():
    writer = RequestWriter("m", ENDPOINT)
    read, write = schema("fs.read", path={"type": "string"}), schema("fs.write")
    requests = [
        asked([]),
        asked([read, write]),
        asked([read, write], "fs.read", "gone.tool"),
        replace(asked([read, write]), tool_choice={"name": "fs.write"}),
        asked([read]),
        asked([schema("fs.read", path={"type": "integer"})]),
        asked([]),
        asked([write, read]),
    ]
    for request in requests:
        sent, names = writer.write(request)
        assert json.loads(sent) == expected(request)
        assert [names.own(names.wire(tool["name"])) for tool in request.tools] == [
            tool["name"] for tool in request.tools
        ]


def test_a_list_of_tools_that_grew_is_written_anew():
    writer = RequestWriter("m", ENDPOINT)
    tools = [schema("one")]
    writer.write(asked(tools))
    tools.append(schema("two"))
    sent, _ = writer.write(asked(tools))
    assert [tool["function"]["name"] for tool in json.loads(sent)["tools"]] == ["one", "two"]


def test_names_that_one_conversation_knows_do_not_reach_the_next():
    writer = RequestWriter("m", ENDPOINT)
    tools = [schema("add")]
    writer.write(asked(tools, "gone.tool"))
    sent, names = writer.write(asked(tools, "gone/tool"))
    assert json.loads(sent) == expected(asked(tools, "gone/tool"))
    assert names.own("gone_tool") == "gone/tool"


def test_tools_that_are_no_json_are_refused_each_time_and_forgotten():
    writer = RequestWriter("m", ENDPOINT)
    good, bad = asked([schema("add")]), asked([schema("add", path=object())])
    for _ in range(2):
        with pytest.raises(TypeError):
            writer.write(bad)
        assert json.loads(writer.write(good)[0]) == expected(good)


# --- messages that were sent before --------------------------------------------------------------


def spoken(number: int):
    """One of every kind of message."""
    call = {"id": f"c{number}", "name": "fs.read" if number % 7 == 3 else "add", "arguments": "{}"}
    picture = [{"type": "image", "url": "https://example.com/a.png"}, {"type": "text", "text": "a"}]
    return [
        {"role": "user", "content": f"question {number} é"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "name": "add", "content": str(number)},
        {"role": "tool", "tool_call_id": "x", "name": "see", "content": picture},
        {"role": "tool", "tool_call_id": "y", "name": "add", "content": "wrong", "is_error": True},
        {"role": "assistant", "content": "an answer", "reasoning": "because"},
        {"role": "user", "content": [{"type": "text", "text": "a part"}]},
        {"role": "assistant", "content": None, "tool_calls": [{**call, "arguments": {"a": number}}]},
    ][number % 8]


def change(chosen: random.Random, messages):
    """Do one of the things that turns, hooks and other processes do to a conversation."""
    place = chosen.randrange(len(messages)) if messages else 0
    kind = chosen.choice(["append", "append", "append", "insert", "remove", "replace", "cut", "inside"])
    if kind == "append" or not messages:
        messages.append(spoken(chosen.randrange(100)))
    elif kind == "insert":
        messages.insert(place, spoken(chosen.randrange(100)))
    elif kind == "remove":
        del messages[place]
    elif kind == "replace":
        messages[place] = {**messages[place], "content": f"replaced {chosen.random()}"}
    elif kind == "cut":
        del messages[: place // 2]
    else:
        message = messages[place]
        for call in message.get("tool_calls") or ():
            call["arguments"] = chosen.choice(['{"a": 1}', {"a": 1}, {"a": True}, {"a": 1.0}])
        if isinstance(message["content"], list):
            message["content"][-1]["text"] = f"inside {chosen.random()}"


@pytest.mark.parametrize("seed", range(20))
def test_what_is_sent_is_the_conversation_whatever_was_sent_before(seed):
    chosen = random.Random(seed)
    writer, other = RequestWriter("m", ENDPOINT), RequestWriter("m", ENDPOINT)
    messages, encoded, tools = [], {}, [schema("add"), schema("fs.read")]
    for _ in range(60):
        for _ in range(chosen.randrange(3)):
            change(chosen, messages)
        request = ModelRequest(
            messages=messages, system=chosen.choice(["", "a", "b"]), tools=tools[: chosen.randrange(3)]
        )
        kept = replace(request, encoded=encoded)
        for each in chosen.choice([[writer], [writer, other]]):
            assert each.write(kept)[0] == RequestWriter("m", ENDPOINT).write(request)[0]
        assert json.loads(writer.write(kept)[0]) == expected(request)


def test_a_message_that_was_sent_is_not_encoded_again(monkeypatch):
    writer, encoded = RequestWriter("m", ENDPOINT), {}
    messages = [{"role": "user", "content": f"question {n}"} for n in range(50)]
    writer.write(ModelRequest(messages=messages, encoded=encoded))
    written, wire_message = [], request_module.wire_message

    def counted(message, *rest):
        written.append(message["content"])
        return wire_message(message, *rest)

    monkeypatch.setattr(request_module, "wire_message", counted)
    new = [{"role": "assistant", "content": "an answer"}]
    writer.write(ModelRequest(messages=[*map(dict, messages), *new], encoded=encoded))
    messages[3]["content"] = "changed in place"
    writer.write(ModelRequest(messages=[*messages, *new], encoded=encoded))
    assert written == ["an answer", "changed in place"]
