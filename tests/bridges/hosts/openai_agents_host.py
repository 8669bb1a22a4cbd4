"""Agents of the OpenAI Agents SDK, for the conformance suite."""

import asyncio
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, WebSearchTool, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from hookline.bridges.openai_agents import hookline
from hookline.bridges.testing import Host, HostRun

set_tracing_disabled(True)


def run(asked: HostRun) -> str:
    """Run an agent."""
    client = AsyncOpenAI(base_url=asked.url, api_key="test", max_retries=0)
    model = OpenAIChatCompletionsModel("gpt-5", client)
    tools: list[Any] = [function_tool(tool) for tool in asked.tools]
    if asked.provider_tool:
        tools.append(WebSearchTool())
    agent = Agent(name="tester", model=model, tools=tools)
    if asked.subagent:
        helper = Agent(name="helper", model=model, tools=tools)
        agent = Agent(name="tester", model=model, handoffs=[helper])
    runner = hookline(asked.hooks, **asked.options)
    if asked.stream:
        return asyncio.run(shown(runner, agent, asked.prompt))
    if asked.cancel is not None:
        running = runner.run(agent, asked.prompt)
        return asyncio.run(asked.limited(running)).final_output
    return runner.run_sync(agent, asked.prompt).final_output


async def shown(runner: Any, agent: Any, prompt: str) -> str:
    """Every text that a stream shows, and the answer."""
    result = runner.run_streamed(agent, prompt)
    texts = [str(event) async for event in result.stream_events()]
    return "\n".join([*texts, str(result.final_output)])


HOST = Host("OpenAI Agents", run, ["openai-agents"], ("transfer_to_helper", {}))
