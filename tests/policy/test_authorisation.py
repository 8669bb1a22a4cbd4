"""The order of those who decide: plugins, the default, packs, the floor, then whoever is asked."""

import asyncio

import pytest

from hookline.hooks import Decision
from hookline.policy import Policy, load_pack

from .conftest import write_pack


def named(rulings):
    return [(ruling.by, ruling.decision.name) for ruling in rulings]


@pytest.mark.parametrize(
    ("default", "tool", "runs"),
    [
        ("auto", "get", True),
        ("auto", "put", False),
        ("auto", "sh", False),
        ("allow", "sh", True),
        ("ask", "get", False),
        ("deny", "get", False),
    ],
)
async def test_the_default_decides_where_no_plugin_does(call, counted, default, tool, runs):
    argument = {"command": "ls"} if tool == "sh" else {"path": "a"}
    outcome, rulings = await call(tool, Policy(default=default), **argument)
    assert outcome.ran is runs
    assert bool(counted.runs) is runs
    assert rulings[0].by == f"default {default}"


async def test_a_question_of_the_default_goes_to_whoever_answers(app, call, counted):
    asked = []

    def answer(request):
        asked.append(request)
        return "approve"

    app.hooks.register("resolve_approval", answer)
    outcome, rulings = await call("put", Policy(), path="a")
    assert outcome.ran
    assert asked[0]["question"] == "run put?"
    assert asked[0]["arguments"] == {"path": "a"}
    assert named(rulings) == [("default auto", "ASK"), ("resolve_approval", "ALLOW")]


async def test_a_plugin_that_allows_spares_the_question_of_the_default(app, call, counted):
    app.hooks.register("authorize_action", lambda action: True)
    outcome, rulings = await call("put", Policy(), path="a")
    assert outcome.ran
    assert named(rulings) == [("authorize_action", "ALLOW")]


async def test_a_plugin_that_allows_overrides_neither_pack_nor_floor(app, call, counted, tmp_path):
    app.hooks.register("authorize_action", lambda action: True)
    pack = load_pack(write_pack(tmp_path / "p", '@id("no") forbid (principal, action, resource);'))
    outcome, rulings = await call("get", Policy(packs=[pack]), path="a")
    assert not outcome.ran
    assert ("mine/no", "DENY") in named(rulings)
    floor = Policy.load({"default": "allow", "floor": {"deny": {"tools": ["get"]}}})
    outcome, rulings = await call("get", floor, path="a")
    assert not outcome.ran
    assert ("floor.deny.tools=get", "DENY") in named(rulings)
    asking = Policy.load({"default": "allow", "floor": {"ask": {"effects": ["read"]}}})
    outcome, rulings = await call("get", asking, path="a")
    assert not outcome.ran
    assert ("resolve_approval", "DENY") in named(rulings)
    assert counted.runs == []


async def test_an_approval_does_not_override_a_deny(app, call, counted):
    app.hooks.register("resolve_approval", lambda request: "approve")
    strict = Policy.load({"floor": {"deny": {"tools": ["put"]}, "ask": {"tools": ["put"]}}})
    outcome, _ = await call("put", strict, path="a")
    assert not outcome.ran
    assert counted.runs == []


async def raises(action):
    raise RuntimeError("broken")


async def hangs(action):
    await asyncio.Event().wait()


async def is_cancelled(action):
    raise TimeoutError


@pytest.mark.parametrize(
    "gate", [raises, is_cancelled, lambda action: "yes", lambda action: 1, lambda action: {}]
)
async def test_a_gate_that_fails_or_answers_nonsense_denies(app, call, counted, gate):
    app.hooks.register("authorize_action", gate)
    outcome, _ = await call("get", Policy(default="allow"), path="a")
    assert not outcome.ran
    assert counted.runs == []


async def test_a_gate_that_hangs_denies(app, call, counted):
    app.hooks.register("authorize_action", hangs, timeout=0.01)
    outcome, _ = await call("get", Policy(default="allow"), path="a")
    assert not outcome.ran
    assert counted.runs == []


async def test_a_gate_cannot_change_what_runs(app, call, counted):
    def change(action):
        action["arguments"]["path"] = "other"
        return True

    app.hooks.register("authorize_action", change)
    outcome, _ = await call("get", Policy(), path="a")
    assert outcome.ran
    assert counted.runs == ["a"]


async def test_the_policy_sees_the_rewritten_arguments(app, call, counted):
    from hookline.events import ToolCallEventResult

    app.hooks.register("tool_call", lambda event: ToolCallEventResult(input={"path": "secret"}))
    policy = Policy.load({"default": "allow", "floor": {"deny": {"paths": ["secret"]}}})
    outcome, _ = await call("get", policy, path="harmless")
    assert not outcome.ran
    assert counted.runs == []


async def test_a_rewrite_that_breaks_the_schema_is_refused(app, call, counted):
    from hookline.events import ToolCallEventResult

    app.hooks.register("tool_call", lambda event: ToolCallEventResult(input={"nonsense": 1}))
    outcome, _ = await call("get", Policy(), path="a")
    assert not outcome.ran
    assert counted.runs == []


async def test_rewrites_that_conflict_are_recorded(app, call, counted):
    from hookline.events import ToolCallEventResult

    app.hooks.register("tool_call", lambda event: ToolCallEventResult(input={"path": "one"}))
    app.hooks.register("tool_call", lambda event: ToolCallEventResult(input={"path": "two"}))
    outcome, rulings = await call("get", Policy(), path="a")
    assert outcome.ran
    assert counted.runs in (["one"], ["two"])
    assert any("rewrote the arguments differently" in (r.reason or "") for r in rulings)


async def test_a_person_at_the_terminal_is_not_asked_about_what_they_typed(call, counted):
    outcome, _ = await call("put", Policy(), source="command", path="a")
    assert outcome.ran
    elsewhere = {"channel": "telegram", "sender_id": "x"}
    outcome, _ = await call("put", Policy(), source="command", said=elsewhere, path="b")
    assert not outcome.ran
    outcome, _ = await call("put", Policy(default="ask"), source="command", path="c")
    assert not outcome.ran
    assert counted.runs == ["a"]


async def test_who_decided_is_on_the_tape_with_the_rules_id(app, scripted, counted, tmp_path):
    from hookline.models.script import Call, Turn

    rule = '@id("no") @reason("not here") forbid (principal, action, resource == Tool::"put");'
    app.runner.judge = Policy(packs=[load_pack(write_pack(tmp_path / "p", rule))]).judge
    scripted(Turn(tool_calls=[Call("put", {"path": "a"}), Call("get", {"path": "b"})]), "done")
    async with app.running():
        result = await app.process({"content": "go"})
        entries = await app.store().entries(result.session_id, kinds=["tool_result"])
    refused, ran = (entry.meta["rulings"] for entry in entries)
    assert {"by": "mine/no", "decision": "deny", "reason": "not here", "changed": []} in refused
    assert ran[0]["by"] == "default auto"
    assert counted.runs == ["b"]


async def test_a_policy_that_cannot_judge_denies(call, counted):
    policy = Policy.load({"default": "allow", "packs": ["budgets"], "budgets": {"calls": 9}})
    outcome, rulings = await call("get", policy, path="a")  # nobody counts here
    assert not outcome.ran
    assert rulings[-1].decision is Decision.DENY
    assert counted.runs == []
