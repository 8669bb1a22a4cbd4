"""Agents of the OpenAI Agents SDK, for the conformance suite."""

from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from hookline.bridges.openai_agents import hookline
from hookline.bridges.testing import Host, HostRun

set_tracing_disabled(True)


def run(asked: HostRun) -> str:
    """Run an agent."""
    client = AsyncOpenAI(base_url=asked.url, api_key="test", max_retries=0)
    tools = [function_tool(tool) for tool in asked.tools]
    agent = Agent(name="tester", model=OpenAIChatCompletionsModel("gpt-5", client), tools=[*tools])
    return hookline(asked.hooks, **asked.options).run_sync(agent, asked.prompt).final_output


HOST = Host(
    "OpenAI Agents",
    run,
    ["openai-agents"],
    {"a tool that fails is reported": "the SDK turns a tool's exception into text before hooks see it"},
)
