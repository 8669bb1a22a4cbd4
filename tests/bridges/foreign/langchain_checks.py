"""Middleware that LangChain ships, mounted in Hookline; run by `scripts/test-bridges`."""

from typing import Any

import pytest
from langchain.agents import middleware as shipped
from langchain.agents.middleware import PIIMiddleware, ToolErrorMiddleware, ToolRetryMiddleware
from langchain.agents.middleware.types import AgentMiddleware

from hookline import Hooks
from hookline.bridges import BridgeError
from hookline.bridges.foreign import from_langchain
from hookline.bridges.testing import Bench
from tests.bridges.hosts.plain_host import HOST

MAIL = "ada@lovelace.org"


def bench(middleware: Any) -> Bench:
    hooks = Hooks(on_gate_error="deny")
    hooks.add(from_langchain(middleware))
    return Bench(HOST, hooks)


def test_pii_middleware_redacts_prompts_and_answers():
    found = bench(PIIMiddleware("email", strategy="redact", apply_to_output=True))
    outcome = found.run([f"I wrote to {MAIL}."], prompt=f"Write to {MAIL}.")
    assert MAIL not in outcome.server.said
    assert "[REDACTED_EMAIL]" in outcome.server.said
    outcome.answered("I wrote to [REDACTED_EMAIL].")


def test_pii_middleware_redacts_results_of_tools():
    found = bench(PIIMiddleware("token", detector="s3cr3t", apply_to_tool_results=True))
    assert "s3cr3t" not in found.run().server.said


def test_pii_middleware_that_blocks_withholds_the_request():
    outcome = bench(PIIMiddleware("email", strategy="block")).run(prompt=f"Write to {MAIL}.")
    outcome.blocked()
    assert outcome.server.requests == []


def test_tool_retry_middleware_runs_a_tool_again():
    found = bench(ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False))
    assert found.run([[("shell", {"command": "fail"})], "Done."]).ran == ["fail"] * 3


def test_tool_error_middleware_words_the_error():
    found = bench(ToolErrorMiddleware(on_error=lambda error, request: "Something went wrong."))
    said = found.run([[("shell", {"command": "fail"})], "Done."]).server.said
    assert "Something went wrong." in said
    assert "the disk is full" not in said


class ChangesArguments(AgentMiddleware):
    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(
            request.override(tool_call={**request.tool_call, "args": {"command": "x"}})
        )


def test_a_middleware_that_changes_accepted_arguments_runs_nothing():
    assert bench(ChangesArguments()).run().ran == []


REFUSED = {
    "ContextEditingMiddleware": "wraps calls of a LangChain model",
    "FilesystemFileSearchMiddleware": "brings tools",
    "ModelCallLimitMiddleware": "keeps its own state",
    "ModelRetryMiddleware": "wraps calls of a LangChain model",
    "ShellToolMiddleware": "prepares the state",
    "TodoListMiddleware": "wraps calls of a LangChain model",
    "ToolCallLimitMiddleware": "keeps its own state",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_middleware_that_needs_a_graph_is_refused_with_the_reason(name: str):
    made = {
        "FilesystemFileSearchMiddleware": {"root_path": "."},
        "ModelCallLimitMiddleware": {"run_limit": 1},
        "ToolCallLimitMiddleware": {"run_limit": 1},
    }
    with pytest.raises(BridgeError, match=rf"{name} cannot be mounted: .*{REFUSED[name]}"):
        from_langchain(getattr(shipped, name)(**made.get(name, {})))
