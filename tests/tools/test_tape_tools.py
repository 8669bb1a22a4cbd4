"""The tape tools, as the agent uses them: through the app, on a real tape."""

import json
import re

import pytest

from hookline.ext.tools import builtin_tools
from hookline.models import Call, Turn
from hookline.tools import Registry, ToolContext, ToolError


def calls(tool, /, **arguments):
    return Turn(tool_calls=[Call(tool, arguments)])


async def say(app, *texts):
    async with app.running():
        for text in texts:
            await app.process({"content": text})


def result(model, request=-1):
    """What the model was last told by a tool."""
    return [m["content"] for m in model.requests[request].messages if m["role"] == "tool"][-1]


async def test_a_handoff_takes_the_place_of_what_came_before_and_the_rest_is_still_found(app, scripted):
    model = scripted(
        "The key is under the doormat.",
        calls("tape_handoff", summary="We spoke of keys.", name="keys"),
        "Handed off.",
        calls("tape_search", words="doorm*"),
        "Found.",
        calls("tape_read"),
        "Read.",
    )
    await say(app, "Where is the key?", "Hand off.", "Where was it?", "Read it.")
    # the turn that handed off is still whole
    assert model.requests[2].messages[0]["content"] == "Where is the key?"
    said = [m["content"] for m in model.requests[3].messages if m["role"] == "user"]
    assert said == [
        "Summary of the conversation so far:\nWe spoke of keys.",
        "Hand off.",
        "Where was it?",
    ]
    assert "doormat" not in json.dumps(model.requests[3].messages)

    found = result(model, 4).splitlines()
    assert len(found) == 2
    assert re.fullmatch(r"\[\w{20}\] \d{4}-.* assistant: The key is under the doormat\.", found[0])

    read = result(model, 6)
    assert re.fullmatch(
        r"\[\w+\] \S+ \S+ user:\nWhere is the key\?\n\n"
        r"\[\w+\] \S+ \S+ assistant:\nThe key is under the doormat\.",
        read,
    )


async def test_reading_goes_back_and_forward_by_id(app, scripted):
    model = scripted(*(f"answer {n}" for n in range(4)), repeat=True)
    await say(app, *(f"question {n}" for n in range(4)))
    async with app.running():
        tape = await app.tape("default:default")
        entries = await tape.store.entries("default:default", kinds={"message"})
    fourth = entries[3].id

    def texts(told):
        return re.findall(r"(?:question|answer) \d", told)

    model = scripted(
        calls("tape_read", entry=fourth, count=3),
        calls("tape_read", entry=fourth, count=3, direction="after"),
        calls("tape_read", entry=fourth, count=1),
        calls("tape_read", entry="no such entry"),
        "Done.",
        name="reader",
    )
    await say(app, "read")
    back, forward, one, wrong = (
        m["content"] for m in model.requests[-1].messages if m["role"] == "tool"
    )
    assert texts(back) == ["question 0", "answer 0", "question 1", "answer 1"][-3:]
    assert f'[more: tape_read(entry="{entries[0].id}", direction="before")]' in back
    assert texts(forward) == ["answer 1", "question 2", "answer 2"]
    assert texts(one) == ["answer 1"]
    assert "this conversation has no entry 'no such entry'" in wrong


async def test_nothing_is_told_of_other_sessions(app, scripted):
    model = scripted("secret plan", repeat=True)
    async with app.running():
        await app.process({"content": "tell", "session_id": "other"})
        other = await (await app.tape("other")).store.entries("other", kinds={"message"})
    model = scripted(
        calls("tape_search", words="plan"), calls("tape_read", entry=other[-1].id), "Done.", name="nosy"
    )
    await say(app, "look")
    found, read = (m["content"] for m in model.requests[-1].messages if m["role"] == "tool")
    assert found == "[no entry of this conversation has all of these words]"
    assert "has no entry" in read


async def test_a_conversation_that_is_seen_whole_has_nothing_before_it(app, scripted):
    model = scripted(calls("tape_read"), "Done.")
    await say(app, "look")
    assert result(model) == "[there is nothing before the part that you see]"


async def test_a_turn_that_handed_off_is_continued_after_a_crash(app, scripted):
    """The anchor leaves the turn under way in sight."""
    from hookline.agent.journal import cut_off_turn

    seen = []

    async def look(event):
        seen.append(await cut_off_turn(await app.tape("default:default")))

    app.hooks.register("turn_end", look)
    scripted("One.", calls("tape_handoff", summary="s"), "Two.")
    await say(app, "first", "second")
    assert seen[1] is not None
    assert seen[1].prompt == "second"


async def test_without_a_tape_they_say_so():
    tools = Registry(builtin_tools())
    for name, arguments in {
        "tape_search": {"words": "x"}, "tape_read": {}, "tape_handoff": {"summary": "x"}
    }.items():  # fmt: skip
        tool = tools.get(name)
        with pytest.raises(ToolError, match="not on a tape"):
            await tool._invoke(tool.validate(arguments), ToolContext(), lambda value: None)
