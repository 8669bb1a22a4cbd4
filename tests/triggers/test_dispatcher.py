"""The dispatcher: each trigger on its own."""

import logging

import pytest

from hookline import hookimpl
from hookline.ext.triggers import (
    DispatchResult,
    TriggerError,
    TriggerHookSpec,
    collect_trigger_routes,
    collect_trigger_routes_async,
    dispatch_trigger_lifecycle,
    dispatch_trigger_lifecycle_async,
)
from hookline.hookspecs import Hooks

LIFE = ["trigger_init", "trigger_start", "trigger_stop"]


class Good:
    def __init__(self):
        self.seen = []

    @hookimpl
    def trigger_init(self, deps):
        self.seen.append(("trigger_init", deps))

    @hookimpl
    async def trigger_start(self, deps):
        self.seen.append(("trigger_start", deps))

    @hookimpl
    def trigger_stop(self, deps):
        self.seen.append(("trigger_stop", deps))

    @hookimpl
    def trigger_routes(self):
        return ["/good"]


class Bad:
    @hookimpl
    def trigger_init(self, deps):
        raise ValueError("no init")

    @hookimpl
    async def trigger_start(self, deps):
        raise ValueError("no start")

    @hookimpl
    def trigger_stop(self, deps):
        raise ValueError("no stop")

    @hookimpl
    def trigger_routes(self):
        raise ValueError("no routes")


@pytest.fixture
def hooks():
    made = Hooks()
    made.add(Bad(), name="bad")
    made.add(Good(), name="good")
    return made


@pytest.mark.parametrize("hook", LIFE)
def test_one_that_fails_never_stops_another(hooks, hook):
    deps = {"emit": print}
    bad, good = dispatch_trigger_lifecycle(hooks.pm, hook, deps)
    assert (bad.plugin_name, bad.success, bad.result) == ("bad", False, None)
    assert str(bad.error) == f"no {hook.removeprefix('trigger_')}"
    assert (good.plugin_name, good.success, good.error) == ("good", True, None)
    assert hooks.pm.get_plugin("good").seen == [(hook, deps)]


@pytest.mark.parametrize("hook", LIFE)
async def test_servers_await_the_same(hooks, hook):
    bad, good = await dispatch_trigger_lifecycle_async(hooks.pm, hook, {})
    assert isinstance(good, DispatchResult)
    assert (bad.success, good.success) == (False, True)


async def test_in_a_running_loop_the_plain_dispatcher_does_what_needs_no_waiting(hooks, caplog):
    bad, good = dispatch_trigger_lifecycle(hooks.pm, "trigger_init", {})
    assert (bad.success, good.success) == (False, True)
    _, waits = dispatch_trigger_lifecycle(hooks.pm, "trigger_start", {})
    assert not waits.success
    assert "async_not_supported" in str(waits.error)


async def test_routes_come_as_one_result_for_each_plugin(hooks):
    for results in (collect_trigger_routes(hooks.pm), await collect_trigger_routes_async(hooks.pm)):
        bad, good = results
        assert (bad.success, good.result) == (False, ["/good"])


def test_the_hooks_themselves_may_be_passed(hooks):
    assert len(collect_trigger_routes(hooks)) == 2


@pytest.mark.parametrize(
    ("hook", "says"),
    [("trigger_strat", "did you mean 'trigger_start'"), ("trigger_routes", "collect_")],
)
def test_another_hook_is_refused(hooks, hook, says):
    with pytest.raises(TriggerError, match=says):
        dispatch_trigger_lifecycle(hooks.pm, hook, {})


def test_the_specification_is_a_reference_without_markers():
    for hook in [*LIFE, "trigger_routes"]:
        function = getattr(TriggerHookSpec, hook)
        assert isinstance(vars(TriggerHookSpec)[hook], staticmethod)
        assert not [name for name in vars(function) if name.startswith("hookline")]
    assert TriggerHookSpec.trigger_routes() == []


def test_the_example_of_the_catalogue(hooks, caplog):
    """Results are told apart by `success`, and name plugin and error."""
    log = logging.getLogger("seed")
    for result in dispatch_trigger_lifecycle(hooks.pm, "trigger_init", deps={}):
        if not result.success:
            log.error("trigger %s failed init: %s", result.plugin_name, result.error)
    assert caplog.messages == ["trigger bad failed init: no init"]
