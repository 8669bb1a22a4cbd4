"""A gate that cannot read a handler's answer says no: the handler may have meant to block."""

from dataclasses import dataclass

import pytest

from hookline import Hooks
from hookline.events import ToolCallEvent, ToolCallEventResult, ToolResultEventResult
from hookline.hooks import EventResult, Ruling
from hookline.hookspecs import CATALOG

from ..tables import each_row

GATES = [spec for spec in CATALOG.values() if spec.reducer.name == "gate"]


@dataclass
class Foreign(EventResult):
    block: bool = True


WRONG = [
    Foreign(),
    ToolResultEventResult(block=True),
    True,
    False,
    "deny",
    {"block": True},
    1,
    object(),
]


def unreadable(spec):
    return [value for value in WRONG if not spec.accepts(value)]


@each_row("is_async", [False, True])
@each_row("spec", GATES, ids=lambda spec: spec.name)
async def test_every_gate_denies_on_an_answer_of_another_type(spec, is_async):
    for value in unreadable(spec):
        hooks = Hooks()

        async def answer(event, value=value):
            return value

        hooks.register(spec.name, answer if is_async else lambda event, value=value: value)
        verdict = await hooks.call(spec.event())
        assert verdict.denied, value
        assert f"returned {type(value).__name__}" in verdict.reason


@pytest.mark.parametrize("traced", [False, True])
async def test_the_other_handlers_still_run_and_the_answer_is_in_the_list(traced):
    hooks = Hooks()
    ran = []
    if traced:
        hooks.trace(lambda dispatch: None)
    hooks.register("tool_call", lambda event: "deny")
    hooks.register("tool_call", lambda event: ran.append(1))
    listed = await hooks.emit(ToolCallEvent(tool_name="shell"))
    assert ran == [1]
    assert listed[0].verdict().decision.name == "DENY"


async def test_a_result_that_cannot_say_what_it_means_denies():
    class Broken(ToolCallEventResult):
        def verdict(self):
            raise RuntimeError("out of order")

    class Mute(ToolCallEventResult):
        def verdict(self):
            return "allow"

    for result, why in ((Broken(), "out of order"), (Mute(), "must return a Ruling")):
        hooks = Hooks()
        hooks.register("tool_call", lambda event, result=result: result)
        verdict = await hooks.call(ToolCallEvent(tool_name="shell"))
        assert verdict.denied
        assert why in verdict.reason


async def test_an_exception_in_a_plain_handler_stays_isolated():
    hooks = Hooks()

    def fails(event):
        raise RuntimeError("bug")

    hooks.register("tool_call", fails)
    assert (await hooks.call(ToolCallEvent(tool_name="shell"))).allowed


async def test_a_subclass_of_the_result_is_understood():
    class Own(ToolCallEventResult):
        def verdict(self):
            return Ruling(reason="fine")

    hooks = Hooks()
    hooks.register("tool_call", lambda event: Own())
    assert (await hooks.call(ToolCallEvent(tool_name="shell"))).allowed
