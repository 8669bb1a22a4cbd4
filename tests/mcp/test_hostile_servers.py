"""Servers that misbehave: the call fails with words, the app goes on, and no process stays."""

import asyncio
import json

import pytest

from hookline.errors import ToolError
from hookline.events import ToolExecutionUpdateEvent

from .conftest import alive, brought, call, python


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_noise_between_the_messages_is_passed_over(servers):
    async with servers.running(bad=servers.hostile("garbage")) as app:
        assert (await call(app, "bad.fine")).content == "fine"


async def test_a_server_that_never_answers_is_given_up_and_the_rest_works(servers):
    mute = servers.hostile("mute", start_timeout=3)
    fine = python(*servers.hostile()["args"])
    async with servers.running(mute=mute, fine=fine) as app:
        [failure] = app.failures
        assert (await call(app, "fine.fine")).content == "fine"
    assert "the MCP server 'mute' did not answer within 3 s" in str(failure)
    assert "its output is not MCP: 'Listening on port 8080'" in str(failure)
    assert not any(map(alive, servers.recorded("pid")))


async def test_a_server_that_dies_during_a_call_is_told_of_and_started_again(servers):
    async with servers.running(bad=servers.hostile()) as app:
        lost = await call(app, "bad.die")
        assert lost.is_error
        assert (
            "the MCP server 'bad' was lost during the call, which may have taken effect" in lost.content
        )
        assert "it ended with exit code 3; it wrote: out of luck" in lost.content
        await until(lambda: app.hooks.pm.get_plugin("mcp").connections["bad"].state == "connected")
        assert (await call(app, "bad.fine")).content == "fine"
        assert app.failures == []
    first, second = servers.recorded("pid")
    assert first != second
    assert not alive(first)
    assert not alive(second)


async def test_a_server_that_dies_again_and_again_is_given_up_until_it_is_called(servers):
    dying = python(
        "-c",
        f"open({str(servers.record)!r}, 'a').write('born\\n'); raise SystemExit('no key')",
        retry={"first": 0},
    )
    async with servers.running(dying=dying, bad=servers.hostile()) as app:
        connection = app.hooks.pm.get_plugin("mcp").connections["dying"]
        await until(lambda: connection.state == "failed")
        assert len(servers.recorded("born")) == 5
        [failure] = app.failures
        assert "ended before it answered (it ended with exit code 1; it wrote: no key)" in str(failure)
        with pytest.raises(ToolError, match="'dying' is not connected: ended before it answered"):
            await connection.call("any", {}, print)
        await until(lambda: len(servers.recorded("born")) == 10)


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(servers):
    async with servers.running(bad=servers.hostile(timeout=0.2)) as app:
        outcome = await call(app, "bad.hang")
        assert outcome.content == "TimeoutError: bad.hang did not finish within 0.2 s"
        await until(lambda: servers.recorded("cancelled"))
        assert (await call(app, "bad.fine")).content == "fine"


async def test_a_large_result_is_cut_and_one_without_bounds_ends_the_connection(servers):
    async with servers.running(bad=servers.hostile()) as app:
        large = await call(app, "bad.large")
        huge = await call(app, "bad.huge")
    assert not large.is_error
    assert len(large.content) < 100_000
    assert huge.is_error
    assert "it sent a message of more than 16,777,216 bytes" in huge.content
    assert not any(map(alive, servers.recorded("pid")))


async def test_of_ten_thousand_tools_some_are_taken_and_the_rest_is_told(servers):
    async with servers.running(bad=servers.hostile("many")) as app:
        assert len(brought(app)) == 500
        [problem] = app.hooks.pm.get_plugin("mcp").connections["bad"].problems
    assert problem.startswith("it has 10,000 tools, of which the first 500 are taken")
    async with servers.running(bad=servers.hostile("many", tools={"allow": ["tool_99*"]})) as app:
        assert len(brought(app)) == 111


async def test_a_tool_that_no_model_could_be_offered_is_left_out(servers):
    async with servers.running(bad=servers.hostile("schemas")) as app:
        assert brought(app) == ["bad.fine"]
        schema, name = app.hooks.pm.get_plugin("mcp").connections["bad"].problems
    assert "the tool 'bad' cannot be used: its schema is not valid" in schema
    assert "the tool 'no good name' cannot be used" in name


async def test_changed_tools_change_in_the_registry(servers):
    async with servers.running(bad=servers.hostile()) as app:
        assert "bad.steps" in app.tools
        assert (await call(app, "bad.grow")).content == "grown"
        await until(lambda: "bad.grown" in app.tools)
        assert "bad.steps" not in app.tools
        assert "bad.grown" in [schema["name"] for schema in app.tools.schemas()]
        assert (await call(app, "bad.grown")).content == "fine"


async def test_progress_is_shown_while_the_tool_runs(servers):
    updates = []
    async with servers.running(bad=servers.hostile()) as app:
        app.hooks.register(
            ToolExecutionUpdateEvent, lambda event: updates.append(event.partial_tool_result.content)
        )
        assert (await call(app, "bad.steps")).content == "done"
    assert updates == ["1 of 2: working", "2 of 2: working"]


async def test_a_server_learns_the_workspace_and_may_not_use_the_model(servers):
    async with servers.running(bad=servers.hostile()) as app:
        said = json.loads((await call(app, "bad.ask")).content)
    assert said["roots"]["roots"] == [{"uri": servers.workspace.as_uri(), "name": "work"}]
    assert said["sampled"] == "Sampling not supported"


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("wrong", "the MCP server 'bad' gave an answer that is not valid"),
        ("refuse", "the MCP server 'bad' refused the call: not today"),
        ("nothing", "the tool failed, and its server does not say why"),
    ],
)
async def test_a_bad_answer_is_an_error_of_the_tool(servers, tool, told):
    async with servers.running(bad=servers.hostile()) as app:
        outcome = await call(app, f"bad.{tool}")
    assert outcome.is_error
    assert told in outcome.content


async def test_a_server_that_will_not_end_is_ended_with_its_children(servers, monkeypatch):
    monkeypatch.setattr("hookline.ext.mcp.stdio.GRACE", 0.2)
    async with servers.running(bad=servers.hostile("stubborn")) as app:
        assert (await call(app, "bad.fine")).content == "fine"
    left = [*servers.recorded("pid"), *servers.recorded("child")]
    assert len(left) == 2
    assert not any(map(alive, left))


async def test_a_scope_that_is_left_while_it_connects_leaves_nothing(servers):
    servers.write(mute=servers.hostile("mute"))
    async with servers.app().running():
        await until(lambda: servers.recorded("pid"))
    assert not any(map(alive, servers.recorded("pid")))
