"""Strands agents, for the conformance suite."""

import asyncio
from typing import Any

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from hookline.bridges.strands import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    arguments = {"base_url": asked.url, "api_key": "test", "max_retries": 0}
    model = OpenAIModel(client_args=arguments, model_id="gpt-5")
    guard = hookline(asked.hooks, **asked.options)

    def made(tools: list[Any]) -> Any:
        return Agent(model=model, tools=tools, hooks=[guard], callback_handler=None)

    agent = made([tool(each) for each in asked.tools])
    if asked.subagent:
        agent = made([helper(agent)])
    if asked.stream:
        return asyncio.run(shown(agent, asked.prompt))
    if asked.cancel is not None:
        return str(asyncio.run(asked.limited(agent.invoke_async(asked.prompt))))
    return str(agent(asked.prompt))


def helper(agent: Any) -> Any:
    """An agent as a tool."""

    @tool
    def helper(task: str) -> str:
        """Do a task."""
        return str(agent(task))

    return helper


async def shown(agent: Any, prompt: str) -> str:
    """Every text that a stream shows."""
    return "\n".join([str(event) async for event in agent.stream_async(prompt)])


HOST = Host(
    "Strands",
    run,
    ["strands-agents"],
    ("helper", {"task": "Remove it."}),
    {"a tool of the provider is reported": "Strands has no tools that a provider runs"},
)
