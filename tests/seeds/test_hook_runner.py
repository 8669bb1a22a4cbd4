"""The runner of mutation and observation points, alone and through an app."""

import pytest

from hookline import HookRunner
from hookline.models import ModelFailed
from hookline.models.script import Call, Fault, Turn

from . import say

POINTS = {
    "before_tool_call": "tool_name arguments agent_id",
    "after_tool_call": "tool_name arguments result agent_id",
    "tool_result_persist": "tool_name result agent_id",
    "bootstrap_files": "agent_id",
    "on_turn_start": "agent_id messages",
    "on_turn_end": "agent_id response",
    "on_error": "agent_id error",
}
MUTATION = {
    "before_tool_call": "arguments",
    "after_tool_call": "result",
    "tool_result_persist": "result",
}
OBSERVATION = [point for point in POINTS if point not in MUTATION]
VALUES = {
    "tool_name": "search", "arguments": {"q": "hello"}, "result": "found", "agent_id": "a1",
    "messages": [], "response": "ok", "error": ValueError("x"),
}  # fmt: skip


def given(point: str) -> dict:
    return {name: VALUES[name] for name in POINTS[point].split()}


def callback(point: str, body) -> object:
    """A callback with the documented parameters."""
    names = ", ".join(POINTS[point].split())
    return eval(
        f"lambda {names}: body(dict({', '.join(f'{n}={n}' for n in POINTS[point].split())}))",
        {"body": body},
    )


class TestTheRunner:
    def test_the_example(self):
        def my_hook_fn(tool_name, arguments, agent_id):
            return {**arguments, "by": f"{agent_id} of {tool_name}"}

        runner = HookRunner()
        runner.register("before_tool_call", my_hook_fn)
        modified_args = runner.run(
            "before_tool_call", tool_name="search", arguments={"q": "hello"}, agent_id="a1"
        )
        assert modified_args == {"q": "hello", "by": "a1 of search"}

    @pytest.mark.parametrize("point", POINTS)
    def test_a_callback_gets_the_documented_arguments_in_registration_order(self, point):
        runner, seen = HookRunner(), []
        for number in (1, 2, 3):
            runner.register(point, callback(point, lambda kw, number=number: seen.append((number, kw))))
        runner.run(point, **given(point))
        assert seen == [(number, given(point)) for number in (1, 2, 3)]

    @pytest.mark.parametrize("point", MUTATION)
    def test_a_value_is_passed_on_and_none_keeps_it(self, point):
        runner, seen, carried = HookRunner(), [], MUTATION[point]
        values = [{"a": 1}, None, {"a": 2}]
        for value in values:
            runner.register(
                point, callback(point, lambda kw, v=value: (seen.append(kw[carried]), v)[1])
            )
        assert runner.run(point, **given(point)) == {"a": 2}
        assert seen == [VALUES[carried], {"a": 1}, {"a": 1}]

    @pytest.mark.parametrize("point", MUTATION)
    def test_without_callbacks_or_values_the_given_one_comes_back(self, point):
        runner = HookRunner()
        assert runner.run(point, **given(point)) == VALUES[MUTATION[point]]
        runner.register(point, callback(point, lambda kw: None))
        assert runner.run(point, **given(point)) == VALUES[MUTATION[point]]

    @pytest.mark.parametrize("point", MUTATION)
    def test_a_mutation_that_raises_is_logged_and_skipped(self, point, caplog):
        runner = HookRunner()
        runner.register(point, callback(point, lambda kw: {"a": 1}))
        runner.register(point, callback(point, lambda kw: 1 / 0))
        runner.register(point, callback(point, lambda kw: {**kw[MUTATION[point]], "b": 2}))
        assert runner.run(point, **given(point)) == {"a": 1, "b": 2}
        assert "ZeroDivisionError" in caplog.text

    @pytest.mark.parametrize("point", OBSERVATION)
    def test_an_observation_collects_what_is_not_none(self, point, caplog):
        runner = HookRunner()
        assert runner.run(point, **given(point)) == []
        values = ["one", None, "two"]
        for value in values:
            runner.register(point, callback(point, lambda kw, value=value: value))
        runner.register(point, callback(point, lambda kw: 1 / 0))
        assert runner.run(point, **given(point)) == [value for value in values if value is not None]
        assert "ZeroDivisionError" in caplog.text

    def test_an_unknown_point_is_a_value_error(self):
        with pytest.raises(ValueError, match="before_tool_cal"):
            HookRunner().register("before_tool_cal", lambda: None)

    def test_has_hooks(self):
        runner = HookRunner()
        assert not runner.has_hooks("on_turn_start")
        assert not runner.has_hooks("unknown")
        runner.register("on_turn_start", lambda agent_id, messages: None)
        assert runner.has_hooks("on_turn_start")

    def test_clear_one_or_all(self):
        runner = HookRunner()
        for point in POINTS:
            runner.register(point, callback(point, lambda kw: None))
        runner.clear("on_error")
        assert [point for point in POINTS if not runner.has_hooks(point)] == ["on_error"]
        runner.clear()
        assert not any(map(runner.has_hooks, POINTS))

    def test_unregister_is_by_identity(self):
        runner, calls = HookRunner(), []

        def one(agent_id):
            calls.append(1)

        runner.register("bootstrap_files", one)
        assert runner.unregister("bootstrap_files", lambda agent_id: calls.append(1)) is False
        assert runner.unregister("unknown", one) is False
        assert runner.unregister("on_error", one) is False
        assert runner.unregister("bootstrap_files", one) is True
        assert runner.unregister("bootstrap_files", one) is False
        runner.run("bootstrap_files", agent_id="a")
        assert calls == []


class TestThroughAnApp:
    async def test_arguments_and_results_are_rewritten_and_the_tape_keeps_its_own(self, app, scripted):
        (app.workspace / "a").mkdir()
        (app.workspace / "a" / "inside.txt").touch()
        app.hooks.register("before_tool_call", lambda tool_name, arguments, agent_id: {"path": "a"})
        app.hooks.register(
            "after_tool_call",
            lambda tool_name, arguments, result, agent_id: f"{arguments['path']}: {result}",
        )
        app.hooks.register(
            "tool_result_persist", lambda tool_name, result, agent_id: result.replace("inside", "***")
        )
        model = scripted(Turn(tool_calls=[Call("list_files", {"path": "."})]), "done", "later")
        async with app.running():
            await app.process({"content": "hello", "session_id": "s"})
            await app.process({"content": "again", "session_id": "s"})
        live = next(m for m in model.requests[1].messages if m["role"] == "tool")["content"]
        kept = next(m for m in model.requests[2].messages if m["role"] == "tool")["content"]
        assert live.startswith("a: ")
        assert "inside.txt" in live
        assert "***.txt" in kept

    async def test_extra_content_is_in_the_system_prompt(self, app, scripted):
        app.hooks.register("bootstrap_files", lambda agent_id: [f"extra for {agent_id}"])
        app.hooks.register("bootstrap_files", lambda agent_id: "one text")
        model = scripted("ok")
        await say(app)
        assert "extra for main" in model.requests[0].system
        assert "one text" in model.requests[0].system

    async def test_a_turn_starts_with_its_messages_and_ends_with_its_answer(self, app, scripted):
        seen = []
        app.hooks.register(
            "on_turn_start", lambda agent_id, messages: seen.append((agent_id, messages[-1]["content"]))
        )
        app.hooks.register("on_turn_end", lambda agent_id, response: seen.append((agent_id, response)))
        scripted(Turn(tool_calls=[Call("todo")]), "bye")
        await say(app)
        assert seen == [("main", "hello"), ("main", "bye")]

    async def test_an_error_of_the_model_is_reported(self, app, scripted):
        seen = []
        app.hooks.register("on_error", lambda agent_id, error: seen.append((agent_id, str(error))))
        scripted(Turn(error=Fault("broken")))
        with pytest.raises(ModelFailed):
            await say(app)
        assert [agent for agent, _ in seen] == ["main"]
        assert "broken" in seen[0][1]

    async def test_an_error_of_a_tool_is_reported(self, app, scripted):
        from .test_event_bus import broken

        seen = []
        app.hooks.register("on_error", lambda agent_id, error: seen.append((agent_id, str(error))))
        app.tools.add(broken)
        scripted(Turn(tool_calls=[Call("broken")]), "ok")
        await say(app)
        assert seen == [("main", "it broke")]

    @pytest.mark.parametrize("point", POINTS)
    async def test_a_callback_that_raises_breaks_nothing(self, app, scripted, point):
        ran = []
        app.hooks.register(point, callback(point, lambda kw: 1 / 0))
        app.hooks.register(point, callback(point, lambda kw: ran.append(point)))
        scripted(Turn(tool_calls=[Call("todo")]), Turn(error=Fault("broken")))
        with pytest.raises(ModelFailed):
            await say(app)
        assert ran or point == "on_turn_end"
