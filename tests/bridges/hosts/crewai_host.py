"""Crews of CrewAI, for the conformance suite."""

import asyncio
import os
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from hookline.bridges.crewai import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run a crew of one agent, or of two."""
    tools = [tool(each) for each in asked.tools]
    agents = [member("tester", asked, [] if asked.subagent else tools)]
    if asked.subagent:
        agents.append(member("helper", asked, tools))
    task = Task(description=asked.prompt, expected_output="an answer", agent=agents[0])
    crew = Crew(agents=agents, tasks=[task], stream=asked.stream)
    guard = hookline(asked.hooks, **asked.options)
    if asked.stream:
        output = guard.kickoff(crew)
        texts = [chunk.content for chunk in output]
        return "\n".join([*texts, output.result.raw])
    if asked.cancel is not None:
        return asyncio.run(asked.limited(guard.akickoff(crew))).raw
    return guard.kickoff(crew).raw


def member(role: str, asked: HostRun, tools: list[Any]) -> Agent:
    """An agent of the crew."""
    wait = None if asked.cancel is None else 4  # for the thread that asks the model
    llm = LLM(model="openai/gpt-4o", base_url=asked.url, api_key="test", max_retries=0, timeout=wait)
    return Agent(
        role=role,
        goal="do the task",
        backstory="a tester",
        llm=llm,
        tools=tools,
        allow_delegation=asked.subagent and not tools,
    )


HOST = Host(
    "CrewAI",
    run,
    ["crewai"],
    (
        "delegate_work_to_coworker",
        {"task": "Remove it.", "context": "It is old.", "coworker": "helper"},
    ),
    {"a tool of the provider is reported": "CrewAI has no tools that a provider runs"},
)
