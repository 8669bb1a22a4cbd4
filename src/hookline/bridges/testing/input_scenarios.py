"""Scenarios of what a bridge refuses: broken payloads, hooks and versions that it cannot carry."""

from __future__ import annotations

import logging
from typing import Any
from unittest.mock import patch

from hookline.errors import BridgeError

from .bench import Bench, scenario


@scenario
def arguments_that_are_not_an_object_do_not_run(bench: Bench) -> None:
    """A payload that cannot be understood is not let through."""
    seen: list[Any] = []
    bench.hooks.on.tool_call(lambda event: seen.append(event.input))
    for broken in ('{"command": "rm', '["rm -r tmp"]', '"rm -r tmp"', "null"):
        outcome = bench.run([[("shell", broken)], "Done."])
        assert outcome.ran == [], (broken, outcome.ran)


@scenario
def a_tool_that_the_host_does_not_have_does_not_run(bench: Bench) -> None:
    """A name that the model made up reaches no tool."""
    assert bench.run([[("nope", {"command": "rm -r tmp"})], "Done."]).ran == []


def refusal(bench: Bench) -> str:
    """Why the bridge is not made."""
    try:
        bench.run()
    except BridgeError as refused:
        return str(refused)
    raise AssertionError("the bridge was made")


@scenario
def a_hook_that_no_bridge_reports_is_refused(bench: Bench) -> None:
    """A handler that would never run is an error, unless it is accepted."""
    bench.hooks.on.user_bash(lambda event: event.deny("no"))
    assert "user_bash" in refusal(bench)
    bench.run(partial=True).answered("Done.")


@scenario
def a_version_that_was_not_tested_is_refused(bench: Bench) -> None:
    """Another version of the host is an error, unless it is accepted."""
    if not bench.host.packages:
        return
    with patch("hookline.bridges.limits.version", return_value="99.0"):
        assert "99.0 is installed" in refusal(bench)
        bench.run(any_version=True).answered("Done.")


@scenario
def a_tool_of_the_provider_is_reported(bench: Bench) -> None:
    """A tool that runs on other servers, where no gate can hold, is named in the log."""
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    log = logging.getLogger("hookline.bridges")
    log.addHandler(handler)
    try:
        bench.run(["Done."], provider_tool=True)
    finally:
        log.removeHandler(handler)
    assert any(each.startswith("bridge.unreachable tool=") for each in seen), seen
