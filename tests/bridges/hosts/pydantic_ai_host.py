"""pydantic-ai agents, for the conformance suite."""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.openai import OpenAIProvider

from hookline.bridges.pydantic_ai import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=asked.url, api_key="test"))
    guard = hookline(asked.hooks, **asked.options)
    search = [NativeTool(WebSearchTool())] if asked.provider_tool else []
    agent = Agent(model, tools=list(asked.tools), capabilities=[guard, *search])
    if asked.subagent:
        agent = Agent(model, tools=[helper(agent)], capabilities=[guard])
    if asked.stream:
        return asyncio.run(shown(agent, asked.prompt))
    if asked.cancel is not None:
        return asyncio.run(asked.limited(agent.run(asked.prompt))).output
    return agent.run_sync(asked.prompt).output


def helper(agent: Any) -> Any:
    """An agent as a tool."""

    async def helper(task: str) -> str:
        """Do a task."""
        return (await agent.run(task)).output

    return helper


async def shown(agent: Any, prompt: str) -> str:
    """Every text that a stream shows, and the answer."""
    async with agent.run_stream(prompt) as result:
        texts = [text async for text in result.stream_text()]
        return "\n".join([*texts, await result.get_output()])


HOST = Host("pydantic-ai", run, ["pydantic-ai-slim"], ("helper", {"task": "Remove it."}))
