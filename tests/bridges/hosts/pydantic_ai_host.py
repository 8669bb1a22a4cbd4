"""pydantic-ai agents, for the conformance suite."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from hookline.bridges.pydantic_ai import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=asked.url, api_key="test"))
    guard = hookline(asked.hooks, **asked.options)
    return Agent(model, tools=list(asked.tools), capabilities=[guard]).run_sync(asked.prompt).output


HOST = Host("pydantic-ai", run, ["pydantic-ai-slim"])
