"""Strands agents, for the conformance suite."""

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from hookline.bridges.strands import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    arguments = {"base_url": asked.url, "api_key": "test", "max_retries": 0}
    model = OpenAIModel(client_args=arguments, model_id="gpt-5")
    guard = hookline(asked.hooks, **asked.options)
    tools = [tool(each) for each in asked.tools]
    return str(Agent(model=model, tools=tools, hooks=[guard], callback_handler=None)(asked.prompt))


HOST = Host("Strands", run, ["strands-agents"])
