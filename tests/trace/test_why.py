"""`hookline why` and `hookline hooks stats`: what became of a call, a message, a turn, and by whom."""

import asyncio
import json
import time

import pytest
from typer.testing import CliRunner

from hookline.errors import TraceError
from hookline.events import InputEventResult
from hookline.models.script import Call, Turn
from hookline.observe.trace import explain, measure
from hookline.observe.trace.plugin import Tracing
from hookline.observe.trace.why import NOTHING

from .conftest import one_turn


async def explained(app, target=None, **options):
    async with app.running():
        if not await app.store().entries("s"):
            await one_turn(app)
        return await explain(app.store(), await Tracing.of(app).store(), "s", target, **options)


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
    assert found.notes == [NOTHING]


async def test_a_turn_and_a_message_are_explained(traced):
    app = traced()
    whole = await explained(app)
    assert (whole.kind, whole.title, whole.outcome) == ("turn", "what is here?", "completed")
    assert {"call_1", "call_2"} <= {s.call for s in whole.steps}
    async with app.running():
        said = [e for e in await app.store().entries("s") if e.kind == "message"]
        traces = await Tracing.of(app).store()
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
            await explain(app.store(), await Tracing.of(app).store(), session, target, turn=turn)


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
        found = await explain(app.store(), await Tracing.of(app).store(), "s", "c")
    assert (found.outcome, [s.by for s in found.steps]) == ("denied", ["old"])


async def test_statistics_count_calls_and_errors_and_the_share_of_turns(traced):
    app = traced()

    def breaks(event):
        raise ValueError("it broke")

    app.hooks.register("tool_call", breaks)
    async with app.running():
        await one_turn(app)
        found = await measure(app.store(), await Tracing.of(app).store())
        later = await measure(app.store(), await Tracing.of(app).store(), since=4e9)
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


def test_without_a_session_the_command_explains_the_latest_of_this_folder(traced):
    app = traced()
    assert "no session yet" in str(run(app, "why").exception)
    asyncio.run(explained(app))
    latest = json.loads(run(app, "why", "--json").output)
    assert latest == json.loads(run(app, "why", "s", "--json").output)


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


# --- times, calls and failures agree on every screen --------------------------------------------------

SLOW = 0.03


def slow(app):
    """Add handlers that take time before, in and after the entries of a turn."""

    def wait(event):
        time.sleep(SLOW)

    def rewrite(event):
        time.sleep(SLOW)
        return InputEventResult("transform", text=f"{event.text} please")

    app.hooks.register("input", rewrite)
    app.hooks.register("tool_call", wait)
    app.hooks.register("settled", wait)
    return app


@pytest.mark.parametrize("level", ["decisions", "full"])
async def test_every_place_that_shows_how_long_a_turn_took_shows_the_same(traced, inspected, level):
    app = slow(traced(level))
    async with app.running():
        await one_turn(app)
        traces = await Tracing.of(app).store()
        turn = await explain(app.store(), traces, "s")
        call = await explain(app.store(), traces, "s", "call_1")
        stats = await measure(app.store(), traces)
        async with inspected() as page:
            (row,) = (await page.get("session/turns", id="s"))["rows"]
            shown = await page.get("session/turn", id="s", number=1)
            alone = await page.get("session/turn", id="s", number=1, shown="none", hooks="false")
    lasted = [stats.turn_seconds, row["duration"], shown["duration"], shown["whole"], alone["duration"]]
    assert lasted == [pytest.approx(turn.seconds)] * 5
    assert turn.seconds >= SLOW * (4 if level == "full" else 3)
    for found in (turn, call):
        assert all(step.duration <= found.seconds for step in found.steps if step.duration)
    bars = {0: shown["bars"][0]}
    for bar in shown["bars"][1:]:
        outer = bars[bar["depth"] - 1]
        assert outer["start"] <= bar["start"] + 1e-6
        assert bar["start"] + bar["duration"] <= outer["start"] + outer["duration"] + 1e-6
        bars[bar["depth"]] = bar


async def test_what_runs_at_the_same_time_is_never_more_than_all_of_a_turn(traced, scripted):
    app = traced()
    scripted(Turn(tool_calls=[Call("todo", {}, f"c{n}") for n in range(8)]), "Done.")

    async def around(call, call_next):
        await asyncio.sleep(SLOW)
        return await call_next()

    app.hooks.register("around_tool_call", around)
    async with app.running():
        await one_turn(app)
        found = await measure(app.store(), await Tracing.of(app).store())
    stats = next(each for each in found.hooks if each.name == "around_tool_call")
    assert stats.total > found.turn_seconds, "they ran together"
    assert 0 < stats.share <= 1
    assert all(each.share <= 1 for each in (*found.hooks, *found.plugins))


def test_the_calls_of_a_turn_are_told_apart(traced, scripted):
    app = traced("decisions")
    words = [{"command": "true"}, {"command": "echo two"}]
    scripted(Turn(tool_calls=[Call("shell", given, f"c{n}") for n, given in enumerate(words)]), "Done.")
    asyncio.run(explained(app))
    lines = run(app, "why", "s").output.splitlines()
    first = lines.index('shell {"command": "true"}: denied (c0)')
    second = lines.index('shell {"command": "echo two"}: denied (c1)')
    assert "denied" in lines[first + 1]
    assert "denied" in lines[second + 1]


def test_a_trace_of_decisions_is_kept_unless_it_is_turned_off(traced, app):
    asyncio.run(explained(app))  # nothing is configured
    shown = run(app, "why", "s", "call_2").output
    assert "conftest.py:" in shown, "where the handler that denied is written is in the trace alone"


def fail(event):
    raise RuntimeError("out of order")


@pytest.fixture
def failed_open(traced):
    """An app in which a handler of a gate has failed and let a call through."""
    app = traced("decisions")
    app.hooks.register("tool_call", fail, when="list_files")
    asyncio.run(explained(app))
    return app


def test_why_says_which_handler_failed_and_let_a_call_through(failed_open):
    shown = run(failed_open, "why", "s", "call_1").output
    assert "RuntimeError: out of order" in shown
    assert "it failed and the gate let this through" in shown
    told = json.loads(run(failed_open, "why", "s", "turn", "1", "--json").output)
    assert [s["by"].rpartition(".")[2] for s in told["steps"] if s["let_through"]] == ["fail"]


def test_doctor_says_which_handlers_failed_and_let_a_call_through(failed_open):
    shown = run(failed_open, "doctor").output
    assert "fail failed at tool_call and let it through once" in shown
    assert "RuntimeError: out of order (" in shown
    assert "config set hooks.on_gate_error deny" in shown


async def test_the_inspector_shows_which_handlers_failed_and_let_a_call_through(traced, inspected):
    app = traced("decisions")
    app.hooks.register("tool_call", fail, when="list_files")
    async with app.running():
        await one_turn(app)
        async with inspected() as page:
            (found,) = (await page.get("decisions"))["let_through"]
    assert (found["hook"], found["session"], found["call"]) == ("tool_call", "s", "call_1")
    assert found["by"].endswith("fail")
    assert found["error"] == "RuntimeError: out of order"


@pytest.mark.parametrize("how", ["guard", "setting", "wrong result", "denied by another"])
async def test_a_failure_that_denies_is_not_said_to_let_anything_through(traced, how):
    app = traced("decisions", **({"hooks": {"on_gate_error": "deny"}} if how == "setting" else {}))
    name = "shell" if how == "denied by another" else "list_files"
    handler = (lambda event: InputEventResult("continue")) if how == "wrong result" else fail
    app.hooks.register("tool_call", handler, when=name, guard=how == "guard")
    found = await explained(app)
    assert not any(step.let_through for step in found.steps)
    assert "denied" in str(found.calls["call_2" if name == "shell" else "call_1"])
