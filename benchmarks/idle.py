"""What idle sessions and idle agents hold in a process: memory, tasks and file descriptors.

    python benchmarks/idle.py                      # 1,000 sessions, then 100,000; some minutes
    python benchmarks/idle.py --sessions 10000
    python benchmarks/idle.py --agents 1000        # agents instead, each with a tool and a handler
    python benchmarks/idle.py --where              # also where the memory was allocated
    python benchmarks/idle.py --check              # exit code 1 when a threshold is missed

Each session gets one message, which the model answers with a tool call and then with a text; after that
it is idle. The tape is a SQLite file, the trace and the builtin plugins are on. Measured after a full
garbage collection, after the first sessions and after all: the bytes that Python objects occupy
(`tracemalloc`), their number, asyncio tasks and open file descriptors.
"""

import argparse
import asyncio
import gc
import resource
import sys
import tempfile
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FEW = 1_000
MOST_GROWTH = 200_000  # bytes, for any number of sessions
MOST_OF_AN_AGENT = 20_000  # bytes
AT_ONCE = 8


@dataclass(frozen=True)
class Left:
    """What the process holds at one moment."""

    sessions: int
    bytes: int
    objects: int
    tasks: int
    files: int


@asynccontextmanager
async def opened() -> AsyncGenerator[Any]:
    from hookline.models import Models
    from hookline.models.script import Call, Turn
    from hookline.models.scripted import ScriptedModel
    from hookline.runtime.app import Hookline
    from hookline.tools import tool

    @tool(side_effects="none", registry=None)
    def add(a: int, b: int) -> int:
        return a + b

    models = Models()
    said = Turn(tool_calls=[Call("add", {"a": 1, "b": 2})]), Turn("three")
    models.add(ScriptedModel(said, repeat=True, record=False))
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        app = Hookline(home=home, workspace=home, model="scripted", models=models, project=False)
        app.load_hooks(packages=False)
        app.tools.add(add)
        async with app.running():
            yield app


async def use(app: Any, first: int, last: int) -> None:
    """Give each session its message, a few at once."""
    for start in range(first, last, AT_ONCE):
        await asyncio.gather(
            *(app.process({"content": "add", "chat_id": n}) for n in range(start, start + AT_ONCE))
        )


async def measured(sessions: int) -> Left:
    await asyncio.sleep(0.5)  # the trace is written in the background
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    files = len([*Path("/proc/self/fd").iterdir()]) if sys.platform == "linux" else 0
    return Left(sessions, held, len(gc.get_objects()), len(asyncio.all_tasks()), files)


async def compare(sessions: int, *, where: bool) -> tuple[Left, Left]:
    async with opened() as app:
        await use(app, 0, FEW)
        before = await measured(FEW)
        first = tracemalloc.take_snapshot() if where else None
        await use(app, FEW, sessions)
        after = await measured(sessions)
        if first is not None:
            for grown in tracemalloc.take_snapshot().compare_to(first, "lineno")[:25]:
                print(grown)
        return before, after


def idle_agent() -> Any:
    from hookline import Agent

    agent = Agent("openai:gpt-x", instructions="Be brief.", tools=[weather])
    agent.on.tool_call(when="weather")(lambda event: None)
    return agent


def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"{city}: sun for {days} days"


def resident() -> int:
    """The bytes of memory that the process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def compare_agents(number: int) -> tuple[float, float]:
    """The bytes of each of many idle agents: resident, and of Python objects."""
    kept = [idle_agent()]
    gc.collect()
    before = resident()
    kept += [idle_agent() for _ in range(number)]
    gc.collect()
    grown = resident() - before
    tracemalloc.start()
    kept += [idle_agent() for _ in range(number)]
    gc.collect()
    return grown / number, tracemalloc.get_traced_memory()[0] / number


def main() -> int:
    parser = argparse.ArgumentParser(description="What idle sessions and agents hold in a process.")
    parser.add_argument("--agents", type=int, metavar="NUMBER", help="measure idle agents instead")
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--where", action="store_true")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    if chosen.agents:
        occupied, held = compare_agents(chosen.agents)
        print(
            f"{chosen.agents:,} idle agents, bytes of each: {occupied:,.0f} resident, {held:,.0f} held"
        )
        return int(chosen.check and max(occupied, held) > MOST_OF_AN_AGENT)
    tracemalloc.start()
    before, after = asyncio.run(compare(chosen.sessions, where=chosen.where))
    print(f"{'sessions':>10} {'kB':>10} {'objects':>10} {'tasks':>6} {'files':>6}")
    for left in (before, after):
        held = left.bytes // 1000
        print(f"{left.sessions:10,} {held:10,} {left.objects:10,} {left.tasks:6} {left.files:6}")
    each = (after.bytes - before.bytes) / (after.sessions - before.sessions)
    print(f"{each:.1f} bytes for each further session")
    grew = after.bytes - before.bytes > MOST_GROWTH
    more = (after.tasks, after.files) > (before.tasks, before.files)
    return int(chosen.check and (grew or more))


if __name__ == "__main__":
    sys.exit(main())
