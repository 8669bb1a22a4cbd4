"""Agents of Google's Agent Development Kit, for the conformance suite."""

import asyncio
import os

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, google_search
from google.genai import types

from hookline.bridges.google_adk import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    return asyncio.run(asked.limited(answer(asked)))


async def answer(asked: HostRun) -> str:
    """The last text of an agent, or every text that its stream shows."""
    model = LiteLlm(model="openai/gpt-5", api_base=asked.url, api_key="test", num_retries=0)
    agent = LlmAgent(name="helper", model=model, tools=list(asked.tools))
    if asked.provider_tool:  # the kit gives its search to models of Google alone
        os.environ.update(GOOGLE_API_KEY="test", GOOGLE_GEMINI_BASE_URL=asked.url)
        agent = LlmAgent(name="helper", model="gemini-2.5-flash", tools=[google_search])
    if asked.subagent:
        agent = LlmAgent(name="tester", model=model, tools=[AgentTool(agent)])
    runner = InMemoryRunner(agent=agent, plugins=[hookline(asked.hooks, **asked.options)])
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=asked.prompt)])
    config = RunConfig(streaming_mode=StreamingMode.SSE if asked.stream else StreamingMode.NONE)
    texts: list[str] = []
    async for event in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=config
    ):
        parts = event.content.parts or [] if event.content else []
        texts += ["".join(part.text for part in parts if part.text)]
    return "\n".join(texts) if asked.stream else next((t for t in reversed(texts) if t), "")


HOST = Host("Google ADK", run, ["google-adk"], ("helper", {"request": "Remove it."}))
