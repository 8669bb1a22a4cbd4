"""Requests are written as bytes, their tools once until they change."""

import json
from dataclasses import replace

import pytest

from hookline.models import ModelRequest
from hookline.models.http.providers import service
from hookline.models.http.reply import ToolNames
from hookline.models.http.settings import Endpoint, Settings
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
