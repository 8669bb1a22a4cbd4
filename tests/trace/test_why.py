"""`hookline why` and `hookline hooks stats`: what became of a call, a message, a turn, and by whom."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from hookline.trace import TraceError, explain, measure
from hookline.trace.why import OFF

from .conftest import one_turn


async def explained(app, target=None, **options):
    async with app.running():
        if not await app.store().entries("s"):
            await one_turn(app)
        return await explain(app.store(), await app.tracing.store(), "s", target, **options)


async def test_a_denied_call_names_who_denied_it_and_who_only_saw_it(traced):
    found = await explained(traced(), "call_2")
    assert (found.kind, found.outcome) == ("call", "denied")
    assert [(s.hook, s.by, s.did) for s in found.steps] == [
        ("before_tool_call", "house", "none"),
        ("tool_call", "house", "denied"),
        ("tool_call", "looker", "none"),
        ("tool_result", "house", "none"),
    ]
    assert "shell" in found.steps[1].reason
    assert all(step.duration is not None for step in found.steps)
    assert found.notes == []


async def test_a_rewritten_call_shows_the_difference_and_who_made_it(traced):
    found = await explained(traced(), "call_1")
    assert found.outcome == "ran"
    assert [(c.path, c.before, c.after) for c in found.changes] == [("path", ".", "src")]
    rewrites = {s.hook: [c.path for c in s.changes] for s in found.steps if s.did == "rewrote"}
    assert rewrites == {"before_tool_call": ["arguments.path"], "tool_result": ["content"]}
    assert [s.by for s in found.steps if not s.hook] == ["default allow"]  # the policy, from the tape


async def test_with_the_trace_off_the_tape_still_says_who_decided(traced):
    found = await explained(traced("off"), "call_2")
    assert [(s.by, s.did) for s in found.steps] == [("house", "denied")]
    assert found.notes == [OFF]


async def test_a_turn_and_a_message_are_explained(traced):
    app = traced()
    whole = await explained(app)
    assert (whole.kind, whole.title, whole.outcome) == ("turn", "what is here?", "completed")
    assert {"call_1", "call_2"} <= {s.call for s in whole.steps}
    async with app.running():
        said = [e for e in await app.store().entries("s") if e.kind == "message"]
        traces = await app.tracing.store()
        asked = await explain(app.store(), traces, "s", said[0].id)
        answered = await explain(app.store(), traces, "s", said[-1].id)
    assert asked.title == "user: what is here?"
    assert {s.hook for s in asked.steps} >= {"load_state", "build_prompt"}
    assert answered.title == "assistant: Done."
    assert {r.step for r in answered.records if r.kind == "model"} == {1}


@pytest.mark.parametrize(
    ("session", "target", "turn", "message"),
    [
        ("t", None, None, "no session 't'"),
        ("s", "call_3", None, "did you mean 'call_"),
        ("s", None, 7, "has 1 turn"),
    ],
)
async def test_what_is_not_there_is_told_with_the_nearest(traced, session, target, turn, message):
    app = traced()
    async with app.running():
        await one_turn(app)
        with pytest.raises(TraceError, match=message):
            await explain(app.store(), await app.tracing.store(), session, target, turn=turn)


async def test_whoever_is_no_longer_attached_is_named(traced):
    found = await explained(traced(), "call_2", present={"house"})
    assert found.notes == ["'looker' took part then and is not attached now"]


async def test_a_session_of_an_older_version_is_explained_as_far_as_it_goes(traced):
    from hookline.tape import Entry

    app = traced()
    async with app.running():
        first = Entry.new("s", None, "turn", {"status": "started"})  # without an id, as none was kept
        result = {"tool_call_id": "c", "name": "x", "content": "no", "ran": False}
        second = Entry.new("s", first.id, "tool_result", result, meta={"rulings": [{"by": "old"}]})
        await app.store().append([first, second])
        found = await explain(app.store(), await app.tracing.store(), "s", "c")
    assert (found.outcome, [s.by for s in found.steps]) == ("denied", ["old"])


async def test_statistics_count_calls_and_errors_and_the_share_of_turns(traced):
    app = traced()

    def breaks(event):
        raise ValueError("it broke")

    app.hooks.register("tool_call", breaks)
    async with app.running():
        await one_turn(app)
        found = await measure(app.store(), await app.tracing.store())
        later = await measure(app.store(), await app.tracing.store(), since=4e9)
    gate = next(each for each in found.hooks if each.name == "tool_call")
    assert (gate.calls, gate.errors) == (2, 2)
    assert 0 < gate.p50 <= gate.p95 <= gate.total
    assert 0 < gate.share < 1
    house = next(each for each in found.plugins if each.name == "house")
    assert (house.calls, house.errors) == (6, 0)  # three hooks, two calls
    assert found.turns == 1
    assert later.records == 0


def run(app, *words):
    return CliRunner().invoke(app.create_cli_app(), list(words))


def test_the_command_tells_a_person_and_escapes_what_was_recorded(traced):
    app = traced()
    asyncio.run(explained(app))
    shown = run(app, "why", "s", "call_2")
    assert shown.exit_code == 0
    assert "no shell [bold]here[/]" in shown.output  # without its colours, and not as markup
    assert "\x1b" not in shown.output
    assert "house" in shown.output
    assert "denied" in shown.output


def test_the_command_gives_json(traced):
    app = traced()
    asyncio.run(explained(app))
    told = json.loads(run(app, "why", "s", "turn", "1", "--json").output)
    assert told["kind"] == "turn"
    assert any(record["name"] == "tool_call" for record in told["records"])
    stats = json.loads(run(app, "hooks", "stats", "--json").output)
    assert stats["hooks"]
    assert stats["plugins"]


def test_looking_leaves_no_trace(traced):
    app = traced()
    asyncio.run(explained(app))
    before = json.loads(run(app, "hooks", "stats", "--json").output)
    assert json.loads(run(app, "hooks", "stats", "--json").output) == before


def test_statistics_of_nothing_say_how_to_begin(traced):
    app = traced("off")
    shown = run(app, "hooks", "stats")
    assert shown.exit_code != 0
    assert "trace.level" in str(shown.exception)
