"""The list of what is to be done."""

import json

import pytest

from hookline.ext.tools import builtin_tools
from hookline.tools import Registry, ToolArgumentError, ToolError

todo = Registry(builtin_tools()).get("todo")


async def test_a_list_is_added_to_done_removed_and_shown(call, context):
    assert await call(todo) == "[nothing is to be done]"
    assert await call(todo, action="add", items=["read\nit", "write"]) == "1. [ ] read it\n2. [ ] write"
    assert await call(todo, action="done", numbers=[1]) == "1. [x] read it\n2. [ ] write"
    assert await call(todo, action="remove", numbers=[1]) == "2. [ ] write"
    assert await call(todo, action="add", items=["test"]) == "2. [ ] write\n3. [ ] test"
    assert await call(todo, action="show") == "2. [ ] write\n3. [ ] test"
    assert json.loads(json.dumps(context.state))["todo"][0]["text"] == "write"


async def test_what_is_not_on_the_list_changes_nothing(call):
    await call(todo, action="add", items=["one", "two"])
    with pytest.raises(ToolError, match="no number 7, 9"):
        await call(todo, action="done", numbers=[1, 7, 9])
    assert await call(todo) == "1. [ ] one\n2. [ ] two"


async def test_a_call_that_says_too_little_is_told(call):
    for action, why in {"add": "add needs items", "done": "say which", "remove": "say which"}.items():
        with pytest.raises(ToolError, match=why):
            await call(todo, action=action)
    for arguments in ({"action": "forget"}, {"action": "add", "items": [""]}):
        with pytest.raises(ToolArgumentError):
            await call(todo, **arguments)
    with pytest.raises(ToolError, match="takes 200 entries"):
        await call(todo, action="add", items=["x"] * 201)
