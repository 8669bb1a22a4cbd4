"""What a streamed turn costs with each provider: `Agent` beside the official clients and their users.

    pip install -e '.[bench]' anthropic google-genai
    python benchmarks/providers.py
    python benchmarks/providers.py --check --rounds 30

The turn, the server and the way of measuring are those of `turn.py` over HTTP: two model calls, one
tool call, ten pieces. Each provider has three rows: Hookline's `Agent` with its own client, a loop by
hand around the provider's official client, and pydantic-ai, which uses that client too.
"""

import argparse
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from common import Check, environment, print_environment, print_outcomes, ratio
from frameworks import QUESTION, SILENCE, TOOL, Contender, Turn, add
from overhttp import ADD_SCHEMA, KEY, pydantic_ai, row
from server import MODEL, Server, serving
from turn import BY, measure, print_rows

OURS = "hookline"
MODELS = {"openai": MODEL, "anthropic": "claude-x", "google": "gemini-3-x"}
SCHEMA: Any = ADD_SCHEMA["function"]
OF_CLIENT = {"openai": 1 / 3, "anthropic": 1 / 3, "google": 1 / 2}
OF_FRAMEWORK = 1 / 4
"""How much of the CPU of a loop around the official client, or of a framework with it, we may take."""


def agent_opener(provider: str) -> Any:
    @asynccontextmanager
    async def agent(url: str) -> AsyncGenerator[Turn]:
        from hookline import Agent

        place = url if provider == "openai" else url.removesuffix("/v1")
        variables = {"openai": "OPENAI", "anthropic": "ANTHROPIC", "google": "GOOGLE_GEMINI"}
        os.environ[f"{variables[provider]}_BASE_URL"] = place
        os.environ[f"{variables[provider].partition('_')[0]}_API_KEY"] = KEY
        made = Agent(f"{provider}:{MODELS[provider]}", tools=[add])

        async def turn() -> tuple[str, int]:
            async with made.stream(QUESTION) as stream:
                text = [event.data["delta"] async for event in stream if event.kind == "text"]
            return "".join(text), len(text)

        yield turn
        await made.close()

    return agent


@asynccontextmanager
async def anthropic_client(url: str) -> AsyncGenerator[Turn]:
    from anthropic import AsyncAnthropic

    tool: Any = {
        "name": TOOL,
        "description": SCHEMA["description"],
        "input_schema": SCHEMA["parameters"],
    }
    async with AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=KEY) as client:

        async def turn() -> tuple[str, int]:
            messages: list[Any] = [{"role": "user", "content": QUESTION}]
            while True:
                async with client.messages.stream(
                    model=MODELS["anthropic"], max_tokens=8192, messages=messages, tools=[tool]
                ) as stream:
                    text = [piece async for piece in stream.text_stream]
                    final = await stream.get_final_message()
                calls = [block for block in final.content if block.type == "tool_use"]
                if not calls:
                    return "".join(text), len(text)
                messages.append({"role": "assistant", "content": final.content})
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": str(await add(**call.input)),  # type: ignore[arg-type]
                    }
                    for call in calls
                ]
                messages.append({"role": "user", "content": results})

        yield turn


@asynccontextmanager
async def google_client(url: str) -> AsyncGenerator[Turn]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url.removesuffix("/v1"))
    client = genai.Client(api_key=KEY, http_options=options, vertexai=False)
    about = types.FunctionDeclaration(
        name=TOOL,
        description=SCHEMA["description"],
        parameters_json_schema=SCHEMA["parameters"],
    )
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[about])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )

    async def turn() -> tuple[str, int]:
        contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        while True:
            text: list[str] = []
            calls: list[Any] = []
            models = client.aio.models
            async for chunk in await models.generate_content_stream(
                model=MODELS["google"], contents=contents, config=config
            ):
                for part in chunk.candidates[0].content.parts:
                    if part.function_call:
                        calls.append(part)
                    elif part.text:
                        text.append(part.text)
            if not calls:
                return "".join(text), len(text)
            contents.append(types.Content(role="model", parts=calls))
            answers = [
                types.Part.from_function_response(
                    name=TOOL, response={"result": str(await add(**part.function_call.args))}
                )
                for part in calls
            ]
            contents.append(types.Content(role="user", parts=answers))

    yield turn
    await client.aio.aclose()


@asynccontextmanager
async def openai_client(url: str) -> AsyncGenerator[Turn]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key=KEY) as client:

        async def turn() -> tuple[str, int]:
            messages: list[Any] = [{"role": "user", "content": QUESTION}]
            while True:
                async with client.chat.completions.stream(
                    model=MODEL, messages=messages, tools=[ADD_SCHEMA]
                ) as stream:
                    deltas = [each.delta async for each in stream if each.type == "content.delta"]
                    final = await stream.get_final_completion()
                text = [delta for delta in deltas if delta]
                message = final.choices[0].message
                if not message.tool_calls:
                    return "".join(text), len(text)
                messages.append(message)
                for call in message.tool_calls:
                    result = await add(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})

        yield turn


def pydantic_opener(provider: str) -> Any:
    @asynccontextmanager
    async def opener(url: str) -> AsyncGenerator[Turn]:
        from pydantic_ai import Agent
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
        from pydantic_ai.run import AgentRunResultEvent

        place, model = url.removesuffix("/v1"), MODELS[provider]
        made: Any
        if provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            made = AnthropicModel(model, provider=AnthropicProvider(base_url=place, api_key=KEY))
        else:
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            made = GoogleModel(model, provider=GoogleProvider(base_url=place, api_key=KEY))
        agent: Any = Agent(made, tools=[add])

        async def turn() -> tuple[str, int]:
            answer, pieces = "", 0
            async with agent.run_stream_events(QUESTION) as events:
                async for event in events:
                    if isinstance(event, PartDeltaEvent):
                        pieces += isinstance(event.delta, TextPartDelta) and bool(
                            event.delta.content_delta
                        )
                    elif isinstance(event, PartStartEvent):
                        pieces += isinstance(event.part, TextPart) and bool(event.part.content)
                    elif isinstance(event, AgentRunResultEvent):
                        answer = event.result.output
            return answer, pieces

        yield turn

    return opener


def contenders(provider: str, server: Server) -> list[Contender]:
    clients: dict[str, tuple[Any, str]] = {
        "openai": (openai_client, "openai"),
        "anthropic": (anthropic_client, "anthropic"),
        "google": (google_client, "google-genai"),
    }
    opener, package = clients[provider]
    peer = pydantic_ai if provider == "openai" else pydantic_opener(provider)
    return [
        row(OURS, agent_opener(provider), "hookline", server, 1, f"Agent with {provider}:"),
        row(f"{package} client", opener, package, server, 1, "a loop by hand around it"),
        row("pydantic-ai", peer, "pydantic-ai-slim", server, 1, "with that client"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, help="samples of each row (%(default)s)")
    parser.add_argument("--only", choices=tuple(MODELS), nargs="+", default=tuple(MODELS))
    parser.add_argument("--check", action="store_true", help="exit code 1 when a threshold is missed")
    options = parser.parse_args()
    os.environ.update(SILENCE)
    packages = ["hookline", "aiohttp", "openai", "anthropic", "google-genai", "pydantic-ai-slim"]
    print_environment(environment(packages, options.rounds))
    outcomes: list[Check] = []
    with serving() as server:
        for provider in options.only:
            print(f"\n{provider}: 2 model calls, 1 tool call, the answer in 10 pieces. Milliseconds.")
            group = contenders(provider, server)
            rows, unavailable = measure(group, options.rounds)
            print_rows(group, rows, unavailable)
            ours = rows.get(OURS, {})
            for peer, limit in zip(group[1:], (OF_CLIENT[provider], OF_FRAMEWORK), strict=True):
                for word, key in BY:
                    measured = ratio(ours.get(key), rows.get(peer.name, {}).get(key))
                    what = f"{provider}: CPU of a turn, by that of {peer.name} ({word})"
                    outcomes.append(Check(what, measured, limit))
    passed = print_outcomes(outcomes)
    return 0 if passed or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
