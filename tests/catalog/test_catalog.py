"""The catalogue is consistent, and its hooks do what their declarations say.

The declarations are not repeated here: `docs/hooks.md` is generated from them, and its difference shows
what a change does to the catalogue.
"""

from dataclasses import MISSING, FrozenInstanceError, fields
from typing import Any, Literal

import pytest

from hookline import Hooks, hookimpl
from hookline.events import ToolCall
from hookline.hooks import Collected, RegistrationError
from hookline.hookspecs import CATALOG, Admission

from ..tables import each_row

EVENT_SPECS = [spec for spec in CATALOG.values() if spec.event]


def test_an_event_is_skipped_on_errors_and_runs_oldest_first():
    rules = {(s.params, s.order.name, s.errors.name, s.sync) for s in EVENT_SPECS}
    assert rules == {(("event", "ctx"), "OLDEST", "SKIP", False)}


@each_row("spec", EVENT_SPECS, ids=lambda spec: spec.name)
def test_what_an_event_gives_follows_from_its_result_as_the_types_say(spec: Any):
    """`Hook[E, R].fire` is typed by the result class alone, so the reducer must agree with it."""
    if spec.result is None:
        assert spec.reducer.name == "notify"
    elif issubclass(spec.result, Collected):
        assert spec.reducer.name == "collect"
    else:
        assert spec.reducer.folds


def test_hooks_of_a_start_are_synchronous():
    named = {n for n in CATALOG if n.startswith(("register_", "provide_", "build_tape", "onboard"))}
    assert {n for n, s in CATALOG.items() if s.sync} == named | {"system_prompt"}


@each_row("spec", CATALOG.values(), ids=lambda spec: spec.name)
def test_every_hook_says_in_a_line_what_it_is_and_when_it_fires(spec: Any):
    assert spec.doc.endswith(".")
    assert len(spec.doc) <= 100
    assert spec.fires
    assert not spec.fires.endswith(".")


@each_row("spec", EVENT_SPECS, ids=lambda spec: spec.name)
def test_every_event_has_a_literal_type_and_defaults_throughout(spec: Any):
    kind, *payload = fields(spec.event)
    assert (kind.name, kind.init, kind.default) == ("type", False, spec.name)
    assert kind.type == Literal[spec.name]
    assert spec.event().type == spec.name
    assert all(f.default is not MISSING or f.default_factory is not MISSING for f in payload)
    assert not hasattr(spec.event(), "__dict__")


def test_the_catalogue_follows_one_turn():
    assert list(CATALOG.families()) == [
        "turn", "plugin", "tool", "gateway", "session", "agent", "message", "model", "subagent",
        "misc", "trigger",
    ]  # fmt: skip
    names = list(CATALOG)
    for earlier, later in [
        ("resolve_session", "admit_message"),
        ("load_state", "build_prompt"),
        ("save_state", "render_outbound"),
        ("before_tool_call", "around_tool_call"),
        ("tool_execution_start", "tool_call"),
        ("tool_call", "tool_result"),
        ("tool_result", "tool_execution_end"),
        ("message:receive", "message:send"),
    ]:
        assert names.index(earlier) < names.index(later)


@each_row("spec", CATALOG.values(), ids=lambda spec: spec.name)
def test_whatever_carries_a_session_can_be_scoped_to_it(spec: Any):
    if spec.event:
        assert spec.scope == "ctx.session_id"
    elif "session_id" in spec.params:
        assert spec.scope == "session_id"
    else:
        assert spec.scope == ("call.session_id" if spec.name == "around_tool_call" else None)


@each_row("spec", CATALOG.values(), ids=lambda spec: spec.name)
def test_patterns_are_held_against_the_name_of_the_tool(spec: Any):
    shown = {f.name for f in fields(spec.event)} if spec.event else set(spec.params)
    if "tool_name" in shown:
        assert spec.match == "tool_name"


def test_the_two_questions_fail_closed_and_in_time():
    approval, authority = CATALOG["resolve_approval"], CATALOG["authorize_action"]
    assert (approval.timeout, authority.timeout) == (600, 30)
    assert approval.result == Literal["approve", "reject"]
    assert authority.result is bool
    assert [spec.name for spec in CATALOG.values() if spec.timeout] == [
        "authorize_action",
        "resolve_approval",
    ]


async def test_a_failing_approver_rejects_and_a_failing_authority_denies():
    hooks = Hooks()
    hooks.register("resolve_approval", lambda request: request["missing"])
    hooks.register("authorize_action", lambda action: action["missing"])
    assert await hooks.call("resolve_approval", request={}) == "reject"
    assert await hooks.call("authorize_action", action={}) is False


@each_row("name", [name for name, spec in CATALOG.items() if spec.event is None])
def test_every_declared_function_tells_whether_the_first_result_counts(name: str):
    spec = CATALOG[name]
    assert spec.function is not None
    assert spec.function.firstresult is spec.firstresult is (spec.reducer.name == "first")  # type: ignore[attr-defined]


def test_a_plugin_answers_as_text_or_as_a_stream_but_not_both():
    class Both:
        @hookimpl
        def run_model(self, prompt): ...

        @hookimpl
        def run_model_stream(self, prompt): ...

    with pytest.raises(RegistrationError, match="both"):
        Hooks().add(Both())


@pytest.mark.parametrize("answer", ["process", "drop", "follow_up", "steer", Admission("drop", "spam")])
async def test_a_message_is_admitted_by_a_word_or_with_a_reason(answer: Any):
    hooks = Hooks()
    hooks.register("admit_message", lambda message: answer)
    assert await hooks.call("admit_message", session_id="s", message={}, turn=None) == answer


async def test_another_word_of_admission_is_an_error():
    hooks = Hooks()
    hooks.register("admit_message", lambda message: "maybe")
    with pytest.raises(TypeError, match="'maybe'"):
        await hooks.call("admit_message", session_id="s", message={}, turn=None)
    with pytest.raises(ValueError, match="unknown action 'maybe'; use one of 'process', 'drop'"):
        Admission("maybe")  # type: ignore[arg-type]


async def test_a_rewrite_of_the_arguments_makes_a_new_call():
    hooks = Hooks()
    seen: list[ToolCall] = []
    hooks.register("before_tool_call", lambda arguments: {**arguments, "q": "y"})
    hooks.register("before_tool_call", lambda call: seen.append(call))
    call = ToolCall("1", "search", {"q": "x"}, "a", "s")
    final = await hooks.call(
        "before_tool_call",
        call=call, tool_name="search", arguments={"q": "x"}, agent_id="a", session_id="s",
    )  # fmt: skip
    assert final == {"q": "y"}
    assert seen == [ToolCall("1", "search", {"q": "y"}, "a", "s")]
    assert call.arguments == {"q": "x"}
    with pytest.raises(FrozenInstanceError):
        call.name = "other"  # type: ignore[misc]


def test_configuration_grows_from_the_lowest_priority_up():
    hooks = Hooks()
    hooks.register("onboard_config", lambda current_config: {"model": {"name": "a", "size": 1}})
    hooks.register("onboard_config", lambda current_config: {"model": {"size": len(current_config)}})
    found = hooks.call_sync("onboard_config", current_config={"home": "."})
    assert found == {"home": ".", "model": {"name": "a", "size": 2}}
