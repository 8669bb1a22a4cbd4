"""Agents of the Microsoft Agent Framework, for the conformance suite."""

import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from hookline.bridges.agent_framework import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    client = OpenAIChatCompletionClient(model="gpt-5", base_url=asked.url, api_key="test")
    guards = hookline(asked.hooks, **asked.options)
    agent = Agent(client, tools=list(asked.tools), middleware=guards)
    return asyncio.run(agent.run(asked.prompt)).text


HOST = Host("Agent Framework", run, ["agent-framework-core"])
