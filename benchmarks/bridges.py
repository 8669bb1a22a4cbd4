"""What a bridge with five handlers adds to a turn of its host, in CPU time.

    .bridges/langchain/bin/python benchmarks/bridges.py langchain [TURNS]

A turn is two model calls and a tool call in between, against a scripted model in another process.
Turns with and without the bridge alternate, so that both meet the same machine.
"""

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

from hookline import Hooks

Turn = Callable[[], Any]
SERVER = """
from hookline.bridges.testing import ScriptedServer
from itertools import cycle
import sys
class Answers(list):
    def __len__(self): return 2
    def pop(self, place): return next(turns)
turns = cycle([[("shell", {"command": "ls"})], "Done."])
with ScriptedServer([]) as server:
    server.answers = Answers()
    server.requests = type("Few", (list,), {"append": lambda self, each: None})()
    print(server.url, flush=True)
    sys.stdin.read()
"""


def shell(command: str) -> str:
    """Run a command.

    Args:
        command: The command line.

    """
    return "files"


def five() -> Hooks:
    """Five handlers: of the prompt, the answer, a call, its result and a model call."""
    hooks = Hooks()
    hooks.on.input(lambda event: None)
    hooks.on.tool_call(lambda event: None)
    hooks.on.tool_result(lambda event: None)
    hooks.on.model_call(lambda event: None)
    hooks.on.output(lambda event: None)
    return hooks


def langchain(url: str, guarded: bool) -> Turn:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    from hookline.bridges.langchain import hookline

    model = ChatOpenAI(model="gpt-5", base_url=url, api_key="test", max_retries=0)
    agent: Any = create_agent(model, [shell], middleware=[hookline(five())] if guarded else [])
    return lambda: agent.ainvoke({"messages": [{"role": "user", "content": "Tidy up."}]})


def pydantic_ai(url: str, guarded: bool) -> Turn:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from hookline.bridges.pydantic_ai import hookline

    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=url, api_key="test"))
    agent = Agent(model, tools=[shell], capabilities=[hookline(five())] if guarded else [])
    return lambda: agent.run("Tidy up.")


def openai_agents(url: str, guarded: bool) -> Turn:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    from hookline.bridges.openai_agents import hookline

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("gpt-5", AsyncOpenAI(base_url=url, api_key="test"))
    agent = Agent(name="tester", model=model, tools=[function_tool(shell)])
    runner: Any = hookline(five()) if guarded else Runner
    return lambda: runner.run(agent, "Tidy up.")


def strands(url: str, guarded: bool) -> Turn:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    from hookline.bridges.strands import hookline

    model = OpenAIModel(client_args={"base_url": url, "api_key": "test"}, model_id="gpt-5")
    guards = [hookline(five())] if guarded else []
    agent = Agent(model=model, tools=[tool(shell)], hooks=guards, callback_handler=None)

    async def turn() -> Any:
        agent.messages.clear()
        return await agent.invoke_async("Tidy up.")

    return turn


def google_adk(url: str, guarded: bool) -> Turn:
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from hookline.bridges.google_adk import hookline

    model = LiteLlm(model="openai/gpt-5", api_base=url, api_key="test", num_retries=0)
    agent = LlmAgent(name="tester", model=model, tools=[shell])
    runner = InMemoryRunner(agent=agent, plugins=[hookline(five())] if guarded else [])

    async def turn() -> Any:
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="Tidy up.")])
        events = runner.run_async(user_id="u", session_id=session.id, new_message=message)
        return [event async for event in events]

    return turn


def agent_framework(url: str, guarded: bool) -> Turn:
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    from hookline.bridges.agent_framework import hookline

    client = OpenAIChatCompletionClient(model="gpt-5", base_url=url, api_key="test")
    agent = Agent(client, tools=[shell], middleware=hookline(five()) if guarded else [])
    return lambda: agent.run("Tidy up.")


def crewai(url: str, guarded: bool) -> Turn:
    import os

    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    from hookline.bridges.crewai import hookline

    llm = LLM(model="openai/gpt-4o", base_url=url, api_key="test")
    tools = [tool(shell)]
    agent = Agent(role="tester", goal="tidy", backstory="a tester", llm=llm, tools=tools, cache=False)
    task = Task(description="Tidy up.", expected_output="an answer", agent=agent)
    crew = Crew(agents=[agent], tasks=[task])
    guard = hookline(five())
    return (lambda: guard.akickoff(crew)) if guarded else crew.akickoff


async def measure(host: str, url: str, turns: int) -> tuple[float, float]:
    """The CPU time of a turn without and with the bridge, in milliseconds."""
    plain, guarded = (globals()[host](url, wanted) for wanted in (False, True))
    spent: dict[Turn, list[float]] = {plain: [], guarded: []}
    for number in range(turns + 5):
        for turn in (plain, guarded) if number % 2 else (guarded, plain):
            gc.collect()
            start = process_time()
            await turn()
            if number >= 5:
                spent[turn].append((process_time() - start) * 1000)
    return median(spent[plain]), median(spent[guarded])


def main(host: str, turns: int) -> None:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        plain, guarded = asyncio.run(measure(host, server.stdout.readline().strip(), turns))
        server.stdin.close()
    more = (guarded - plain) / plain
    print(f"{host}: {plain:.2f} ms alone, {guarded:.2f} ms with the bridge: {more:+.1%}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60)
