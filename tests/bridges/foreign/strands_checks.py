"""Hook providers of Strands, mounted in Hookline; run by `scripts/test-bridges`."""

from pathlib import Path
from typing import Any

import pytest
from strands.hooks import (
    AfterToolCallEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
    MessageAddedEvent,
)
from strands.plugins import Plugin, hook
from strands.session.file_session_manager import FileSessionManager

from hookline import Hooks
from hookline.bridges import BridgeError
from hookline.bridges.foreign import from_strands
from hookline.bridges.testing import Bench
from tests.bridges.hosts.plain_host import HOST


class Provider(HookProvider):
    def __init__(self, **handlers: Any) -> None:
        self.handlers = handlers

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        kinds = {"before": BeforeToolCallEvent, "after": AfterToolCallEvent}
        kinds |= {"model": BeforeModelCallEvent, "message": MessageAddedEvent}
        for name, handler in self.handlers.items():
            registry.add_callback(kinds[name], handler)


def bench(provider: Any) -> Bench:
    hooks = Hooks(on_gate_error="deny")
    hooks.add(from_strands(provider))
    return Bench(HOST, hooks)


def test_a_provider_cancels_a_call():
    def cancel(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = "not today"

    bench(Provider(before=cancel)).run().denied("not today")


def test_a_provider_changes_the_input_and_the_result():
    def change(event: BeforeToolCallEvent) -> None:
        event.tool_use["input"]["command"] += " -v"

    def redact(event: AfterToolCallEvent) -> None:
        text = event.result["content"][0]["text"].replace("s3cr3t", "[redacted]")
        event.result["content"] = [{"text": text}]

    outcome = bench(Provider(before=change, after=redact)).run()
    assert outcome.ran == ["rm -r tmp -v"]
    assert "s3cr3t" not in outcome.server.said


def test_a_provider_stops_a_model_call():
    def stop(event: BeforeModelCallEvent) -> None:
        event.cancel = "too expensive"

    outcome = bench(Provider(model=stop)).run()
    outcome.blocked()
    assert outcome.server.requests == []


def test_a_plugin_with_hooks_of_tools_is_mounted():
    class NoShell(Plugin):
        name = "no-shell"

        @hook
        def before(self, event: BeforeToolCallEvent) -> None:
            event.cancel_tool = "not today"

    bench(NoShell()).run().denied("not today")


def test_a_provider_that_uses_the_agent_denies():
    def uses(event: BeforeToolCallEvent) -> None:
        event.agent.state.get("x")

    assert bench(Provider(before=uses)).run().ran == []


def test_a_provider_that_needs_an_agent_is_refused_with_the_reason(tmp_path: Path):
    for provider in (FileSessionManager("s", str(tmp_path)), Provider(message=print)):
        with pytest.raises(BridgeError, match=r"cannot be mounted: it handles .*need an agent"):
            from_strands(provider)
