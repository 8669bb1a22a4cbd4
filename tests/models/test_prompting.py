"""How a request is put to the local model."""

import json

import pytest

from hookline.models import ModelFailed, ModelRequest
from hookline.models.prompt import (
    answer_name,
    call_messages,
    call_schema,
    chat_messages,
    offered_tools,
    read_answer,
    read_call,
)

SHELL = {"name": "shell", "description": "Run it.", "parameters": {"type": "object"}}


def test_tool_calls_and_results_become_text_and_roles_alternate():
    request = ModelRequest(
        system="Be brief.",
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "list"}]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"name": "shell", "arguments": {"c": "ls"}}],
            },
            {"role": "tool", "name": "shell", "tool_call_id": "1", "content": "a.txt"},
            {"role": "user", "content": "and \ud800?"},
            {"role": "system", "content": "In English."},
        ],
    )
    assert chat_messages(request) == [
        {"role": "system", "content": "Be brief.\n\nIn English."},
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": '{"name": "shell", "arguments": {"c": "ls"}}'},
        {"role": "user", "content": "Result of shell: a.txt\n\nand ??"},
    ]


def test_tools_are_described_before_the_conversation():
    messages = call_messages(
        ModelRequest(messages=[{"role": "user", "content": "go"}]), [SHELL], "answer"
    )
    assert "- shell(): Run it." in messages[0]["content"]
    assert messages[-1] == {"role": "user", "content": "go"}
    assert all(json.loads(each["content"]) for each in messages if each["role"] == "assistant")


def test_only_forced_or_offered_tools_count():
    request = ModelRequest(tools=[SHELL])
    assert offered_tools(request, offer=False) == []
    assert offered_tools(request, offer=True) == [SHELL]
    request.tool_choice = "none"
    assert offered_tools(request, offer=True) == []
    request.tool_choice = {"name": "shell"}
    assert offered_tools(request, offer=False) == [SHELL]
    request.tool_choice = {"name": "other"}
    with pytest.raises(ModelFailed, match="'other'"):
        offered_tools(request, offer=False)
    with pytest.raises(ModelFailed, match="no tools"):
        offered_tools(ModelRequest(tool_choice="required"), offer=False)


def test_references_are_moved_with_their_schema():
    parameters = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Point"}},
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    }
    moved = call_schema([{"name": "go", "parameters": parameters}])["$defs"]["t0"]
    assert moved["properties"]["at"] == {"$ref": "#/$defs/t0/$defs/Point"}
    assert moved["$defs"]["Point"]["additionalProperties"] is False
    assert parameters["properties"]["at"] == {"$ref": "#/$defs/Point"}


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ('{"name": "a", "arguments": {"x": 1}}', ("a", '{"x": 1}')),
        ('{\n "name":"a",\n "arguments": {} }\n', ("a", "{}")),
        ('{"name": "a", "arguments": {"x": "cut o', ("a", '{"x": "cut o')),
        ('{"name": "a', None),
        ("words", None),
    ],
)
def test_a_written_call_is_read(written, call):
    assert read_call(written) == call


def test_an_answer_in_words_is_read_even_when_cut():
    assert read_answer('{"text": "hi \\"you\\""}') == 'hi "you"'
    assert read_answer('{"text": "hi yo') == "hi yo"
    assert answer_name([{"name": "answer"}]) == "answer_"
