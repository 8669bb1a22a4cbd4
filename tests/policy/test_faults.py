"""Gates that break: whatever becomes of one, a call that it did not allow does not run."""

import asyncio
import contextlib
import json
import os
import signal
import threading
from decimal import Decimal
from pathlib import Path

import pytest

from hookline.events import (
    InputEventResult,
    MessageReceiveResult,
    ToolCallEventResult,
    ToolResultEventResult,
)
from hookline.policy import Policy, load_pack

from ..processes import long_sleep, running
from .conftest import write_pack

pytestmark = pytest.mark.slow

SHORT = 0.02
LONG = 60.0
ASKS = Policy.load({"default": "allow", "floor": {"ask": {"tools": ["get"]}}})
ALLOWS = Policy(default="allow")


# --- gates that answer through a hook -------------------------------------------------------------


def taking(hook, handler):
    """A handler of one parameter under the name that the hook has for it."""
    if hook == "tool_call":
        return handler
    waits = "await " if asyncio.iscoroutinefunction(handler) else ""
    name = {"authorize_action": "action", "resolve_approval": "request"}[hook]
    made = {"handler": handler}
    exec(f"{waits and 'async '}def named({name}): return {waits}handler({name})", made)
    return made["named"]


class Gate:
    """A hook that decides on calls: how it is registered, what its yes is, who asks it."""

    def __init__(self, hook, yes, policy=ALLOWS, **options):
        self.hook, self.yes, self.policy, self.options = hook, yes, policy, options

    def register(self, app, handler, limit=LONG):
        named = taking(self.hook, handler)
        return app.hooks.register(self.hook, named, timeout=limit, **self.options)

    def __repr__(self):
        return self.hook


TOOL_CALL = Gate("tool_call", ToolCallEventResult(), guard=True)
AUTHORIZE = Gate("authorize_action", True)
APPROVAL = Gate("resolve_approval", "approve", ASKS)
GATES = [TOOL_CALL, AUTHORIZE, APPROVAL]
every_gate = pytest.mark.parametrize("gate", GATES, ids=repr)


@every_gate
async def test_a_gate_that_allows_lets_the_call_run(app, call, counted, gate):
    gate.register(app, lambda subject: gate.yes)
    outcome, _ = await call("get", gate.policy, path="a")
    assert outcome.ran, outcome.content
    assert counted.runs == ["a"]


ERRORS = [
    RuntimeError("broken"), ValueError(), KeyError("x"), TimeoutError(), RecursionError(),
    MemoryError(), StopAsyncIteration(), OSError(28, "no space"), AssertionError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ExceptionGroup("several", [ValueError()]),
]  # fmt: skip


@every_gate
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "async"])
async def test_one_that_raises_denies(app, call, counted, gate, error, awaits):
    def raises(subject):
        raise error

    async def raises_later(subject):
        await asyncio.sleep(0)
        raise error

    gate.register(app, raises_later if awaits else raises)
    outcome, _ = await call("get", gate.policy, path="a")
    assert (outcome.ran, counted.runs) == (False, [])


async def never(subject):
    await asyncio.Event().wait()


async def clings(subject):
    """Will not be cancelled."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


@every_gate
@pytest.mark.parametrize("hangs", [never, clings])
async def test_one_that_hangs_denies(app, call, counted, gate, hangs):
    gate.register(app, hangs, SHORT)
    outcome, _ = await call("get", gate.policy, path="a")
    assert (outcome.ran, counted.runs) == (False, [])


@every_gate
async def test_one_that_swallows_its_cancellation_and_says_yes_is_too_late(app, call, counted, gate):
    async def late(subject):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return gate.yes

    gate.register(app, late, SHORT)
    outcome, _ = await call("get", gate.policy, path="a")
    assert (outcome.ran, counted.runs) == (False, [])


@every_gate
async def test_one_that_hangs_in_a_thread_denies_and_its_late_yes_counts_for_nothing(
    app, call, counted, gate
):
    released, over = threading.Event(), threading.Event()

    def hangs(subject):
        released.wait(LONG)
        over.set()
        return gate.yes

    gate.register(app, hangs, SHORT)
    outcome, _ = await call("get", gate.policy, path="a")
    released.set()
    assert await asyncio.to_thread(over.wait, LONG)
    assert (outcome.ran, counted.runs) == (False, [])


@every_gate
async def test_one_that_is_slow_is_waited_for(app, call, counted, gate):
    waiting, answer = asyncio.Event(), asyncio.Event()

    async def slow(subject):
        waiting.set()
        await answer.wait()
        return gate.yes

    gate.register(app, slow)
    calling = asyncio.create_task(call("get", gate.policy, path="a"))
    await waiting.wait()
    assert counted.runs == []
    answer.set()
    outcome, _ = await calling
    assert outcome.ran
    assert counted.runs == ["a"]


@every_gate
async def test_a_call_that_is_cancelled_at_a_gate_does_not_run(app, call, counted, gate):
    waiting = asyncio.Event()

    async def waits(subject):
        waiting.set()
        await asyncio.Event().wait()
        return gate.yes

    gate.register(app, waits)
    calling = asyncio.create_task(call("get", gate.policy, path="a"))
    await waiting.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert counted.runs == []


@every_gate
async def test_one_whose_own_work_is_killed_denies_and_the_turn_goes_on(app, call, counted, gate):
    async def loses_its_task(subject):
        work = asyncio.create_task(never(subject))
        asyncio.get_running_loop().call_soon(work.cancel)
        await work
        return gate.yes

    gate.register(app, loses_its_task)
    outcome, _ = await call("get", gate.policy, path="a")
    assert (outcome.ran, outcome.is_error, counted.runs) == (False, True, [])


@every_gate
@pytest.mark.parametrize("yes", [False, True], ids=["no", "yes"])
async def test_one_that_is_unloaded_while_it_runs_still_has_its_say(app, call, counted, gate, yes):
    waiting, go_on = asyncio.Event(), asyncio.Event()
    no = {"tool_call": ToolCallEventResult(block=True), "authorize_action": False}

    async def waits(subject):
        waiting.set()
        await go_on.wait()
        return gate.yes if yes else no.get(gate.hook, "reject")

    unregister = gate.register(app, waits)
    calling = asyncio.create_task(call("get", gate.policy, path="a"))
    await waiting.wait()
    unregister()
    go_on.set()
    outcome, _ = await calling
    assert outcome.ran is yes
    assert bool(counted.runs) is yes


@every_gate
async def test_one_that_is_unloaded_while_it_runs_and_then_breaks_denies(app, call, counted, gate):
    async def breaks(subject):
        unregister()
        await asyncio.sleep(0)
        raise RuntimeError("my plugin is gone")

    unregister = gate.register(app, breaks)
    outcome, _ = await call("get", gate.policy, path="a")
    assert (outcome.ran, counted.runs) == (False, [])


class Sly:
    """Says of itself whatever is asked."""

    def __eq__(self, other):
        return True

    def __bool__(self):
        return True

    __hash__ = None


class Broken:
    """Cannot even be looked at."""

    def __eq__(self, other):
        raise RuntimeError("not equal to anything")

    def __bool__(self):
        raise RuntimeError("neither true nor false")

    def __repr__(self):
        raise RuntimeError("not to be shown")

    __hash__ = None


NONSENSE = [
    0, 1, -1, 0.0, float("nan"), 1j, "", "yes", "allow", "True", "APPROVE", "approve ", b"approve", [],
    [True], (), {}, {"block": False}, {"decision": "allow"}, set(), frozenset({True}), Decimal(1),
    range(1), object(), object, type, len, Ellipsis, NotImplemented, Exception("allow"), iter([True]),
    Sly(), Broken(), Path("/"), memoryview(b"x"), MessageReceiveResult(), ToolResultEventResult(),
    InputEventResult(),
]  # fmt: skip


@every_gate
@pytest.mark.parametrize("number", range(len(NONSENSE)))
async def test_one_that_answers_nonsense_denies(app, call, counted, gate, number):
    gate.register(app, lambda subject: NONSENSE[number])
    outcome, _ = await call("get", gate.policy, path="a")
    assert (outcome.ran, counted.runs) == (False, [])


@pytest.mark.parametrize("answer", [True, False, "approve", ToolCallEventResult()], ids=repr)
@every_gate
async def test_the_yes_of_another_gate_is_nonsense_here(app, call, counted, gate, answer):
    gate.register(app, lambda subject: answer)
    outcome, _ = await call("get", gate.policy, path="a")
    assert outcome.ran is (type(answer) is type(gate.yes) and answer is not False)
    assert bool(counted.runs) is outcome.ran


@pytest.mark.parametrize(
    "rewritten",
    [[], "path", 7, {"path": 7}, {"path": None}, {}, {"paths": "a"}, {7: "a"}, [("path", "b")], Sly(),
     {"path": "b", "more": "c"}, {"path": ["b"]}],
    ids=lambda rewritten: type(rewritten).__name__,
)  # fmt: skip
async def test_a_rewrite_that_is_nonsense_is_refused(app, call, counted, rewritten):
    app.hooks.register("tool_call", lambda event: ToolCallEventResult(input=rewritten), guard=True)
    outcome, _ = await call("get", ALLOWS, path="a")
    assert (outcome.ran, counted.runs) == (False, [])


# --- gates of other kinds -------------------------------------------------------------------------


async def spends_nothing(session):
    return {"calls": 0, "tokens": 0, "cost": 0, "seconds": 0}


async def cannot_count(session):
    raise RuntimeError("no ledger")


async def counts_nonsense(session):
    return {"calls": "many"}


async def counts_forever(session):
    await asyncio.Event().wait()


@pytest.mark.parametrize("spending", [cannot_count, counts_nonsense, counts_forever, None])
async def test_a_pack_that_cannot_be_evaluated_denies(call, counted, tmp_path, spending):
    rule = '@id("dear") forbid (principal, action, resource) when { context.spent.calls > 5 };'
    pack = load_pack(write_pack(tmp_path / "p", rule))
    outcome, _ = await call(
        "get", Policy(default="allow", packs=[pack], spending=spends_nothing), path="a"
    )
    assert outcome.ran, outcome.content
    counted.runs.clear()
    broken = Policy(default="allow", packs=[pack], spending=spending)
    broken.patience = SHORT
    outcome, rulings = await call("get", broken, path="a")
    assert (outcome.ran, counted.runs) == (False, [])
    assert "DENY" in [ruling.decision.name for ruling in rulings]


@pytest.mark.parametrize("rule", ['context.arguments.missing == "x"', "context.arguments.path > 3"])
async def test_a_rule_that_fails_on_this_call_denies_it(call, counted, tmp_path, rule):
    pack = load_pack(
        write_pack(tmp_path / "p", f"forbid (principal, action, resource) when {{ {rule} }};")
    )
    outcome, _ = await call("get", Policy(default="allow", packs=[pack]), path="a")
    assert (outcome.ran, counted.runs) == (False, [])


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyError(), OSError(28, "full")], ids=repr)
@pytest.mark.parametrize("gate", ["judge", "approve", "record"])
async def test_a_part_of_the_runner_that_breaks_denies(app, call, counted, gate, error):
    async def breaks(*_):
        raise error

    app.runner.judge = (ASKS if gate == "approve" else ALLOWS).judge
    setattr(app.runner, gate, breaks)
    outcome, _ = await call("get", path="a")
    assert (outcome.ran, outcome.is_error, counted.runs) == (False, True, [])


@pytest.fixture
def _unconfined(monkeypatch):
    """The hook of a test writes beside the workspace."""
    monkeypatch.setenv("HOOKLINE_SANDBOX__ENABLED", "false")
    monkeypatch.setenv("HOOKLINE_SANDBOX__REQUIRED", "false")


def command_hook(tmp_path, command, **options):
    entry = {"type": "command", "command": command, "on_failure": "deny", **options}
    (tmp_path / ".claude").mkdir(exist_ok=True)
    hooks = {"PreToolUse": [{"matcher": "", "hooks": [entry]}]}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


async def test_a_command_hook_that_is_killed_denies(app, call, counted, tmp_path):
    command = long_sleep()
    command_hook(tmp_path, command)
    async with app.running():
        calling = asyncio.create_task(call("get", ALLOWS, path="a"))
        while not (pids := running(command)):
            await asyncio.sleep(0.005)
        os.kill(pids[0], signal.SIGKILL)
        outcome, _ = await calling
    assert (outcome.ran, counted.runs) == (False, [])
    assert "SIGKILL" in outcome.content


@pytest.mark.usefixtures("_unconfined")
async def test_a_command_hook_that_is_unloaded_while_it_runs_still_has_its_say(
    app, call, counted, tmp_path
):
    began, go_on = tmp_path / "began", tmp_path / "go_on"
    os.mkfifo(go_on)
    command_hook(tmp_path, f"touch {began}; cat {go_on}; echo no >&2; exit 2")
    async with app.running():
        calling = asyncio.create_task(call("get", ALLOWS, path="a"))
        while not began.exists():
            await asyncio.sleep(0.005)
        (tmp_path / ".claude" / "settings.json").unlink()
        app.hooks.remove("command-hooks")
        await asyncio.to_thread(go_on.write_text, "go on")
        outcome, _ = await calling
    assert (outcome.ran, counted.runs) == (False, [])


# --- a rewrite after authorisation ----------------------------------------------------------------


both_kinds = pytest.mark.parametrize("name", ["typed", "raw"])


@both_kinds
async def test_what_a_handler_keeps_of_its_rewrite_is_not_what_runs(app, call, nested, name):
    mine = {"words": [["one"]], "more": {"deep": {"x": 1}}}

    def meddle():
        mine["words"][0].append("later")
        mine["more"]["deep"]["x"] = 2

    app.hooks.register("before_tool_call", lambda arguments: mine)
    app.hooks.register("tool_call", lambda event: ToolCallEventResult(input=mine))
    app.hooks.register("authorize_action", lambda action: meddle() or True)
    await call(name, ALLOWS, words=[], more={})
    assert nested == [([["one"]], {"deep": {"x": 1}})]


@both_kinds
async def test_a_second_run_gets_what_was_authorised_and_not_what_the_first_made_of_it(
    app, call, nested, name
):
    async def twice(call, call_next):
        await call_next()
        return await call_next()

    app.hooks.register("around_tool_call", twice)
    await call(name, ALLOWS, words=["one"], more={})
    assert nested == [(["one"], {}), (["one"], {})]


async def test_an_input_that_a_handler_changes_in_place_is_judged_by_those_before_it_too(
    app, call, counted
):
    """Or a guard could be shown one thing, and another one run."""
    judged = []

    def strict(event):
        judged.append(event.input["path"])
        return ToolCallEventResult(block=event.input["path"] == "bad")

    def sloppy(event):
        event.input["path"] = "bad"

    app.hooks.register("tool_call", strict, guard=True)
    app.hooks.register("tool_call", sloppy, guard=True)
    outcome, _ = await call("get", ALLOWS, path="good")
    assert (outcome.ran, counted.runs) == (False, [])
    assert judged == ["good", "bad"]


async def test_no_handler_hides_the_input_from_a_guard_by_changing_it_in_place(app, call, counted):
    def hide(event):
        event.input["path"] = "harmless"

    def strict(event):
        return ToolCallEventResult(block=event.input["path"] == "bad")

    app.hooks.register("tool_call", hide)
    app.hooks.register("tool_call", strict, guard=True)
    await call("get", ALLOWS, path="bad")
    assert counted.runs == ["harmless"]


async def test_an_input_that_changes_each_time_is_refused(app, call, counted):
    app.hooks.register("tool_call", lambda event: event.input.update(path=event.input["path"] + "x"))
    outcome, _ = await call("get", ALLOWS, path="a")
    assert (outcome.ran, counted.runs) == (False, [])
    assert "do not settle" in outcome.content


@pytest.mark.parametrize("gate", [AUTHORIZE, APPROVAL], ids=repr)
async def test_no_plugin_hides_the_call_from_another_that_answers(app, call, counted, gate):
    def hide(subject):
        subject["arguments"]["path"] = "harmless"

    no = {"authorize_action": False, "resolve_approval": "reject"}[gate.hook]
    strict = lambda subject: no if subject["arguments"]["path"] == "bad" else gate.yes  # noqa: E731
    for handler in sorted([hide, strict], key=lambda handler: handler is hide):
        gate.register(app, handler)  # in whatever order they are asked
    gate.register(app, hide)
    outcome, _ = await call("get", gate.policy, path="bad")
    assert (outcome.ran, counted.runs) == (False, [])
