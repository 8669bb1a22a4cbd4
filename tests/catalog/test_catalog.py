"""The catalogue says exactly what the design says."""

from dataclasses import MISSING, FrozenInstanceError, fields
from typing import Any, Literal

import pytest

from hookline import Hooks, hookimpl
from hookline.events import ToolCall
from hookline.hooks import RegistrationError
from hookline.hookspecs import CATALOG, Admission

NEW, OLD = "NEWEST", "OLDEST"
RAISE, SKIP, DENY, CAPTURE = "RAISE", "SKIP", "DENY", "CAPTURE"

FUNCTIONS = {
    "turn": {
        "resolve_session": ("message", "first", NEW, RAISE),
        "load_state": ("message session_id", "merge", NEW, RAISE),
        "build_prompt": ("message session_id state", "first", NEW, RAISE),
        "run_model_stream": ("prompt session_id state", "first", NEW, RAISE),
        "run_model": ("prompt session_id state", "first", NEW, RAISE),
        "save_state": ("session_id state message model_output", "collect", NEW, RAISE),
        "render_outbound": ("message session_id state model_output", "flatten", NEW, RAISE),
        "dispatch_outbound": ("message", "collect", NEW, RAISE),
        "on_error": ("stage error message agent_id", "notify", OLD, SKIP),
        "system_prompt": ("prompt state", "join", NEW, RAISE),
        "provide_tape_store": ("", "first", NEW, RAISE),
        "build_tape_context": ("", "first", NEW, RAISE),
        "provide_channels": ("message_handler", "flatten(unique=name)", NEW, RAISE),
        "register_cli_commands": ("app", "outcomes", NEW, CAPTURE),
        "onboard_config": ("current_config", "merge(deep)", OLD, RAISE),
        "admit_message": ("session_id message turn", "first", NEW, RAISE),
    },
    "plugin": {
        "hookline_startup": ("pm", "outcomes", OLD, CAPTURE),
        "hookline_shutdown": ("pm", "outcomes", OLD, CAPTURE),
        "register_tools": ("", "outcomes", OLD, CAPTURE),
        "register_skills": ("", "outcomes", OLD, CAPTURE),
        "register_stores": ("", "outcomes", OLD, CAPTURE),
        "register_packs": ("", "outcomes", OLD, CAPTURE),
        "register_commands": ("", "outcomes", OLD, CAPTURE),
        "resolve_approval": ("request", "first", OLD, DENY),
        "authorize_action": ("action", "first", OLD, DENY),
    },
    "tool": {
        "before_tool_call": (
            "call tool_name arguments agent_id session_id", "chain(arguments)", OLD, SKIP),
        "after_tool_call": (
            "call tool_name arguments result is_error agent_id session_id", "chain(result)", OLD, SKIP),
        "tool_result_persist": ("tool_name result agent_id session_id", "chain(result)", OLD, SKIP),
        "around_tool_call": ("call call_next", "around", OLD, RAISE),
        "around_model_call": ("request call_next", "around", OLD, RAISE),
        "bootstrap_files": ("agent_id", "collect", OLD, SKIP),
        "on_turn_start": ("agent_id messages", "notify", OLD, SKIP),
        "on_turn_end": ("agent_id response", "notify", OLD, SKIP),
        "on_loop_warning": ("tool_name pattern count agent_id session_id", "notify", OLD, SKIP),
    },
    "trigger": {
        "trigger_init": ("deps", "outcomes", OLD, CAPTURE),
        "trigger_start": ("deps", "outcomes", OLD, CAPTURE),
        "trigger_stop": ("deps", "outcomes", OLD, CAPTURE),
        "trigger_routes": ("", "outcomes", OLD, CAPTURE),
    },
}  # fmt: skip

EVENTS = {  # all OLDEST, SKIP
    "session": {
        "session_before_start": ("session_id agent_id tools reason", "gate"),
        "session_start": ("reason previous_session_file", "collect"),
        "session_before_switch": ("reason target_session_file", "gate"),
        "session_before_fork": ("entry_id position", "gate"),
        "session_before_compact": ("preparation branch_entries custom_instructions", "gate"),
        "session_compact": ("compaction_entry from_extension", "notify"),
        "session_before_tree": ("preparation", "gate"),
        "session_tree": ("new_leaf_id old_leaf_id summary_entry", "notify"),
        "session_shutdown": ("reason target_session_file", "notify"),
    },
    "agent": {
        "input": ("text source", "gate"),
        "before_agent_start": ("prompt system_prompt tools", "patch"),
        "context": ("messages", "patch"),
        "agent_start": ("", "notify"),
        "agent_end": ("messages", "notify"),
        "agent_error": ("error", "notify"),
        "agent_stop": ("messages response", "gate"),
        "output": ("content", "gate"),
        "save_point": ("", "notify"),
        "settled": ("", "notify"),
    },
    "message": {
        "turn_start": ("turn_index timestamp", "notify"),
        "turn_end": ("turn_index message tool_results", "notify"),
        "message_start": ("message", "notify"),
        "message_update": ("message", "notify"),
        "message_end": ("message", "notify"),
    },
    "tool": {
        "tool_execution_start": ("tool_call", "notify"),
        "tool_execution_update": ("partial_tool_result", "notify"),
        "tool_execution_end": ("tool_result", "notify"),
        "tool_execution_failure": ("tool_name tool_call_id input error", "notify"),
        "tool_call": ("tool_call_id tool_name input", "gate"),
        "tool_result": ("tool_call_id tool_name input content is_error ran", "gate"),
    },
    "model": {
        "model_call": ("request_id model messages tools", "gate"),
        "model_result": ("request_id model content tool_calls finish_reason usage", "gate"),
        "model_select": ("model previous_model source", "notify"),
        "thinking_level_select": ("level previous_level", "notify"),
    },
    "subagent": {
        "subagent_start": ("task_id label task", "notify"),
        "subagent_end": ("task_id label status result", "notify"),
    },
    "gateway": {
        "gateway:startup": ("channel_ids", "notify"),
        "gateway:stop": ("channel_ids", "notify"),
        "channel:connect": ("channel_id", "notify"),
        "channel:disconnect": ("channel_id", "notify"),
        "message:receive": ("channel_id chat_id user_id text parts", "gate"),
        "message:send": ("channel_id chat_id input_text response_text is_voice", "collect"),
        "message:cancel": ("channel_id chat_id", "notify"),
        "gateway:error": ("channel_id error", "notify"),
    },
    "misc": {
        "notification": ("kind text", "notify"),
        "user_bash": ("command exclude_from_context cwd", "gate"),
        "resources_discover": ("cwd reason", "collect"),
        "network_request": ("host port scheme kind command tool_call_id", "gate"),
        "retry_start": ("attempt max_retries", "notify"),
        "retry_end": ("attempt success error", "notify"),
    },
}  # fmt: skip

SYNC = {
    "system_prompt", "provide_tape_store", "build_tape_context", "provide_channels",
    "register_cli_commands", "onboard_config", "register_tools", "register_skills",
    "register_stores", "register_packs", "register_commands",
}  # fmt: skip

EVENT_SPECS = [spec for spec in CATALOG.values() if spec.event]


def test_the_catalogue_holds_exactly_the_declared_hooks():
    declared = {name for table in (FUNCTIONS, EVENTS) for family in table.values() for name in family}
    assert set(CATALOG) == declared
    assert len(CATALOG) == 88


@pytest.mark.parametrize(("family", "hooks"), FUNCTIONS.items())
def test_function_shaped_hooks_are_declared_as_designed(family: str, hooks: dict[str, Any]):
    for name, (params, reducer, order, errors) in hooks.items():
        spec = CATALOG[name]
        assert spec.event is None, name
        found = (" ".join(spec.params), str(spec.reducer), spec.order.name, spec.errors.name)
        assert (name, spec.family, *found) == (name, family, params, reducer, order, errors)
        assert spec.sync is (name in SYNC), name


@pytest.mark.parametrize(("family", "events"), EVENTS.items())
def test_events_are_declared_as_designed(family: str, events: dict[str, Any]):
    for name, (payload, reducer) in events.items():
        spec = CATALOG[name]
        assert spec.event is not None, name
        found = " ".join(f.name for f in fields(spec.event) if f.name != "type")
        assert (name, spec.family, found, str(spec.reducer)) == (name, family, payload, reducer)
        assert (spec.order.name, spec.errors.name, spec.params) == (OLD, SKIP, ("event", "ctx"))


@pytest.mark.parametrize("spec", CATALOG.values(), ids=lambda spec: spec.name)
def test_every_hook_says_in_a_line_what_it_is_and_when_it_fires(spec: Any):
    assert spec.doc.endswith(".")
    assert len(spec.doc) <= 100
    assert spec.fires
    assert not spec.fires.endswith(".")


@pytest.mark.parametrize("spec", EVENT_SPECS, ids=lambda spec: spec.name)
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


@pytest.mark.parametrize("spec", CATALOG.values(), ids=lambda spec: spec.name)
def test_whatever_carries_a_session_can_be_scoped_to_it(spec: Any):
    if spec.event:
        assert spec.scope == "ctx.session_id"
    elif "session_id" in spec.params:
        assert spec.scope == "session_id"
    else:
        assert spec.scope == ("call.session_id" if spec.name == "around_tool_call" else None)


@pytest.mark.parametrize("spec", CATALOG.values(), ids=lambda spec: spec.name)
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


@pytest.mark.parametrize("name", [n for family in FUNCTIONS.values() for n in family])
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
