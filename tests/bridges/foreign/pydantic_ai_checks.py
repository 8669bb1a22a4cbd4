"""Capabilities of pydantic-ai, mounted in Hookline; run by `scripts/test-bridges`."""

from typing import Any

import pytest
from pydantic_ai import ModelRetry
from pydantic_ai import capabilities as shipped
from pydantic_ai.capabilities import Hooks as CapabilityHooks
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelRequest, UserPromptPart

from hookline import Hooks
from hookline.bridges import BridgeError
from hookline.bridges.foreign import from_pydantic_ai
from hookline.bridges.testing import Bench
from tests.bridges.hosts.plain_host import HOST


def bench(capability: Any) -> Bench:
    hooks = Hooks(on_gate_error="deny")
    hooks.add(from_pydantic_ai(capability))
    return Bench(HOST, hooks)


def test_hooks_of_tools_change_arguments_and_results():
    found = CapabilityHooks()

    @found.on.before_tool_execute
    async def before(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return {"command": args["command"] + " -v"}

    @found.on.after_tool_execute
    async def after(ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        return str(result).replace("s3cr3t", "[redacted]")

    outcome = bench(found).run()
    assert outcome.ran == ["rm -r tmp -v"]
    assert "s3cr3t" not in outcome.server.said


def test_a_hook_that_asks_for_a_retry_denies_the_call():
    found = CapabilityHooks()

    @found.on.before_tool_execute
    async def before(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        raise ModelRetry("not today")

    bench(found).run().denied("not today")


def test_process_history_changes_what_the_model_sees():
    def in_paris(messages: list[Any]) -> list[Any]:
        said = messages[-1].parts[0].content.replace("Rome", "Paris")
        return [*messages[:-1], ModelRequest([UserPromptPart(said)])]

    said = bench(ProcessHistory(in_paris)).run(["Done."]).server.said
    assert "Paris" in said
    assert "Rome" not in said


def test_raise_content_filter_error_lets_answers_through():
    bench(shipped.RaiseContentFilterError()).run(["Done."]).answered("Done.")


@pytest.mark.parametrize(
    "capability",
    [
        shipped.Thinking(),
        shipped.WebSearch(),
        shipped.ReinjectSystemPrompt(),
        shipped.Instrumentation(),
    ],
    ids=lambda capability: type(capability).__name__,
)
def test_a_capability_that_needs_an_agent_is_refused_with_the_reason(capability: Any):
    with pytest.raises(BridgeError, match=r"cannot be mounted: it implements .*needs an agent"):
        from_pydantic_ai(capability)
