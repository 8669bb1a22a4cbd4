"""What one tool call costs, beside pydantic-ai: CPU microseconds.

    python benchmarks/toolcall.py                   # some fifteen seconds
    python benchmarks/toolcall.py --check           # exit code 1 when the threshold is missed
    python benchmarks/toolcall.py --json result.json

The tool is an async function that adds two numbers; its arguments come as a model's text, and both
check them against its types. Ours is `runner.run` of a loaded app, the whole sequence of hooks and
policy with nothing attached, with three journals: one that keeps nothing (nor does the other side), a
tape in memory, and a tape on SQLite that is durable before the tool runs and before the model sees the
result. Theirs is a run of an agent with one tool call, less a run without one (so a call of a model
that answers at once is in it), and `ToolManager.handle_call` alone, in which nothing but the tool is.
The threshold is on the first. Each round times a batch of everything, in a random order.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio, why_not

LIMIT = 1 / 20
ARGUMENTS = '{"a": 2, "b": 40}'

Once = Callable[[], Awaitable[Any]]


async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class Nowhere:
    """A journal that keeps nothing."""

    async def tool_call(self, call: Any, requested: Any, rulings: Any) -> None:
        pass

    async def tool_result(self, result: Any, **about: Any) -> None:
        pass


# --- the contenders: each gives something to await, which makes one call --------------------------


@asynccontextmanager
async def ours(keeps: str) -> AsyncGenerator[Once]:
    from hookline import Hookline
    from hookline.agent.journal import TapeJournal
    from hookline.tape.memory import MemoryTapeStore
    from hookline.tape.tape import Tape
    from hookline.tools import tool
    from hookline.tools.runner import Requested, ToolCaller

    with tempfile.TemporaryDirectory() as folder:
        app = Hookline(home=Path(folder) / "home", workspace=Path(folder))
        app.load_hooks(packages=False)
        app.tools.add(tool(registry=None, side_effects="none")(add))
        async with app.running():
            journal: Any = Nowhere()
            if keeps == "memory":
                journal = TapeJournal(await Tape.open(MemoryTapeStore(), "s"))
            elif keeps == "sqlite":
                journal = TapeJournal(await app.tape("s"))
            caller = ToolCaller(app.context("s"), journal, app.workspace)
            run, numbers = app.runner.run, count()

            async def once() -> None:
                outcome = await run(Requested(f"c{next(numbers)}", "add", ARGUMENTS), caller)
                assert outcome.content == "42"

            yield once


@asynccontextmanager
async def an_agent(*, calls: bool) -> AsyncGenerator[Once]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: list[Any], _: Any) -> ModelResponse:
        if calls and len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("add", ARGUMENTS, "c")])
        return ModelResponse(parts=[TextPart("42")])

    agent = Agent(FunctionModel(answer))
    agent.tool_plain(add)

    async def once() -> None:
        assert (await agent.run("go")).output == "42"

    yield once


@asynccontextmanager
async def a_tool_manager() -> AsyncGenerator[Once]:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.tools import RunContext
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.usage import RunUsage

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(FunctionToolset([add])).for_run_step(context)
    numbers = count()

    async def once() -> None:
        assert await manager.handle_call(ToolCallPart("add", ARGUMENTS, f"c{next(numbers)}")) == "42"

    yield once


@dataclass
class Row:
    name: str
    make: Callable[[], Any]
    batch: int = 50
    samples: list[float] = field(default_factory=list)
    once: Once | None = None
    missing: str = ""

    async def prepare(self, stack: AsyncExitStack) -> None:
        try:
            self.once = await stack.enter_async_context(self.make())
            await self.once()
        except Exception as error:
            if self.name.startswith("hookline"):
                raise
            self.once, self.missing = None, why_not(error, "pydantic-ai-slim")

    async def run(self) -> None:
        assert self.once is not None
        began = process_time()
        for _ in range(self.batch):
            await self.once()
        self.samples.append((process_time() - began) / self.batch * 1e6)

    def as_json(self) -> dict[str, Any]:
        if not self.samples:
            return {"row": self.name, "missing": self.missing}
        least, median = min(self.samples), statistics.median(self.samples)
        return {"row": self.name, "min_us": least, "median_us": median}


def rows() -> dict[str, Row]:
    return {
        "ours": Row("hookline, journal keeps nothing", lambda: ours("nothing")),
        "memory": Row("hookline, tape in memory", lambda: ours("memory")),
        "sqlite": Row("hookline, tape on SQLite", lambda: ours("sqlite"), 20),
        "manager": Row("pydantic-ai, ToolManager alone", a_tool_manager),
        "with": Row("pydantic-ai, a run with one call", lambda: an_agent(calls=True), 5),
        "without": Row("pydantic-ai, a run without", lambda: an_agent(calls=False), 5),
    }


async def measure(found: dict[str, Row], rounds: int) -> None:
    async with AsyncExitStack() as stack:
        for row in found.values():
            await row.prepare(stack)
        there = [row for row in found.values() if row.once is not None]
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for row in random.sample(there, len(there)):
                await row.run()
    progress("")


def one_call(found: dict[str, Row], of: Callable[[list[float]], float]) -> float | None:
    """What a call adds to a run of pydantic-ai."""
    with_, without = found["with"].samples, found["without"].samples
    return of(with_) - of(without) if with_ and without else None


def checks_of(found: dict[str, Row]) -> list[Check]:
    made: list[Check] = []
    for name, of in (("minimum", min), ("median", statistics.median)):
        mine = of(found["ours"].samples)
        share = ratio(mine, one_call(found, of))
        made.append(Check(f"one tool call, against pydantic-ai, by the {name}", share, LIMIT))
    return made


def print_rows(found: dict[str, Row]) -> None:
    print("One tool call: CPU microseconds.")
    print(f"{'':40}{'min':>10}{'median':>10}")
    for row in found.values():
        said = row.as_json()
        if row.samples:
            print(f"{row.name:40}{said['min_us']:>10.1f}{said['median_us']:>10.1f}")
        else:
            print(f"{row.name:40}{row.missing}")
    least, median = one_call(found, min), one_call(found, statistics.median)
    if least is not None and median is not None:
        print(f"{'pydantic-ai, what the call adds':40}{least:>10.1f}{median:>10.1f}")
        print("\nAs a share of that, and of ToolManager alone:")
        for name in ("ours", "memory", "sqlite"):
            samples, alone = found[name].samples, found["manager"].samples
            beside = f"{ratio(min(samples), min(alone)):>10.3f}" if alone else ""
            print(
                f"{found[name].name:40}{ratio(min(samples), least):>10.3f}"
                f"{ratio(statistics.median(samples), median):>10.3f}{beside}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=150, help="batches of each row (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    found = rows()
    asyncio.run(measure(found, options.rounds))
    about = environment(["hookline", "pydantic-ai-slim", "pydantic"], options.rounds)
    checks = checks_of(found)
    print_environment(about)
    print_rows(found)
    if options.json:
        said = {
            **about,
            "rows": [row.as_json() for row in found.values()],
            "checks": [check.as_json() for check in checks],
        }
        options.json.write_text(json.dumps(said, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(checks) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
