"""`hooks.on.<name>` and the results that events build are what the catalogue declares."""

import dataclasses
import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, events
from hookline.hooks import Decision
from hookline.hookspecs import CATALOG

GATES = [spec for spec in CATALOG.values() if spec.event and spec.reducer.name == "gate"]
ROOT = Path(__file__).parents[2]
NAMES = {name.replace(":", "_"): name for name in CATALOG}


def test_the_types_of_the_decorators_are_made_from_the_declarations():
    made = runpy.run_path(str(ROOT / "scripts/declared_hooks.py"))["types_module"]()
    kept = (ROOT / "src/hookline/declared_hooks.py").read_text()
    assert kept == made, "declared_hooks.py is stale: python scripts/declared_hooks.py"
    assert dir(Hooks().on) == sorted(NAMES)


def test_a_decorator_attaches_with_and_without_options():
    hooks, seen = Hooks(), []

    @hooks.on.tool_call
    def bare(event: events.ToolCallEvent) -> None:
        seen.append("bare")

    @hooks.on.tool_call(when="shell")
    def some(event: events.ToolCallEvent) -> None:
        seen.append("some")

    hooks.call_sync(events.ToolCallEvent(tool_name="shell"))
    hooks.call_sync(events.ToolCallEvent(tool_name="grep"))
    assert seen == ["bare", "some", "bare"]
    bare.off()
    assert hooks.handler_count("tool_call") == 1


def test_names_with_a_colon_and_hooks_that_are_declared_later_are_attributes():
    hooks = Hooks()
    hooks.on.message_receive(lambda event: None)
    assert hooks.handler_count("message:receive") == 1


@pytest.mark.parametrize("wrong", ["tool_cal", "toolcall", "on_tool_call", "message_recieve"])
def test_an_event_that_does_not_exist_is_named_with_the_nearest(wrong):
    with pytest.raises(AttributeError, match=rf"no event or hook '{wrong}'; did you mean '"):
        getattr(Hooks().on, wrong)
    with pytest.raises(ValueError, match=rf"unknown hook '{wrong}'; did you mean '"):
        Hooks().on(wrong)(print)


# --- the results that events build ------------------------------------------------------------------


def built(spec: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(spec.event(), name)(*args, **kwargs)


@pytest.mark.parametrize("spec", GATES, ids=lambda spec: spec.name)
def test_every_gate_can_deny_with_a_reason(spec):
    result = built(spec, "deny", "because")
    assert type(result) is spec.result
    assert (result.verdict().decision, result.verdict().reason) == (Decision.DENY, "because")
    assert built(spec, "deny").verdict().decision is Decision.DENY


def test_only_the_events_that_support_it_can_ask_and_be_handled():
    can = {
        name: {s.name for s in CATALOG.values() if s.event and hasattr(s.event, name)}
        for name in ("deny", "ask", "handled")
    }
    assert can["deny"] == {spec.name for spec in GATES}
    assert can["ask"] == {s.name for s in GATES if "ask" in s.result.__dataclass_fields__}
    assert can["handled"] == {"input", "user_bash"}


@pytest.mark.parametrize(
    "spec",
    [s for s in CATALOG.values() if s.event and hasattr(s.event, "replace")],
    ids=lambda spec: spec.name,
)
def test_replace_sets_the_fields_that_it_is_given_and_no_others(spec):
    parameters = list(inspect.signature(spec.event.replace).parameters)[1:]
    for name in parameters:
        result = built(spec, "replace", **{name: "new"})
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        assert fields.pop(name) == "new"
        unset = {f.name: f.default for f in dataclasses.fields(result) if f.name != name}
        assert {k: v for k, v in fields.items() if k != "action"} == {
            k: v for k, v in unset.items() if k != "action"
        }


async def test_built_results_decide_as_those_made_by_hand():
    hooks = Hooks()
    hooks.on.tool_call(lambda event: event.ask("sure?"))
    hooks.on.input(lambda event: event.handled("noon"))
    hooks.on.output(lambda event: event.replace("better"))
    asked = await hooks.call(events.ToolCallEvent())
    assert (asked.asked, asked.reason) == (True, "sure?")
    handled = await hooks.call(events.InputEvent("time?"))
    assert (handled.denied, handled.reason) == (True, "noon")
    assert (await hooks.call(events.OutputEvent("x"))).event.content == "better"
