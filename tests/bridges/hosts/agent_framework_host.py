"""Agents of the Microsoft Agent Framework, for the conformance suite."""

import asyncio
from typing import Any

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from hookline.bridges.agent_framework import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    return asyncio.run(asked.limited(answer(asked)))


async def answer(asked: HostRun) -> str:
    """The answer of an agent, or everything that its stream shows."""
    client = OpenAIChatCompletionClient(model="gpt-5", base_url=asked.url, api_key="test")
    guards = hookline(asked.hooks, **asked.options)
    tools: list[Any] = list(asked.tools)
    if asked.provider_tool:
        tools.append({"type": "web_search"})
    agent: Any = Agent(client, name="helper", tools=tools, middleware=guards)
    if asked.subagent:
        agent = Agent(client, tools=[agent.as_tool()], middleware=guards)
    if not asked.stream:
        return (await agent.run(asked.prompt)).text
    stream = agent.run(asked.prompt, stream=True)
    texts = [update.text async for update in stream]
    return "\n".join([*texts, (await stream.get_final_response()).text])


HOST = Host("Agent Framework", run, ["agent-framework-core"], ("helper", {"task": "Remove it."}))
