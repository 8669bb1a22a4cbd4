"""What becomes of a message: one outcome each, and never two turns of one session at once."""

import asyncio

import pytest

from hookline.agent.run import Limits
from hookline.channel import Channel
from hookline.events import AgentStopEventResult, InputEventResult
from hookline.hooks import WrongResult
from hookline.models.script import Call, Turn
from hookline.tools import tool
from hookline.tools.registry import Registry

from ..processes import long_sleep, running

HERE = "default:default"


def say(app, text, **options):
    return asyncio.create_task(app.process({"content": text}, **options))


def contents(model, index):
    return [m["content"] for m in model.requests[index].messages]


class Gate:
    """A tool that waits until the test lets it go on."""

    def __init__(self, app):
        self.entered, self.open = asyncio.Event(), asyncio.Event()

        @tool(side_effects="none", registry=Registry())
        async def wait() -> str:
            self.entered.set()
            await self.open.wait()
            return "waited"

        app.tools.add(wait)


@pytest.fixture
def gate(app):
    return Gate(app)


async def test_messages_to_a_busy_session_follow_up_in_order_each_with_its_own_answer(
    app, scripted, gate
):
    scripted(Turn(tool_calls=[Call("wait")]), "one", "two", "three")
    turns, running = [], 0

    def start(e):
        nonlocal running
        running += 1
        turns.append(running)

    def end(e):
        nonlocal running
        running -= 1

    app.hooks.register("agent_start", start)
    app.hooks.register("agent_end", end)
    fired = []
    for name in ("save_point", "settled"):
        app.hooks.register(name, lambda e, _n=name: fired.append(_n))
    async with app.running():
        first = say(app, "a")
        await gate.entered.wait()
        rest = [say(app, "b"), say(app, "c")]
        while app.sessions.queue(HERE).waiting < 2:
            await asyncio.sleep(0)
        gate.open.set()
        results = await asyncio.gather(first, *rest)
    assert [r.model_output for r in results] == ["one", "two", "three"]
    assert turns == [1, 1, 1]
    assert fired == ["save_point", "save_point", "save_point", "settled"]


async def test_one_admitted_to_process_goes_before_the_follow_ups(app, scripted, gate):
    model = scripted(Turn(tool_calls=[Call("wait")]), "one", "two", "three")
    app.hooks.register(
        "admit_message", lambda message: "process" if message["content"] == "c" else None
    )
    async with app.running():
        first = say(app, "a")
        await gate.entered.wait()
        rest = [say(app, "b"), say(app, "c")]
        while app.sessions.queue(HERE).waiting < 2:
            await asyncio.sleep(0)
        gate.open.set()
        await asyncio.gather(first, *rest)
    assert [contents(model, n)[-1] for n in (2, 3)] == ["c", "b"]


async def test_a_steered_message_joins_the_running_turn_before_its_next_model_call(app, scripted, gate):
    model = scripted(Turn(tool_calls=[Call("wait")]), "done")
    seen = []
    app.hooks.register(
        "admit_message", lambda turn: seen.append(turn) or ("steer" if turn.busy else None)
    )
    async with app.running():
        first = say(app, "a")
        await gate.entered.wait()
        steered = say(app, "also b")
        while not app.sessions.runs[HERE].steering:
            await asyncio.sleep(0)
        gate.open.set()
        results = await asyncio.gather(first, steered)
        entries = await app.store().entries(HERE, kinds=["message"])
    assert [r.outcome for r in results] == ["answered", "steered"]
    assert [r.model_output for r in results] == ["done", ""]
    assert contents(model, 1) == ["a", "", "waited", "also b"]
    assert [turn.phase for turn in seen] == ["idle", "turn"]
    assert next(e for e in entries if e.meta.get("steered")).payload["message"]["content"] == "also b"


async def test_a_message_steered_when_the_agent_was_done_keeps_it_at_work(app, scripted):
    model = scripted("first", "second")
    app.hooks.register("admit_message", lambda turn: "steer")
    steered = []

    async def stop(event):
        if not steered:
            steered.append(say(app, "one more thing"))
            while not app.sessions.runs[HERE].steering:
                await asyncio.sleep(0)

    app.hooks.register("agent_stop", stop)
    async with app.running():
        result = await app.process({"content": "a"})
        late = await steered[0]
    assert (result.model_output, late.outcome) == ("second", "steered")
    assert contents(model, 1) == ["a", "first", "one more thing"]


async def test_steered_input_passes_the_input_gate(app, scripted, gate):
    model = scripted(Turn(tool_calls=[Call("wait")]), "done")
    app.hooks.register("admit_message", lambda turn: "steer")
    app.hooks.register(
        "input",
        lambda e: InputEventResult("block", reason="no swearing") if "damn" in e.text else None,
        guard=True,
    )
    async with app.running():
        first = say(app, "a")
        await gate.entered.wait()
        refused = await say(app, "damn")
        gate.open.set()
        await first
        notes = await app.store().entries(HERE, kinds=["inbound"])
    assert (refused.outcome, refused.stopped) == ("blocked", "no swearing")
    assert contents(model, 1) == ["a", "", "waited"]
    assert notes[0].payload["outcome"] == "blocked"


async def test_a_dropped_message_gets_its_reason_and_is_noted_on_the_tape(app, scripted):
    from hookline.hookspecs import Admission

    model = scripted("never")
    app.hooks.register("admit_message", lambda: Admission("drop", "closed on Sundays"))
    async with app.running():
        result = await app.process({"content": "a"})
        (noted,) = await app.store().entries(HERE)
    assert (result.outcome, result.stopped) == ("dropped", "closed on Sundays")
    assert noted.payload == {
        "envelope": {"content": "a"}, "outcome": "dropped", "reason": "closed on Sundays",
    }  # fmt: skip
    assert model.requests == []


async def test_an_admission_that_means_nothing_is_an_error(app, scripted):
    scripted("never")
    app.hooks.register("admit_message", lambda: "later")
    async with app.running():
        with pytest.raises(WrongResult, match="takes 'process'"):
            await app.process({"content": "a"})


class TestTheEndOfAnAnswer:
    async def test_a_handler_sends_the_agent_back_to_work_as_often_as_allowed(self, app, scripted):
        model = scripted("done", "really done", "done indeed", "never")
        app.limits = Limits(sent_back=2)
        responses = []

        def stop(event):
            responses.append(event.response)
            return AgentStopEventResult(block=True, reason="the tests fail")

        app.hooks.register("agent_stop", stop)
        async with app.running():
            result = await app.process({"content": "a"})
        assert result.model_output == "done indeed"
        assert responses == ["done", "really done"]
        assert contents(model, 2) == ["a", "done", "the tests fail", "really done", "the tests fail"]

    async def test_save_point_and_settled_come_last_also_after_a_failure(self, app, scripted):
        order = []
        for name in ("session_start", "agent_error", "message:send", "save_point", "settled"):
            app.hooks.register(name, lambda e, _n=name: order.append(_n) and None)

        class Ends(Channel):
            def stream(self, event):
                if event.kind == "end":
                    order.append("end")

        scripted("ok")
        async with app.running(Ends()):
            await app.process({"content": "a"})
            with pytest.raises(Exception, match="no turn left"):
                await app.process({"content": "b"})
        assert order == [
            "session_start", "message:send", "end", "save_point", "settled",
            "agent_error", "save_point", "settled",
        ]  # fmt: skip


class TestCancelling:
    async def test_a_cancelled_turn_ends_at_once_with_its_tools_and_leaves_a_valid_tape(
        self, app, scripted, tmp_path
    ):
        command = long_sleep()
        model = scripted(Turn(tool_calls=[Call("shell", {"command": f"echo go; {command}"})]), "two")
        began = asyncio.Event()
        app.hooks.register("tool_execution_update", lambda e: began.set())
        async with app.running():
            turn = say(app, "a")
            await began.wait()
            assert running(command)
            assert await app.cancel(HERE)
            result = await turn
            assert running(command) == []
            assert (result.outcome, app.sessions.queue(HERE).phase) == ("cancelled", "idle")
            assert not await app.cancel(HERE)
            turns = await app.store().entries(HERE, kinds=["turn"])
            assert turns[-1].payload["status"] == "cancelled"
            assert await app.resume(HERE) is None
            assert (await app.process({"content": "b"})).model_output == "two"
        assert "interrupted" in contents(model, 1)[2]

    async def test_the_message_after_a_cancelled_one_gets_its_turn(self, app, scripted, gate):
        scripted(Turn(tool_calls=[Call("wait")]), "two")
        async with app.running():
            first = say(app, "a")
            await gate.entered.wait()
            second = say(app, "b")
            while not app.sessions.queue(HERE).waiting:
                await asyncio.sleep(0)
            await app.cancel(HERE)
            assert [(await t).outcome for t in (first, second)] == ["cancelled", "answered"]

    async def test_whoever_gives_up_waiting_leaves_the_line(self, app, scripted, gate):
        scripted(Turn(tool_calls=[Call("wait")]), "one", "two")
        async with app.running():
            first = say(app, "a")
            await gate.entered.wait()
            second, third = say(app, "b"), say(app, "c")
            while app.sessions.queue(HERE).waiting < 2:
                await asyncio.sleep(0)
            second.cancel()
            gate.open.set()
            assert (await first).model_output == "one"
            assert (await third).model_output == "two"
            with pytest.raises(asyncio.CancelledError):
                await second
