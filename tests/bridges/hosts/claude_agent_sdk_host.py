"""Claude Code through the Claude Agent SDK, for the conformance suite."""

import asyncio
import inspect
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from hookline.bridges.claude_agent_sdk import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run a query with tools of this process."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:  # the process may still write
        return asyncio.run(asked.limited(answer(asked, home)))


async def answer(asked: HostRun, home: str) -> str:
    """The result of a query."""
    guard = hookline(asked.hooks, **asked.options)
    found = [m async for m in guard.query(prompt=asked.prompt, options=settings(asked, home))]
    result = found[-1]
    if not isinstance(result, ResultMessage) or result.is_error:
        raise RuntimeError(str(result))
    return "\n".join(map(str, found)) if asked.stream else result.result or ""


def settings(asked: HostRun, home: str) -> ClaudeAgentOptions:
    """Options that keep Claude Code to its tools, a directory and the scripted model."""
    server = create_sdk_mcp_server("tools", tools=[mcp_tool(each) for each in asked.tools])
    env = {
        "ANTHROPIC_BASE_URL": asked.url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "test",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "HOME": home,
        "CLAUDE_CONFIG_DIR": home,
    }
    helper = AgentDefinition("Does tasks.", "Do the task.", tools=["mcp__tools__shell"])
    return ClaudeAgentOptions(
        mcp_servers={"tools": server},
        tools=["Agent"] if asked.subagent else [],
        agents={"helper": helper} if asked.subagent else None,
        allowed_tools=["mcp__tools__*", "Agent"],
        include_partial_messages=asked.stream,
        model="claude-sonnet-4-5",
        system_prompt="You are a tester.",
        cwd=home,
        setting_sources=[],
        env=env,
    )


def mcp_tool(function: Callable[..., Any]) -> Any:
    """A function as a tool of an MCP server in this process."""
    schema = dict.fromkeys(inspect.signature(function).parameters, str)

    @tool(function.__name__, inspect.getdoc(function) or "", schema)
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(function(**arguments))}]}

    return call


HOST = Host(
    "Claude Agent SDK",
    run,
    ["claude-agent-sdk"],
    ("Agent", {"description": "Remove it", "prompt": "Remove it.", "subagent_type": "helper"}),
    {"a tool of the provider is reported": "the gates hold for WebSearch as well"},
)
