"""What `docs/differences.md` says works differently here does so, in a real app."""

import pluggy
import pytest

from hookline import Hooks, hookimpl, hookspec
from hookline.events import (
    BeforeAgentStartEventResult,
    ContextEventResult,
    InputEventResult,
    MessageReceiveResult,
    ToolCallEventResult,
)
from hookline.hooks import UnknownHook
from hookline.hooks.errors import WrongResult
from hookline.models.script import Call, Turn
from hookline.policy import Policy


async def say(app, text="hello"):
    async with app.running():
        return await app.process({"content": text, "session_id": "s"})


async def call_tool(app, scripted) -> dict:
    """What the model reads of a tool call."""
    model = scripted(Turn(tool_calls=[Call("list_files")]), "Done.")
    await say(app)
    return model.requests[1].messages[-1]


async def test_the_newest_of_run_model_and_run_model_stream_wins(app, scripted):
    class Old:
        @hookimpl
        def run_model(self):
            return "a text"

    class New:
        @hookimpl
        def run_model_stream(self):
            return None  # leaves it to the next: the older text, not the builtin stream

    app.hooks.add(Old())
    app.hooks.add(New())
    scripted("the builtin stream")
    assert (await say(app)).model_output == "a text"


def test_calling_an_unknown_hook_is_an_error_with_the_closest_name():
    for name in ("call", "call_first", "call_many", "call_first_sync", "call_many_sync"):
        with pytest.raises(UnknownHook, match="build_prompt"):
            getattr(Hooks(), name)("build_promt")


async def test_a_value_of_another_type_is_an_error_that_names_the_plugin(app, scripted):
    class Wrong:
        @hookimpl
        def resolve_session(self):
            return 7

    app.hooks.add(Wrong())
    scripted("ok")
    async with app.running():
        with pytest.raises(WrongResult, match=r"Wrong returned int on hook 'resolve_session'"):
            await app.process({"content": "hello"})


async def test_state_is_saved_when_input_handled_the_message(app, scripted):
    saved = []
    app.hooks.register("save_state", lambda session_id, model_output: saved.append(model_output))
    app.hooks.register("input", lambda event: InputEventResult("handled"))
    scripted("never")
    await say(app)
    assert saved == [""]


def test_two_plugins_of_one_class_need_two_names():
    class Plugin:
        @hookimpl
        def system_prompt(self):
            return "x"

    hooks = Hooks()
    hooks.add(Plugin())
    with pytest.raises(pluggy.PluginValidationError, match="name="):
        hooks.add(Plugin())
    hooks.add(Plugin(), name="another")
    assert hooks.report()["system_prompt"] == ["another", "Plugin"]  # in the order in which they run


async def test_a_plain_handler_that_fails_is_ignored_a_guard_denies(app, scripted):
    def fail(event):
        raise ValueError("broken")

    off = app.hooks.register("tool_call", fail)
    assert not (await call_tool(app, scripted)).get("is_error")
    off()
    app.hooks.register("tool_call", fail, guard=True)
    assert (await call_tool(app, scripted))["is_error"]


async def test_a_result_of_another_event_denies_at_a_gate(app, scripted):
    app.hooks.register("tool_call", lambda event: BeforeAgentStartEventResult("x"))
    assert (await call_tool(app, scripted))["is_error"]


async def test_context_fires_before_every_model_call(app, scripted):
    seen = []

    def note(event):
        seen.append(len(event.messages))
        return ContextEventResult(event.messages)

    app.hooks.register("context", note)
    await call_tool(app, scripted)
    assert seen == [1, 3]


async def test_a_rejected_message_ends_with_its_reason(app, scripted):
    scripted("never")
    app.hooks.register("message:receive", lambda event: MessageReceiveResult("reject", reason="no"))
    result = await say(app)
    assert (result.outcome, result.stopped) == ("rejected", "no")


@pytest.mark.parametrize(("floor", "runs"), [({}, True), ({"deny": {"tools": ["list_files"]}}, False)])
async def test_true_of_authorize_action_replaces_the_default_and_not_the_floor(
    app, scripted, floor, runs
):
    app.given_policy = Policy.load({"default": "deny", "floor": floor})
    app.hooks.register("authorize_action", lambda action: True)
    assert bool((await call_tool(app, scripted)).get("is_error")) is not runs


async def test_an_authorize_action_that_fails_counts_as_false(app, scripted):
    def fail(action):
        raise ValueError("broken")

    app.hooks.register("authorize_action", fail)
    assert (await call_tool(app, scripted))["is_error"]


async def test_tool_call_comes_before_authorize_action_which_can_still_deny(app, scripted):
    order = []

    def look(event):
        order.append("tool_call")
        return ToolCallEventResult()

    def deny(action):
        order.append("authorize_action")
        return False

    app.hooks.register("tool_call", look)
    app.hooks.register("authorize_action", deny)
    assert (await call_tool(app, scripted))["is_error"]
    assert order == ["tool_call", "authorize_action"]


def test_the_features_of_pluggy_that_are_not_supported_are_refused():
    for option in ("historic", "warn_on_impl"):
        with pytest.raises(TypeError):
            hookspec(**{option: True})(lambda self: None)
    with pytest.raises(AssertionError):
        Hooks().pm.hook.hookline_startup.call_historic(kwargs={"pm": None})
    with pytest.raises(TypeError):
        hookimpl(hookwrapper=True)
