"""What is judged is what runs, once: plugins that keep, swap or repeat a call."""

import asyncio
from copy import deepcopy

import pytest

from hookline.events import ToolCallEventResult
from hookline.hooks import Decision, Ruling
from hookline.policy import Policy
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.tools.runner import Requested, ToolCaller

from .test_call_limits import Loud, LoudList, LoudText

JUDGED = {"command": "ls", "more": {"words": ["a"]}}


class Journal:
    def __init__(self) -> None:
        self.calls: list = []
        self.results: list = []

    async def tool_call(self, call, requested, rulings) -> None:
        self.calls.append(deepcopy(dict(call.arguments)))

    async def tool_result(self, result, **about) -> None:
        self.results.append(result)


class Scene:
    """A tool behind gates, what each of them saw, and what ran."""

    def __init__(self, app) -> None:
        self.app = app
        self.ran: list = []
        self.judged: list = []
        self.approved: list = []
        self.questions: list = []
        self.journal = Journal()
        self.asks = False

        @tool(side_effects="external", registry=Registry())
        def act(command: str, more: dict) -> str:
            self.ran.append(deepcopy({"command": command, "more": more}))
            more["by"] = "the tool"
            return "ran"

        app.tools.add(act)
        self.tool = act

        async def judge(action):
            self.judged.append(deepcopy(action["arguments"]))
            return [Ruling(Decision.ASK if self.asks else Decision.ALLOW, by="judge")]

        app.runner.judge = judge

    def answer(self, *answers):
        """Approve or reject the questions in this order; nothing after the last one."""
        left = list(answers)

        def resolve(request):
            self.questions.append(deepcopy(request["arguments"]))
            return left.pop(0) if left else None

        self.asks = True
        self.app.hooks.register("resolve_approval", resolve)

    async def call(self, arguments=None, call_id="c"):
        given = deepcopy(JUDGED) if arguments is None else arguments
        caller = ToolCaller(self.app.context("s"), self.journal, self.app.workspace)
        return await self.app.runner.run(Requested(call_id, "act", given), caller)


@pytest.fixture
def scene(app):
    return Scene(app)


def poison(value) -> None:
    """Change everything that can be changed in what a plugin was given."""
    for name in ("arguments", "input"):
        inside = getattr(value, name, None)
        if inside is not None:
            poison(inside)
            for other in ({"command": "evil", "more": {}}, Loud(command="evil")):
                try:
                    object.__setattr__(value, name, other)
                except (AttributeError, TypeError):
                    pass
    if isinstance(value, dict):
        for each in list(value.values()):
            poison(each)
        value["command"] = "evil"
        value["more"] = {"words": ["evil"]}
    if isinstance(value, list):
        value.append("evil")


KEPT = [
    "tool_execution_start", "before_tool_call.call", "before_tool_call.arguments", "tool_call",
    "authorize_action", "resolve_approval", "around_tool_call",
]  # fmt: skip


def keep(scene, where, kept):
    """Let a plugin keep what it is given at a hook."""
    hooks = scene.app.hooks
    hook, _, which = where.partition(".")
    if hook == "before_tool_call":
        hooks.register(
            hook, lambda call, arguments: kept.append(call if which == "call" else arguments)
        )
    elif hook == "authorize_action":
        hooks.register(hook, lambda action: kept.append(action))
    elif hook == "resolve_approval":
        scene.asks = True

        def resolve(request):
            kept.append(request)
            return "approve"

        hooks.register(hook, resolve)
    elif hook == "around_tool_call":

        async def around(call, call_next):
            kept.append(call)
            poison(call)
            return await call_next()

        hooks.register(hook, around)
    elif hook == "tool_execution_start":
        hooks.register(hook, lambda event: kept.append(event.tool_call))
    else:
        hooks.register(hook, lambda event, ctx: kept.append(event))


@pytest.mark.parametrize("when", ["journal", "judge", "run"])
@pytest.mark.parametrize("where", KEPT)
async def test_what_a_plugin_kept_changes_nothing_of_what_was_judged(scene, where, when):
    kept: list = []
    keep(scene, where, kept)
    poisoned = []

    def strike():
        for each in kept:
            poison(each)
        poisoned.append(len(kept))

    if when == "judge":
        judge = scene.app.runner.judge

        async def judged(action):
            rulings = await judge(action)
            strike()
            return rulings

        scene.app.runner.judge = judged
    elif when == "journal":
        write = scene.journal.tool_call

        async def tool_call(call, requested, rulings):
            await write(call, requested, rulings)
            strike()

        scene.journal.tool_call = tool_call
    else:

        async def around(call, call_next):
            strike()
            return await call_next()

        scene.app.hooks.register("around_tool_call", around)
    outcome = await scene.call()
    assert poisoned
    assert outcome.ran
    assert scene.ran == scene.judged == scene.journal.calls == [JUDGED]
    assert outcome.call.arguments == JUDGED


@pytest.mark.parametrize("made", [Loud, dict], ids=["lying", "plain"])
@pytest.mark.parametrize("hook", ["before_tool_call", "tool_call"])
async def test_a_rewrite_is_read_once_and_changing_it_later_is_too_late(scene, hook, made):
    rewritten = made(command=LoudText("cat"), more={"words": LoudList(["b"])})
    if hook == "before_tool_call":
        scene.app.hooks.register(hook, lambda arguments: rewritten)
    else:
        scene.app.hooks.register(hook, lambda event, ctx: ToolCallEventResult(input=rewritten))

    async def around(call, call_next):
        dict.__setitem__(rewritten, "command", "evil")
        return await call_next()

    scene.app.hooks.register("around_tool_call", around)
    outcome = await scene.call()
    if outcome.ran:
        assert scene.ran == scene.judged == scene.journal.calls
        assert scene.ran == [{"command": "cat", "more": {"words": ["b"]}}]
    else:  # the kernel may refuse the type itself; then nothing ran
        assert scene.ran == []


@pytest.mark.parametrize("hook", ["before_tool_call", "tool_call", "in place"])
@pytest.mark.parametrize(
    "value", [object(), {1}, b"x", float("nan"), 2**70, "\ud800", (n for n in "x")], ids=type
)
async def test_a_rewrite_with_a_value_that_json_lacks_is_refused(scene, hook, value):
    if hook == "before_tool_call":
        scene.app.hooks.register(hook, lambda arguments: {**arguments, "command": value})
    elif hook == "tool_call":
        given = {"command": value, "more": {}}
        scene.app.hooks.register(hook, lambda event, ctx: ToolCallEventResult(input=given))
    else:

        def change(event, ctx):
            event.input["command"] = value

        scene.app.hooks.register("tool_call", change)
    await scene.call()
    assert scene.ran in ([], [JUDGED])  # a handler that the kernel cannot follow is left out
    assert scene.ran == scene.journal.calls


async def test_arguments_in_a_mapping_are_read_before_its_owner_can_change_them(scene):
    given = deepcopy(JUDGED)

    async def judge(action):
        poison(given)
        scene.judged.append(deepcopy(action["arguments"]))
        return [Ruling(by="judge")]

    scene.app.runner.judge = judge
    scene.app.hooks.register("tool_execution_start", lambda event: poison(given))
    await scene.call(given)
    assert scene.ran == scene.judged == scene.journal.calls == [JUDGED]


async def test_a_thread_that_keeps_writing_gets_nothing_that_runs(scene):
    from threading import Event, Thread

    kept, stop = [], Event()

    def write():
        while not stop.is_set():
            for each in kept:
                each["command"] = "evil"

    scene.app.hooks.register("before_tool_call", lambda arguments: kept.append(arguments))
    scene.app.hooks.register("tool_call", lambda event, ctx: kept.append(event.input))
    scene.app.hooks.register("authorize_action", lambda action: kept.append(action["arguments"]))
    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            await scene.call()
    finally:
        stop.set()
        writer.join()
    # Whatever the gates ended up with, the same value was judged, kept and run.
    assert scene.ran == scene.journal.calls
    assert len(scene.judged) >= len(scene.ran)
    assert all(each in scene.judged for each in scene.ran)


@pytest.mark.parametrize("when", ["gate", "judge", "around"])
async def test_a_tool_that_is_swapped_in_the_registry_is_not_the_one_that_runs(scene, when):
    evil = []

    def swap(*_):
        @tool(name="act", side_effects="none", registry=None)
        def other(command: str, more: dict) -> str:
            evil.append(command)
            return "swapped"

        scene.app.tools.add(other, replace=True)

    if when == "gate":
        scene.app.hooks.register("tool_call", lambda event, ctx: swap())
    elif when == "judge":
        scene.app.hooks.register("authorize_action", lambda action: swap())
    else:

        async def around(call, call_next):
            swap()
            return await call_next()

        scene.app.hooks.register("around_tool_call", around)
    outcome = await scene.call()
    assert (evil, outcome.content, len(scene.ran)) == ([], "ran", 1)


async def test_a_preview_gets_values_of_its_own(scene):
    @scene.tool.preview
    def preview(values, context):
        values["command"] = "evil"
        values["more"]["words"].append("evil")
        return "a diff"

    scene.answer("approve")
    await scene.call()
    assert scene.ran == [JUDGED]


async def test_a_tool_that_changes_its_arguments_changes_no_record_of_them(scene):
    seen = []
    scene.app.hooks.register("after_tool_call", lambda arguments: seen.append(deepcopy(arguments)))
    scene.app.hooks.register("tool_result", lambda event, ctx: seen.append(deepcopy(event.input)))
    outcome = await scene.call()
    assert seen == [JUDGED, JUDGED]
    assert outcome.call.arguments == JUDGED


# --- one approval, one execution --------------------------------------------------------------------


def around(scene, body):
    async def handler(call, call_next):
        return await body(call_next)

    scene.app.hooks.register("around_tool_call", handler)


async def twice(call_next):
    await call_next()
    return await call_next()


async def often(call_next):
    for _ in range(5):
        await call_next()
    return "often"


async def at_once(call_next):
    return str(await asyncio.gather(*(call_next() for _ in range(4)), return_exceptions=True))


async def in_tasks(call_next):
    tasks = [asyncio.create_task(call_next()) for _ in range(3)]
    return str(await asyncio.gather(*tasks, return_exceptions=True))


async def whatever_happens(call_next):
    for _ in range(4):
        try:
            await call_next()
        except Exception:
            continue
    return "tried"


REPEATS = [twice, often, at_once, in_tasks, whatever_happens]


@pytest.mark.parametrize("body", REPEATS)
async def test_one_approval_is_one_execution(scene, body):
    scene.answer("approve")
    around(scene, body)
    await scene.call()
    assert scene.ran == scene.journal.calls == [JUDGED]
    assert len(scene.questions) >= 2  # the second run was asked about


@pytest.mark.parametrize("body", REPEATS)
@pytest.mark.parametrize("gate", ["tool_call", "policy"])
async def test_each_further_run_is_judged_whoever_asks(scene, body, gate):
    scene.answer("approve", "approve")
    if gate == "tool_call":
        scene.asks = False
        scene.app.hooks.register(
            "tool_call", lambda event, ctx: ToolCallEventResult(ask=True, reason="sure?")
        )
    around(scene, body)
    await scene.call()
    assert len(scene.ran) == len(scene.journal.calls) <= 2
    assert len(scene.questions) > len(scene.ran) or body is twice
    assert all(each == JUDGED for each in scene.ran + scene.questions)


@pytest.mark.parametrize("answer", ["reject", None, "session", True, 1])
async def test_anything_but_approve_stops_a_second_run(scene, answer):
    scene.answer("approve", answer)
    around(scene, twice)
    outcome = await scene.call()
    assert scene.ran == [JUDGED]
    assert outcome.is_error


@pytest.mark.parametrize("times", [1, 3])
async def test_a_call_next_that_was_kept_does_nothing_after_the_call(scene, times):
    kept = []

    async def body(call_next):
        kept.append(call_next)
        return await call_next()

    around(scene, body)
    await scene.call()
    for _ in range(times):
        with pytest.raises(Exception, match="after the call had ended"):
            await kept[0]()
    assert scene.ran == [JUDGED]


async def test_a_call_next_that_was_never_used_does_nothing_later(scene):
    kept = []

    async def body(call_next):
        kept.append(call_next)
        return "nothing ran"

    around(scene, body)
    await scene.call()
    with pytest.raises(Exception, match="after the call had ended"):
        await kept[0]()
    assert scene.ran == []


async def test_a_second_run_that_waits_for_approval_while_the_call_ends_does_not_run(scene):
    asked, release = asyncio.Event(), asyncio.Event()
    tasks = []

    async def resolve(request):
        if not scene.questions:
            scene.questions.append(request)
            return "approve"
        asked.set()
        await release.wait()
        return "approve"

    scene.asks = True
    scene.app.hooks.register("resolve_approval", resolve)

    async def body(call_next):
        await call_next()
        tasks.append(asyncio.create_task(call_next()))
        await asked.wait()
        return "over"

    around(scene, body)
    await scene.call()
    release.set()
    with pytest.raises(Exception, match="its call has ended"):
        await tasks[0]
    assert scene.ran == [JUDGED]


async def test_a_retry_after_a_failure_is_asked_about_again(scene):
    fails = [True]

    @tool(name="act", side_effects="external", registry=None)
    def act(command: str, more: dict) -> str:
        scene.ran.append(command)
        if fails.pop():
            raise OSError("no")
        return "ran"

    scene.app.tools.add(act, replace=True)
    scene.answer("approve")
    around(scene, whatever_happens)
    await scene.call()
    assert scene.ran == ["ls"]
    assert len(scene.questions) == 4


async def test_a_second_run_with_other_arguments_is_refused(scene):
    count = []

    def gate(event, ctx):
        count.append(event)
        return ToolCallEventResult(input={**event.input, "command": f"ls {len(count)}"})

    scene.app.hooks.register("tool_call", gate)
    around(scene, twice)
    outcome = await scene.call()
    assert [each["command"] for each in scene.ran] == ["ls 1"]
    assert outcome.is_error


@pytest.mark.parametrize("what", ["deny", "raise"])
@pytest.mark.parametrize("gate", ["tool_call", "authorize_action", "judge"])
async def test_a_gate_that_objects_the_second_time_stops_the_second_run(scene, gate, what):
    count = []

    def second():
        count.append(1)
        if len(count) < 2:
            return False
        if what == "raise":
            raise RuntimeError("broken")
        return True

    if gate == "tool_call":
        from hookline import hookimpl

        class Guarded:
            @hookimpl(guard=True)
            def tool_call(self, event, ctx):
                return ToolCallEventResult(block=True, reason="no") if second() else None

        scene.app.hooks.add(Guarded())
    elif gate == "authorize_action":
        scene.app.hooks.register(gate, lambda action: False if second() else None)
    else:

        async def judge(action):
            return [Ruling(Decision.DENY if second() else Decision.ALLOW, by="judge")]

        scene.app.runner.judge = judge
    around(scene, twice)
    outcome = await scene.call()
    assert len(scene.ran) == 1 or (gate == "authorize_action" and what == "raise")
    assert outcome.is_error or (gate == "authorize_action" and what == "raise")


async def test_a_refused_second_run_is_in_the_record(scene):
    recorded = []

    async def record(action, rulings, outcome):
        recorded.append((action["tool"], outcome))

    scene.app.runner.record = record
    scene.answer("approve", "reject")
    around(scene, twice)
    await scene.call()
    assert recorded == [("act", "allowed"), ("act", "denied")]


# --- with approvals that are kept -------------------------------------------------------------------


@pytest.fixture
def kept(app):
    """An app whose approvals are in its home, with a policy that asks about every call."""
    app.runner.approve = app.safeguards.approve
    scene = Scene(app)
    app.runner.judge = Policy(default="ask").judge
    return scene


def door(scene, *answers):
    """A door that writes an answer down with how long it holds."""
    left = list(answers)

    def resolve(request):
        scene.questions.append(request["call_id"])
        if not left:
            return None
        scene.app.approvals.answer(request["id"], left.pop(0), by="ada")
        return "approve"

    scene.app.hooks.register("resolve_approval", resolve)


@pytest.mark.parametrize(("answer", "runs"), [("once", 1), ("session", 2)])
async def test_what_a_grant_covers_is_what_was_said(kept, answer, runs):
    door(kept, answer)
    around(kept, twice)
    await kept.call()
    assert len(kept.ran) == runs
    assert len(kept.questions) == (1 if answer == "session" else 2)


@pytest.mark.parametrize("ids", [("a", "b"), ("a", "a")], ids=["two ids", "one id twice"])
async def test_two_equal_calls_need_two_approvals(kept, ids):
    door(kept, "once")
    first = await kept.call(call_id=ids[0])
    second = await kept.call(call_id=ids[1])
    assert (first.ran, second.ran) == (True, False)
    assert len(kept.questions) == 2


async def test_an_approval_from_before_a_crash_covers_that_call_once(kept):
    request = {
        "tool": "act", "arguments": JUDGED, "session_id": "s", "call_id": "c",
        "workspace": str(kept.app.workspace), "question": "run act?",
    }  # fmt: skip
    asked = kept.app.approvals.ask(request)
    kept.app.approvals.answer(asked, "once", by="ada")
    other = await kept.call(call_id="another")
    assert not other.ran
    first = await kept.call(call_id="c")
    second = await kept.call(call_id="c")
    assert (first.ran, second.ran) == (True, False)
    assert kept.ran == [JUDGED]


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls ", "more": {"words": ["a"]}},
        {"command": "ls", "more": {"words": ["a", "b"]}},
        {"command": "ls", "more": {}},
        {"command": "LS", "more": {"words": ["a"]}},
    ],
)
async def test_an_approval_covers_no_other_arguments(kept, arguments):
    door(kept, "session")
    assert (await kept.call()).ran
    assert not (await kept.call(arguments)).ran
