"""What the trace costs: the same scripted turn with tracing off, at "decisions" and at "full".

    python benchmarks/trace.py
    python benchmarks/trace.py --check               # exit code 1 when a threshold is missed
    python benchmarks/trace.py --json result.json

The turn: a question, a tool call, the answer in ten pieces; the tape is a SQLite file, the builtin
plugin is loaded with its tools. A plugin of the kind that people write is attached: it looks at the
context before each model call, rewrites the arguments of the tool call, judges it, looks at its result,
and watches the turn's end. With `--observers`, observers too, on the ten hooks that fire most often.

How it measures. One process, one app for each level. In a round every level makes some turns in a new
random order, several times, so that a slow moment of the machine falls on all alike; the sum of a level
is compared with that of "off" in the same round, and the median of these ratios counts. A round is long
enough for several of SQLite's checkpoints, each of which costs as much as two turns. The apps are made
anew many times, in random order: where in memory one happens to be can make some per cent of
difference. CPU is what the process used in all its threads. What waits is kept after every 60 turns,
which is more often than in production, and its cost is counted. The garbage collector is off while the
clock runs.
"""

import argparse
import asyncio
import gc
import itertools
import json
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import process_time
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress
from rows import make_handler

from hookline.observe.trace.plugin import Tracing

LEVELS = ("off", "decisions", "full")
LIMITS = {"decisions": 3.0, "full": 15.0}
TURNS = 60  # after which what waits is kept
KEEPINGS = 4  # in a round
APPS = 15  # of each level, one after the other
WARM_UP = 60

Turn = Callable[[], Awaitable[None]]
Flush = Callable[[], Awaitable[None]]


@asynccontextmanager
async def opened(level: str, observers: int) -> AsyncGenerator[tuple[Turn, Flush]]:
    from hookline.events import ToolCallEvent, ToolCallEventResult, ToolResultEvent
    from hookline.hooks import hookimpl
    from hookline.models import Models, ScriptedModel
    from hookline.models.script import Call
    from hookline.models.script import Turn as Said
    from hookline.policy import Policy
    from hookline.runtime.app import Hookline
    from hookline.tools import Tool, tool

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    class House:
        """The kind of plugin that people write."""

        @hookimpl
        def register_tools(self) -> list[Tool]:
            return [tool(registry=None, side_effects="none")(add)]

        @hookimpl
        def context(self, event: Any) -> None:
            """Look at the messages."""

        @hookimpl
        def before_tool_call(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return {**arguments, "b": 3}

        @hookimpl
        def tool_call(self, event: ToolCallEvent) -> ToolCallEventResult | None:
            return ToolCallEventResult(block=True) if event.tool_name == "shell" else None

        @hookimpl
        def tool_result(self, event: ToolResultEvent) -> None:
            """Look at the result."""

        @hookimpl
        def agent_end(self, event: Any) -> None:
            """Look at the end."""

    said = Said(tool_calls=[Call("add", {"a": 1, "b": 2}, "call_1")]), Said("word " * 10, chunk=5)
    models = Models()
    models.add(ScriptedModel(said, repeat=True, record=False))
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        app = Hookline(
            home=home,
            workspace=home,
            model="scripted",
            models=models,
            policy=Policy(default="allow"),
            overrides={"trace": {"level": level}},
        )
        app.load_hooks(packages=False)
        app.hooks.add(House(), name="house")
        numbers = itertools.count()

        async def turn() -> None:
            session = f"bench:{next(numbers)}"
            result = await app.process({"content": "go", "session_id": session})
            assert result.model_output.startswith("word")

        async with app.running():
            await turn()
            for name in await most_fired(app.hooks, turn, observers):
                parameters = app.hooks[name].spec.params
                app.hooks.register(name, make_handler(0, "sync", ", ".join(parameters), "return None"))

            async def flush() -> None:
                if Tracing.of(app).tracer is not None:
                    await Tracing.of(app).tracer.flush()

            yield turn, flush
            if level != "off":
                trace = await (await Tracing.of(app).store()).read()
                assert trace.records, "nothing was traced"


async def most_fired(hooks: Any, turn: Turn, count: int) -> list[str]:
    fired: dict[str, int] = {}
    off = hooks.trace(lambda dispatch: fired.update({dispatch.hook: fired.get(dispatch.hook, 0) + 1}))
    await turn()
    off()
    fired.pop("output", None)  # a handler there would hold the answer back
    names = sorted(fired, key=lambda name: -fired[name])
    return [name for name in names if not name.startswith("around_")][:count]


async def spent(turn: Turn, flush: Flush) -> float:
    """The CPU of some turns, and of keeping what they left."""
    gc.collect()
    gc.disable()
    started = process_time()
    for _ in range(TURNS):
        await turn()
    await flush()
    used = process_time() - started
    gc.enable()
    return used


async def measure(rounds: int, observers: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {level: [] for level in LEVELS}
    numbers = range(rounds)
    for apps in range(min(APPS, rounds)):
        await measure_apps(numbers[apps::APPS], observers, samples)
    progress("")
    return samples


async def measure_apps(numbers: range, observers: int, samples: dict[str, list[float]]) -> None:
    async with AsyncExitStack() as stack:
        turns: dict[str, tuple[Turn, Flush]] = {}
        for level in random.sample(LEVELS, len(LEVELS)):
            turns[level] = await stack.enter_async_context(opened(level, observers))
        for turn, flush in turns.values():
            for _ in range(WARM_UP):
                await turn()
            await flush()
        for _ in numbers:
            progress(f"{len(samples['full'])} rounds")
            used = dict.fromkeys(LEVELS, 0.0)
            for _ in range(KEEPINGS):
                for level in random.sample(LEVELS, len(LEVELS)):
                    used[level] += await spent(*turns[level])
            for level in LEVELS:
                samples[level].append(used[level] / TURNS / KEEPINGS)


def overhead(samples: dict[str, list[float]], level: str) -> float:
    """In per cent of the turn without a trace, the median of pairs."""
    pairs = zip(samples[level], samples["off"], strict=True)
    return 100 * (statistics.median(traced / plain for traced, plain in pairs) - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=60, help="samples of each level (%(default)s)")
    parser.add_argument(
        "--observers", type=int, default=0, help="observers on the hooks that fire most (%(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    about = environment(["hookline"], options.rounds)
    print_environment(about)
    samples = asyncio.run(measure(options.rounds, options.observers))
    print(f"{'level':12}{'CPU min':>12}{'CPU median':>12}{'overhead':>11}   (ms per turn)")
    for level in LEVELS:
        own = samples[level]
        cells = f"{1e3 * min(own):>12.3f}{1e3 * statistics.median(own):>12.3f}"
        print(f"{level:12}{cells}{overhead(samples, level):>10.1f}%")
    checks = [
        Check(f'"{level}": CPU over a turn without a trace', overhead(samples, level), limit, unit="%")
        for level, limit in LIMITS.items()
    ]
    if options.json:
        found = {**about, "observers": options.observers, "samples": samples,
                 "checks": [check.as_json() for check in checks]}  # fmt: skip
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(checks) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
