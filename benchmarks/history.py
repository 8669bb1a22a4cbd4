"""What a turn costs in a long conversation: Hookline beside a bare loop and other frameworks.

Run it from the checkout, with the peers of the `bench` extra installed:

    python benchmarks/history.py                     # some minutes
    python benchmarks/history.py --sizes 10 1000 --only hookline
    python benchmarks/history.py --check             # exit code 1 when a threshold is missed
    python benchmarks/history.py --json result.json

The turn is that of `turn.py` over HTTP: two model calls and a tool call, the answer streamed in ten
pieces. Before it the conversation has 10, 100, 500 or 1,000 messages: questions, tool calls, results
and answers. Everyone continues a live conversation and sends all of it with each model call.

A sample is a new conversation of that length, one turn that is not counted, and three that are; CPU
time of this process per turn. The model is a server on loopback, whose CPU is not counted. All
contenders run in one process, in random order in each round; trust the ratios.

Hookline keeps the conversation on a SQLite tape, durable at each step, and has an observer on each of
the ten hooks that fire most. The others keep it in memory. The loop is written by hand on aiohttp and
encodes the same messages.
"""

import argparse
import asyncio
import gc
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio, why_not
from frameworks import ANSWER, ARGUMENTS, QUESTION, RESULT, SILENCE, TOOL, add
from overhttp import ADD_SCHEMA, AIOHTTP, CLIENTS, KEY, stream_completion
from server import MODEL, serving
from turn import OURS, TEN, most_fired, observer

SIZES = (10, 100, 500, 1000)
TURNS = 3
LIMIT = 3.0
WORDS = "The quick brown fox jumps over the lazy dog while five wizards box with the sphinx. "

Begin = Callable[[list[dict[str, Any]]], Awaitable[Callable[[], Awaitable[str]]]]
"""Start a conversation with these messages, and return what makes a turn in it."""


def history(size: int) -> list[dict[str, Any]]:
    """A conversation of so many messages, in OpenAI's form."""
    found: list[dict[str, Any]] = []
    for number in itertools.count():
        call_id = f"call_h{number}"
        function = {"name": TOOL, "arguments": ARGUMENTS}
        calls = [{"id": call_id, "type": "function", "function": function}]
        found += [
            {"role": "user", "content": f"Question {number}. {WORDS}"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call_id, "content": RESULT},
            {"role": "assistant", "content": f"Answer {number}. {WORDS}"},
        ]
        if len(found) >= size:
            return found[: size - size % 4] + found[:1] * (size % 4)
    raise AssertionError


# --- The contenders ---


@asynccontextmanager
async def loop(url: str) -> AsyncGenerator[Begin]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def begin(messages: list[dict[str, Any]]) -> Callable[[], Awaitable[str]]:
            messages = [*messages]

            async def turn() -> str:
                messages.append({"role": "user", "content": QUESTION})
                while True:
                    text, calls = await stream_completion(session, url, messages, [ADD_SCHEMA])
                    answer = "".join(text)
                    said = {"role": "assistant", "content": answer}
                    messages.append({**said, "tool_calls": calls} if calls else said)
                    if not calls:
                        return answer
                    for call in calls:
                        result = await add(**json.loads(call["function"]["arguments"]))
                        answered = {"role": "tool", "tool_call_id": call["id"]}
                        messages.append({**answered, "content": str(result)})

            return turn

        yield begin


@asynccontextmanager
async def hookline(url: str) -> AsyncGenerator[Begin]:
    from hookline.hooks import hookimpl
    from hookline.models import Models
    from hookline.runtime.app import Hookline
    from hookline.tape import Tape
    from hookline.tools import Tool, tool

    class Adding:
        @hookimpl
        def register_tools(self) -> list[Tool]:
            return [tool(registry=None, side_effects="none")(add)]

    models = Models(settings={"openai": {"base_url": url, "api_key": KEY}})
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        app = Hookline(home=home, workspace=home, model=f"openai:{MODEL}", models=models)
        app.load_hooks(packages=False)
        app.hooks.add(Adding(), name="adding")
        numbers = itertools.count()

        async def begin(messages: list[dict[str, Any]]) -> Callable[[], Awaitable[str]]:
            session = f"bench:{next(numbers)}"
            tape = await Tape.open(app.store(), session)
            await tape.append_many(map(entry, messages))

            async def turn() -> str:
                result = await app.process({"content": QUESTION, "session_id": session})
                return result.model_output

            return turn

        def entry(message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            if message["role"] == "tool":
                return "tool_result", {**message, "name": TOOL}
            calls = [{"id": c["id"], **c["function"]} for c in message.get("tool_calls", ())]
            said = {"role": message["role"], "content": message["content"] or ""}
            return "message", {"message": {**said, "tool_calls": calls} if calls else said}

        async with app.running():
            turn: Any = await begin([])
            await turn()
            for name in (await most_fired(app.hooks, turn))[:TEN]:
                app.hooks.register(name, observer(app.hooks[name].spec.params))
            yield begin


@asynccontextmanager
async def langchain(url: str) -> AsyncGenerator[Begin]:
    from langchain.agents import create_agent
    from langchain_core.messages import convert_to_messages
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient

    async with DefaultAsyncHttpxClient() as client:
        options: dict[str, Any] = {"base_url": url, "api_key": KEY, "http_async_client": client}
        options["http_socket_options"] = ()
        agent: Any = create_agent(ChatOpenAI(model=MODEL, stream_usage=True, **options), tools=[add])

        async def begin(messages: list[dict[str, Any]]) -> Callable[[], Awaitable[str]]:
            kept: list[Any] = [*convert_to_messages(messages)]

            async def turn() -> str:
                asked = {"messages": [*kept, {"role": "user", "content": QUESTION}]}
                async for mode, given in agent.astream(asked, stream_mode=["messages", "values"]):
                    if mode == "values":
                        kept[:] = given["messages"]
                return str(kept[-1].content)

            return turn

        yield begin


@asynccontextmanager
async def pydantic_ai(url: str) -> AsyncGenerator[Begin]:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.run import AgentRunResultEvent

    def converted(message: dict[str, Any]) -> Any:
        if message["role"] == "user":
            return ModelRequest(parts=[UserPromptPart(message["content"])])
        if message["role"] == "tool":
            part = ToolReturnPart(TOOL, message["content"], tool_call_id=message["tool_call_id"])
            return ModelRequest(parts=[part])
        calls = [
            ToolCallPart(TOOL, call["function"]["arguments"], tool_call_id=call["id"])
            for call in message.get("tool_calls", ())
        ]
        return ModelResponse(parts=[*calls] or [TextPart(message["content"])])

    async with AsyncOpenAI(base_url=url, api_key=KEY) as client:
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
        agent: Any = Agent(model, tools=[add])

        async def begin(messages: list[dict[str, Any]]) -> Callable[[], Awaitable[str]]:
            kept = [*map(converted, messages)]

            async def turn() -> str:
                answer = ""
                async with agent.run_stream_events(QUESTION, message_history=kept) as events:
                    async for event in events:
                        if isinstance(event, AgentRunResultEvent):
                            answer = event.result.output
                            kept[:] = event.result.all_messages()
                return answer

            return turn

        yield begin


CONTENDERS: dict[str, tuple[Callable[[str], AbstractAsyncContextManager[Begin]], str]] = {
    AIOHTTP: (loop, ""),
    OURS: (hookline, "hookline"),
    "langchain": (langchain, "langchain-openai"),
    "pydantic-ai": (pydantic_ai, "pydantic-ai-slim"),
}


# --- Measuring ---


@dataclass
class Case:
    """One contender, open; seconds of CPU per turn, by the number of messages before it."""

    name: str
    runner: asyncio.Runner
    opened: AbstractAsyncContextManager[Begin]
    begin: Begin
    cpu: dict[int, list[float]] = field(default_factory=dict[int, list[float]])

    def sample(self, size: int) -> None:
        self.cpu.setdefault(size, []).append(self.runner.run(self._timed(history(size))))
        gc.collect()

    async def _timed(self, messages: list[dict[str, Any]]) -> float:
        turn = await self.begin(messages)
        answer = await turn()
        assert answer == ANSWER, f"{self.name} answered {answer!r}"
        began = process_time()
        for _ in range(TURNS):
            await turn()
        return (process_time() - began) / TURNS

    def close(self) -> None:
        self.runner.run(self.opened.__aexit__(None, None, None))  # pyright: ignore[reportArgumentType]
        self.runner.close()


def measure(names: list[str], sizes: list[int], rounds: int) -> tuple[list[Case], dict[str, str]]:
    cases: list[Case] = []
    unavailable: dict[str, str] = {}
    with serving() as server:
        for name in names:
            opener, distribution = CONTENDERS[name]
            runner = asyncio.Runner()
            try:
                manager = opener(server.url)
                begin = runner.run(manager.__aenter__())  # pyright: ignore[reportArgumentType]
                case = Case(name, runner, manager, begin)
                case.runner.run(case._timed(history(sizes[0])))  # pyright: ignore[reportPrivateUsage]
                cases.append(case)
            except Exception as error:
                unavailable[name] = why_not(error, distribution)
                runner.close()
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            for number in range(rounds):
                for size in sizes:
                    progress(f"round {number + 1} of {rounds}, {size} messages")
                    for case in random.sample(cases, len(cases)):
                        case.sample(size)
        finally:
            gc.enable()
            gc.unfreeze()
            for case in cases:
                case.close()
    progress("")
    return cases, unavailable


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="samples of each row (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[*SIZES], metavar="MESSAGES")
    parser.add_argument("--only", nargs="+", choices=[*CONTENDERS], default=[*CONTENDERS])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    os.environ.update(SILENCE)
    names = [name for name in CONTENDERS if name == AIOHTTP or name in options.only]
    about = environment([*(CONTENDERS[name][1] for name in names), *CLIENTS], options.rounds)
    cases, unavailable = measure(names, options.sizes, options.rounds)
    print_environment(about)
    print("CPU milliseconds of a turn, minimum / median, and the multiple of the loop's minimum.")
    print(f"{'messages before it':20}" + "".join(f"{size:>26,}" for size in options.sizes))
    best = {size: min(cases[0].cpu[size]) for size in options.sizes}
    for case in cases:
        print(f"{case.name:20}", end="")
        for size in options.sizes:
            low, middle = min(case.cpu[size]), statistics.median(case.cpu[size])
            print(f"{low * 1e3:11.2f} /{middle * 1e3:7.2f} {low / best[size]:5.1f}", end="")
        print()
    for name, why in unavailable.items():
        print(f"{name:20}{why}")
    ours = next((case for case in cases if case.name == OURS), None)
    outcomes = [
        Check(
            f"{size:,} messages, {which}: against the {AIOHTTP}", ratio(of(ours), of(cases[0])), LIMIT
        )
        for size in options.sizes
        for which, of in (
            ("minimum", lambda case, size=size: case and min(case.cpu[size])),
            ("median", lambda case, size=size: case and statistics.median(case.cpu[size])),
        )
    ]
    if options.json:
        rows = [{"contender": case.name, "cpu_seconds": case.cpu} for case in cases]
        checks = [check.as_json() for check in outcomes]
        found = {**about, "rows": rows, "unavailable": unavailable, "checks": checks}
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
