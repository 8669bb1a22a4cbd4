"""Agents of Google's Agent Development Kit, for the conformance suite."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from hookline.bridges.google_adk import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    return asyncio.run(answer(asked))


async def answer(asked: HostRun) -> str:
    """The last text of an agent."""
    model = LiteLlm(model="openai/gpt-5", api_base=asked.url, api_key="test", num_retries=0)
    agent = LlmAgent(name="tester", model=model, tools=list(asked.tools))
    runner = InMemoryRunner(agent=agent, plugins=[hookline(asked.hooks, **asked.options)])
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=asked.prompt)])
    text = ""
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        parts = event.content.parts or [] if event.content else []
        text = "".join(part.text or "" for part in parts) or text
    return text


HOST = Host("Google ADK", run, ["google-adk"])
