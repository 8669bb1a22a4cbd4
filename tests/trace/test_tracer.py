"""The trace: what is kept of dispatches, how much of it, and what happens where that fails."""

import asyncio
import json
import os
import sqlite3
from types import MappingProxyType
from typing import NamedTuple

import pytest

from hookline import Hooks
from hookline.config import ConfigError
from hookline.events import ModelResultEventResult, ToolCallEvent
from hookline.observe.trace import session_trace
from hookline.observe.trace.plugin import Tracing
from hookline.observe.trace.settings import TraceSettings
from hookline.observe.trace.snapshot import encode
from hookline.observe.trace.store import Chunk, traces_of
from hookline.tape import MemoryTapeStore, SQLiteStore
from hookline.tape.postgres.store import PostgresStore

from .. import forks, postgres
from .conftest import one_turn


async def records(app, session="s"):
    return (await (await Tracing.of(app).store()).read(session)).records


async def test_a_turn_is_kept_with_who_changed_and_decided_what(traced):
    app = traced()
    async with app.running():
        await one_turn(app)
        kept = await records(app)
    gate = next(r for r in kept if r.name == "tool_call" and r.call == "call_2")
    assert (gate.decision, gate.session) == ("deny", "s")
    assert [(h.by, h.did, h.decision) for h in gate.handlers] == [
        ("house", "denied", "deny"),
        ("looker", "none", ""),
    ]
    assert gate.handlers[0].place.partition(":")[0].endswith("conftest.py")
    assert gate.payload["input"] == {"command": "true"}
    chain = next(r for r in kept if r.name == "before_tool_call" and r.call == "call_1")
    assert chain.handlers[0].changes == {"arguments": [{"path": "."}, {"path": "src"}]}
    patch = next(r for r in kept if r.name == "tool_result" and r.call == "call_1")
    before, after = patch.handlers[0].changes["content"]
    assert after == "two files" != before


async def test_spans_nest_the_hooks_of_a_turn(traced):
    app = traced()
    async with app.running():
        await one_turn(app)
        kept = (await session_trace(app.store(), await Tracing.of(app).store(), "s")).records
        (begun,) = [e for e in await app.store().entries("s") if e.payload.get("status") == "started"]
    spans = {r.id: r for r in kept if r.kind != "hook"}
    assert sorted(r.kind for r in spans.values()) == ["model", "model", "tool", "tool", "turn"]
    gate = next(r for r in kept if r.name == "tool_call" and r.call == "call_2")
    tool = spans[gate.parent]
    model = spans[tool.parent]
    turn = spans[model.parent]
    assert [tool.kind, model.kind, turn.kind, turn.parent] == ["tool", "model", "turn", ""]
    assert turn.turn == begun.payload["turn_id"]
    assert [turn.name, model.name, tool.name] == ["main", "scripted", "shell"]
    assert "shell" in tool.error
    ends = [r.time + r.duration for r in (gate, tool, model, turn)]
    assert turn.time <= model.time <= tool.time <= gate.time
    assert ends == sorted(ends)
    first = next(r for r in kept if r.name == "resolve_session" or r.name == "load_state")
    assert first.turn == turn.turn  # stages before the agent belong to its turn


async def test_decisions_keep_who_said_something_and_no_payload(traced):
    app = traced("decisions")
    async with app.running():
        await one_turn(app)
        kept = await records(app)
    assert {r.name for r in kept} == {"before_tool_call", "tool_call", "tool_result"}
    assert all(r.payload is None for r in kept)
    assert all(any(h.did != "none" for h in r.handlers) for r in kept)


async def test_a_trace_that_is_off_leaves_the_compiled_code_as_it_is(traced):
    app = traced("off")
    gate = app.hooks["tool_call"]
    before = gate.function().__code__
    async with app.running():
        assert Tracing.of(app).tracer is None
        assert gate.function().__code__ is before
        assert not app.hooks.observers
        assert not app.hooks.pm.has_plugin("trace-full")


async def test_decisions_leave_the_code_of_other_hooks_as_it_is(traced):
    app = traced("decisions")
    hook = app.hooks["load_state"]
    before = hook.function().__code__.co_code
    async with app.running():
        assert hook.function().__code__.co_code == before
        assert not app.hooks["message_update"].live


def test_a_trace_sees_only_the_hooks_it_wants():
    hooks = Hooks()
    hooks.register("tool_call", lambda event: None)
    seen = []
    hooks.trace(lambda d: seen.append(d.hook), lambda spec, attached: spec.name == "tool_call")
    asyncio.run(hooks.call(ToolCallEvent(tool_name="x")))
    assert seen == ["tool_call"]
    assert not hooks["tool_result"].live


async def test_the_oldest_records_of_a_session_are_dropped(traced):
    app = traced("full", trace={"level": "full", "session_records": 30})
    async with app.running():
        for _ in range(6):
            await one_turn(app)
            await Tracing.of(app).tracer.flush()
        trace = await (await Tracing.of(app).store()).read("s")
    assert len(trace.records) <= 60  # a bound is kept to within what is written at once
    assert trace.dropped > 0
    times = [r.time for r in trace.records]
    assert times == sorted(times)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def tape(request, tmp_path):
    """A store of tapes of each kind, to which a trace belongs."""
    schema = postgres.new_schema()
    if request.param == "memory":
        opened = MemoryTapeStore()
    elif request.param == "sqlite":
        opened = SQLiteStore(tmp_path / "tape.db")
    else:
        opened = await PostgresStore.open(postgres.url(), schema=schema)
    yield opened
    await opened.close()
    if request.param == "postgres":
        postgres.drop(schema)


async def test_nothing_is_read_where_nothing_was_traced(tape):
    store = traces_of(tape)
    assert (await store.read()).records == []
    assert await store.fired() == {}


async def test_stores_keep_the_newest_and_count_what_they_dropped(tape):
    store = traces_of(tape)
    bounds = TraceSettings(session_records=3, records=5)
    row = (
        '{"v":1,"p":"p","t":%d,"d":[1,"%s",[["",null,""]],[],[[0,0,null,0,5]]],'
        '"n":[["x",[],[]]],"x":[[null,null,null,null]]}'
    )
    for number in range(40):
        session = f"s{number % 2}"
        body = row % (number, session)
        await store.write([Chunk(session, number, number, 1, body, {"x": (1, number)})], bounds)
    trace = await store.read()
    assert len(trace.records) <= 5
    assert trace.records[-1].time == 39
    assert trace.dropped == 40 - len(trace.records)
    assert (await store.fired())["x"] == (40, 39.0)
    own = await store.read("s1", since=39)
    assert [(r.session, r.time) for r in own.records] == [("s1", 39)]
    if not isinstance(tape, MemoryTapeStore):  # as another process reads it
        assert (await traces_of(tape).read()).records == trace.records


async def test_why_is_answered_on_postgresql_by_another_process(traced):
    schema = postgres.new_schema()
    app = traced("decisions", tape={"url": postgres.url(), "schema": schema})
    try:
        async with app.running():
            await one_turn(app)
        env = {**os.environ, "HOOKLINE_HOME": str(app.home)}
        command = (forks.MAIN, "why", "s", "call_2", "--json")
        shown = await asyncio.to_thread(forks.run, *command, env=env, cwd=app.workspace)
    finally:
        postgres.drop(schema)
    assert shown.returncode == 0
    steps = json.loads(shown.stdout)["steps"]
    assert ("house", "denied") in [(step["by"], step["did"]) for step in steps]


async def test_a_trace_that_cannot_be_written_is_logged_and_the_turn_goes_on(traced, caplog):
    app = traced()
    async with app.running():
        db = sqlite3.connect(app.home / "tape.db")
        db.execute("DROP TABLE IF EXISTS trace")  # there already, where starting took a while
        db.execute("CREATE VIEW trace AS SELECT 1")  # what is to be a table is something else
        db.commit()
        result = await one_turn(app)
        await Tracing.of(app).tracer.flush()
        db.execute("DROP VIEW trace")
        db.commit()
        db.close()
    assert result.model_output == "Done."
    assert "trace.failed" in caplog.text


async def test_what_is_redacted_is_not_in_the_trace(traced):
    app = traced("full", redaction={"enabled": True, "detectors": ["emails"]})
    async with app.running():
        await app.process({"content": "write to ada@lovelace.org", "session_id": "s"})
        kept = await records(app)
    text = str([r.as_json() for r in kept])
    assert "[redacted email]" in text
    assert "lovelace" not in text


async def test_what_was_taken_out_of_an_answer_is_not_in_the_trace(traced, scripted):
    app = traced()
    scripted("the code is ebony4711")
    app.hooks.register("model_result", lambda event: ModelResultEventResult(content="no codes here"))
    async with app.running():
        await one_turn(app)
        kept = await records(app)
    gate = next(r for r in kept if r.name == "model_result")
    assert gate.payload["content"] == "no codes here"
    assert "ebony4711" not in str([r.as_json() for r in kept])


async def test_what_changes_after_a_dispatch_is_kept_as_it_was(traced):
    app = traced()
    seen = []
    app.hooks.register("tool_call", lambda event: seen.append(event.input))
    async with app.running():
        await one_turn(app)
        assert seen[0] == {"path": "src"}
        seen[0]["path"] = "elsewhere"
        kept = await records(app)
    gate = next(r for r in kept if r.name == "tool_call" and r.call == "call_1")
    assert gate.payload["input"] == {"path": "src"}


async def test_a_payload_that_is_too_long_is_cut_and_still_has_its_names(traced):
    app = traced("full", trace={"level": "full", "payload": 200})
    async with app.running():
        await app.process({"content": "long " * 100, "session_id": "s"})
        kept = await records(app)
    prompt = next(r for r in kept if r.name == "build_prompt").payload
    assert set(prompt) == {"message", "session_id", "state"}
    assert "characters)" in prompt["message"]["content"]


async def test_a_chunk_of_another_version_counts_as_damaged():
    store = traces_of(MemoryTapeStore())
    await store.write([Chunk("s", 1.0, 2.0, 3, '{"v": 2, "p": "p"}')], TraceSettings())
    trace = await store.read("s")
    assert (trace.records, trace.damaged) == ([], 1)


async def test_the_times_of_handlers_are_kept_within_those_of_their_dispatch(traced):
    app = traced()
    async with app.running():
        await one_turn(app)
        kept = [r for r in await records(app) if r.kind == "hook"]
    assert {len(r.handlers) for r in kept} >= {1, 2}
    for record in kept:
        ends = [h.after + h.duration for h in record.handlers]
        assert record.handlers[0].after >= 0
        assert ends == sorted(ends)
        assert ends[-1] <= record.duration + 1e-9


async def test_a_handler_that_raises_alone_is_kept_with_its_error(traced):
    app = traced()

    @app.hooks.on("agent_end")
    def fall_over(event):
        raise RuntimeError("too late")

    async with app.running():
        await one_turn(app)
        kept = await records(app)
    (handler,) = next(r for r in kept if r.name == "agent_end").handlers
    assert (handler.did, "too late" in handler.error) == ("raised", True)


async def test_a_generator_in_a_payload_is_named_and_left_as_it_is(traced):
    app = traced()
    numbers = (number for number in range(3))
    async with app.running():
        await app.process({"content": "hi", "session_id": "s", "extra": {"numbers": numbers}})
        kept = await records(app)
    assert list(numbers) == [0, 1, 2]
    assert any("<generator>" in str(r.payload) for r in kept)


def test_half_of_a_surrogate_pair_in_an_id_does_not_lose_a_chunk():
    places = [("t", 0, "call_\ud83d")]
    assert json.loads(encode(places)) == [["t", 0, "call_\ud83d"]]


class Point(NamedTuple):
    x: int
    y: int


class Grade(float):
    """A number of its own kind."""


class Broken(dict):
    def items(self):
        raise RuntimeError("not today")


async def test_values_of_all_kinds_are_kept_as_what_they_are(traced):
    app = traced()
    said = {
        "text": "größer als \U0001f600, \x00 and \ud83d",
        "point": Point(1, 2),
        "grade": Grade(1.5),
        "long": 2**80,
        "numbers": {1: "one"},
        "letters": {"a"},
    }
    async with app.running():
        for name, each in said.items():
            await app.process({"content": name, "session_id": "s", "extra": each})
        kept = await records(app)
    prompts = [r.payload["message"] for r in kept if r.name == "build_prompt"]
    found = {prompt["content"]: prompt["extra"] for prompt in prompts}
    assert found == said | {"point": [1, 2], "numbers": {"1": "one"}, "letters": ["a"]}


async def test_a_payload_that_raises_is_logged_and_the_turn_goes_on(traced, caplog):
    app = traced()
    hostile = MappingProxyType(Broken(a=1))
    async with app.running():
        envelope = {"content": "hi", "session_id": "s", "extra": hostile}
        result = await app.process(envelope)
        kept = await records(app)
    assert result.model_output == "Done."
    assert "hook.trace_failed hook=build_prompt" in caplog.text
    assert any(r.name == "agent_end" or r.name == "tool_call" for r in kept)


async def test_what_fired_is_counted_over_all_sessions_that_are_kept_together(traced):
    app = traced()
    async with app.running():
        for session in ("a", "b", "c"):
            await one_turn(app, session)
        store = await Tracing.of(app).store()
        fired = await store.fired()
        gates = [r for r in (await store.read()).records if r.name == "tool_call"]
    assert fired["tool_call"] == (6, pytest.approx(max(r.time for r in gates)))


async def test_another_who_looks_on_is_told_beside_the_trace(traced):
    app = traced("decisions")
    seen = []
    app.hooks.trace(lambda dispatch: seen.append((dispatch.hook, len(dispatch.calls))))
    async with app.running():
        await one_turn(app)
        kept = await records(app)
    assert seen.count(("tool_call", 2)) == 2
    assert [len(r.handlers) for r in kept if r.name == "tool_call"] == [2]


def test_the_size_of_a_chunk_is_in_bytes():
    assert [Chunk("s", 0, 0, 1, body).size for body in ("abc", "größe")] == [3, 7]


async def test_a_tape_in_memory_has_its_trace_in_memory(traced):
    from hookline import hookimpl

    class InMemory:
        @hookimpl
        def provide_tape_store(self):
            return MemoryTapeStore()

    app = traced()
    app.hooks.add(InMemory())
    async with app.running():
        await one_turn(app)
        assert await records(app)


async def test_a_damaged_part_of_the_trace_is_left_out(traced):
    app = traced()
    async with app.running():
        await one_turn(app)
        await Tracing.of(app).tracer.flush()
        db = sqlite3.connect(app.home / "tape.db")
        db.execute("UPDATE trace SET body = substr(body, 1, 50) WHERE session = 's'")
        db.commit()
        db.close()
        trace = await (await Tracing.of(app).store()).read("s")
    assert trace.damaged == 1


async def test_a_payload_that_json_cannot_hold_is_named(traced):
    app = traced()
    loop = {}
    loop["self"] = loop
    app.hooks.register("input", lambda event: None)
    async with app.running():
        await app.process({"content": "hi", "session_id": "s", "extra": [loop, b"xy", float("nan")]})
        kept = await records(app)
    assert any("2 bytes" in str(r.payload) for r in kept)


def test_a_wrong_level_is_refused_with_the_setting_named(traced):
    app = traced("everything")

    async def run():
        async with app.running():
            pass

    with pytest.raises(ConfigError, match=r"(?s)trace.*level"):
        asyncio.run(run())
