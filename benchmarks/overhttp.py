"""The same turn over loopback HTTP: a bare loop, and other agent frameworks with their OpenAI clients.

Everybody asks `server.py`. Each contender makes its client once and keeps its connections; the client
is the one that its framework brings or recommends, given where the framework takes one.
"""

import itertools
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

from frameworks import QUESTION, SILENCE, TOOL, Contender, Turn, add
from server import MODEL, Server

KEY = "x"
CONCURRENCIES = (1, 32)
HTTP = "HTTP"
AIOHTTP = "aiohttp loop"
CLIENTS = ("aiohttp", "google-adk", "langchain", "openai")
"""What decides the costs beside the contenders themselves; their versions are told."""

Open = Callable[[str], AbstractAsyncContextManager[Turn]]

ADD_SCHEMA = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": "Add two whole numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


def transport(concurrency: int) -> str:
    return HTTP if concurrency == 1 else f"{HTTP} x {concurrency}"


async def stream_completion(
    session: Any, url: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> tuple[list[str], list[Any]]:
    """One model call on aiohttp: the pieces of the text, and the tool calls."""
    body = {
        "model": MODEL,
        "messages": messages,
        "tools": tools,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    text: list[str] = []
    calls: list[Any] = []
    headers = {"Authorization": f"Bearer {KEY}"}
    async with session.post(f"{url}/chat/completions", json=body, headers=headers) as response:
        response.raise_for_status()
        async for line in response.content:
            if not line.startswith(b"data: ") or line == b"data: [DONE]\n":
                continue
            for choice in json.loads(line[6:])["choices"]:
                delta = choice["delta"]
                if said := delta.get("content"):
                    text.append(said)
                for part in delta.get("tool_calls") or ():
                    if "id" in part:
                        calls.append(part)
                    else:
                        called = calls[part["index"]]["function"]
                        called["arguments"] += part["function"]["arguments"]
    return text, calls


@asynccontextmanager
async def aiohttp_loop(url: str) -> AsyncGenerator[Turn]:
    """What a turn over HTTP cannot do without, written by hand on aiohttp."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def turn() -> tuple[str, int]:
            messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
            while True:
                text, calls = await stream_completion(session, url, messages, [ADD_SCHEMA])
                answer = "".join(text)
                if not calls:
                    return answer, len(text)
                messages.append({"role": "assistant", "content": answer, "tool_calls": calls})
                for call in calls:
                    result = await add(**json.loads(call["function"]["arguments"]))
                    messages.append(
                        {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
                    )

        yield turn


@asynccontextmanager
async def strands(url: str) -> AsyncGenerator[Turn]:
    from openai import AsyncOpenAI
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    async with AsyncOpenAI(base_url=url, api_key=KEY) as client:
        model = OpenAIModel(client=client, model_id=MODEL)
        free: list[Any] = []  # an agent is one conversation: as many as there are turns at once

        def new() -> Any:
            return Agent(model=model, tools=[tool(add)], callback_handler=None)

        async def turn() -> tuple[str, int]:
            agent = free.pop() if free else new()
            agent.messages.clear()
            answer, pieces = "", 0
            async for event in agent.stream_async(QUESTION):
                if "data" in event:
                    pieces += 1
                elif "result" in event:
                    answer = event["result"].message["content"][0]["text"]
            free.append(agent)
            return answer, pieces

        yield turn


@asynccontextmanager
async def openai_agents(url: str) -> AsyncGenerator[Turn]:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key=KEY) as client:
        model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
        agent = Agent(name="agent", model=model, tools=[function_tool(add)])
        config = RunConfig(tracing_disabled=True)

        async def turn() -> tuple[str, int]:
            result = Runner.run_streamed(agent, QUESTION, run_config=config)
            pieces = 0
            async for event in result.stream_events():
                if event.type == "raw_response_event":
                    pieces += event.data.type == "response.output_text.delta"
            return result.final_output, pieces

        yield turn


@asynccontextmanager
async def langchain(url: str) -> AsyncGenerator[Turn]:
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessageChunk
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient

    # A client of its own: the one that it would share among all models stays with its first event loop.
    async with DefaultAsyncHttpxClient() as client:
        options: dict[str, Any] = {"base_url": url, "api_key": KEY, "http_async_client": client}
        options["http_socket_options"] = ()  # of the client that is not used, which would warn
        agent: Any = create_agent(ChatOpenAI(model=MODEL, stream_usage=True, **options), tools=[add])

        async def turn() -> tuple[str, int]:
            asked = {"messages": [{"role": "user", "content": QUESTION}]}
            text: list[str] = []
            async for chunk, _ in agent.astream(asked, stream_mode="messages"):
                if isinstance(chunk, AIMessageChunk) and chunk.content:
                    text.append(str(chunk.content))
            return "".join(text), len(text)

        yield turn


@asynccontextmanager
async def pydantic_ai(url: str) -> AsyncGenerator[Turn]:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
    )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.run import AgentRunResultEvent

    async with AsyncOpenAI(base_url=url, api_key=KEY) as client:
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
        agent: Any = Agent(model, tools=[add])

        async def turn() -> tuple[str, int]:
            answer, pieces = "", 0
            async with agent.run_stream_events(QUESTION) as events:
                async for event in events:
                    if isinstance(event, PartDeltaEvent):
                        pieces += isinstance(event.delta, TextPartDelta)
                    elif isinstance(event, PartStartEvent):
                        pieces += isinstance(event.part, TextPart) and bool(event.part.content)
                    elif isinstance(event, AgentRunResultEvent):
                        answer = event.result.output
            return answer, pieces

        yield turn


@asynccontextmanager
async def google_adk(url: str) -> AsyncGenerator[Turn]:
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    model = LiteLlm(model=f"openai/{MODEL}", api_base=url, api_key=KEY)
    agent = LlmAgent(name="agent", model=model, tools=[add])
    sessions = InMemorySessionService()
    runner = Runner(app_name="bench", agent=agent, session_service=sessions)
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    numbers = itertools.count()

    async def turn() -> tuple[str, int]:
        session = f"bench-{next(numbers)}"
        whose = {"app_name": "bench", "user_id": "user", "session_id": session}
        await sessions.create_session(**whose)
        asked = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        answer, pieces = "", 0
        async for event in runner.run_async(
            user_id="user", session_id=session, new_message=asked, run_config=config
        ):
            said = "".join(part.text or "" for part in (event.content and event.content.parts) or ())
            if event.partial:
                pieces += bool(said)
            elif said:
                answer = said
        await sessions.delete_session(**whose)  # kept, they would grow from turn to turn
        return answer, pieces

    yield turn


def row(
    name: str, opener: Open, distribution: str, server: Server, n: int, note: str = ""
) -> Contender:
    return Contender(
        name,
        partial(opener, server.url),
        distribution,
        transport(n),
        note,
        server=server,
        concurrency=n,
    )


def http_loop(server: Server, concurrency: int) -> Contender:
    note = "written by hand, keeps nothing"
    return row(AIOHTTP, aiohttp_loop, "", server, concurrency, note)


def http_peers(server: Server, concurrency: int) -> list[Contender]:
    os.environ.update(SILENCE)
    found = [
        ("strands", strands, "strands-agents", "OpenAIModel, its client injected"),
        ("openai-agents", openai_agents, "openai-agents", "OpenAIChatCompletionsModel"),
        ("langchain", langchain, "langchain-openai", "ChatOpenAI"),
        ("pydantic-ai", pydantic_ai, "pydantic-ai-slim", "OpenAIChatModel"),
        ("google-adk", google_adk, "litellm", "through LiteLlm"),
    ]
    return [row(name, opener, of, server, concurrency, note) for name, opener, of, note in found]
