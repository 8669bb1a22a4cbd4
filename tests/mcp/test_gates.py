"""What stops a tool stops a server's tool too: nothing reaches the server."""

import pytest

from hookline.events import ToolCallEvent, ToolCallEventResult
from hookline.policy import Policy

from .conftest import call


def deny_all(app):
    app.hooks.register(ToolCallEvent, lambda event: ToolCallEventResult(block=True, reason="no"))


def not_authorised(app):
    app.hooks.register("authorize_action", lambda action: False)


def policy_denies(app):
    app.runner.judge = Policy(default="deny").judge


def policy_asks_and_nobody_answers(app):
    app.runner.judge = Policy(default="auto").judge


@pytest.mark.parametrize(
    "gate", [deny_all, not_authorised, policy_denies, policy_asks_and_nobody_answers]
)
async def test_a_call_that_is_denied_never_reaches_the_server(servers, gate):
    async with servers.running(bad=servers.hostile()) as app:
        gate(app)
        outcome = await call(app, "bad.fine")
    assert (outcome.is_error, outcome.ran) == (True, False)
    assert servers.recorded("call") == []


async def test_a_tool_of_which_the_settings_say_that_it_reads_runs_unasked(servers):
    async with servers.running(bad=servers.hostile(side_effects={"fine": "read"})) as app:
        app.runner.judge = Policy(default="auto").judge
        assert (await call(app, "bad.fine")).content == "fine"
        assert (await call(app, "bad.steps")).ran is False
    assert servers.recorded("call") == ["fine"]


async def test_the_judges_see_which_server_it_is(servers):
    seen = []
    async with servers.running(bad=servers.hostile()) as app:
        app.hooks.register("authorize_action", lambda action: seen.append(action) or True)
        await call(app, "bad.fine")
    [action] = seen
    assert (action["tool"], action["namespace"], action["name"]) == ("bad.fine", "bad", "fine")
    assert action["side_effects"] == "external"


async def test_what_a_handler_rewrites_is_what_the_server_gets_or_the_schema_refuses(servers):
    async with servers.running(bad=servers.hostile()) as app:
        app.hooks.register("before_tool_call", lambda tool_name: {"any": 1})
        assert (await call(app, "bad.fine")).content == "fine"
