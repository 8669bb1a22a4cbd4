"""What a whole turn costs: Hookline beside other agent frameworks, the model in process.

Run it from the checkout, with the peers of the `bench` extra installed:

    pip install -e '.[bench]'
    python benchmarks/turn.py                        # everything; about a minute
    python benchmarks/turn.py --only hookline strands
    python benchmarks/turn.py --check                # exit code 1 when a threshold is missed
    python benchmarks/turn.py --json result.json

The turn. A question comes in; the model answers with a tool call; the tool adds two numbers; the model
answers in ten pieces, which are read as they come. Two model calls and one tool call, in a new
conversation each time, so that no history grows; the agent or app is made once. The models answer from
memory at once, each of the kind that its framework has for it: what is left is the framework.

Hookline's own row does more than the peers': its tape is a SQLite file, every step is durable before
the next, the builtin plugin is loaded with its tools, and each of the ten hooks that fire most often in
this turn (counted by `hooks.trace`) has an observer. The peers keep nothing and have no hooks attached.
The other rows of Hookline show what each of these costs.

How it measures. All contenders are measured in one process, in rounds: each round takes one short
sample of every contender, in a new random order, so that a slow moment of the machine falls on all
alike. Trust the ratios; absolute times belong to one machine. CPU is what the process used in all its
threads, user and system. The garbage collector is off while the clock runs. A SQLite file is written
back now and then, which a minimum would miss: the thresholds hold for the minimum and the median.

Before anything is timed, every contender must show that it makes this turn: two model calls, one tool
call, the tool's result shown to the model, ten pieces, the whole answer.
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
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio, why_not
from frameworks import (
    ANSWER,
    ARGUMENTS,
    CALL_ID,
    CHUNK,
    CHUNKS,
    QUESTION,
    TOOL,
    Contender,
    Seen,
    Turn,
    add,
    bare_loop,
    peers,
    seen,
)
from rows import make_handler

SAMPLE_SECONDS = 0.02
WARM_UP = 50
TEN = 10
OURS = "hookline"


# --- Hookline ---


def hookline() -> list[Contender]:
    def row(name: str, note: str, **options: Any) -> Contender:
        return Contender(name, partial(open_hookline, **options), "hookline", note=note)

    sqlite = "tape on SQLite"
    return [
        row(OURS, f"{sqlite}, an observer on each of the ten hooks that fire most"),
        row(f"{OURS}, no observers", sqlite, observers=0),
        row(f"{OURS}, all observed", f"{sqlite}, an observer on every hook but output", observers=None),
        row(f"{OURS}, in memory", "tape in memory, the ten observers", in_memory=True),
    ]


@asynccontextmanager
async def open_hookline(
    observers: int | None = TEN, *, in_memory: bool = False
) -> AsyncGenerator[Turn]:
    from hookline.app import Hookline
    from hookline.catalog.stream import StreamEvent
    from hookline.hooks import hookimpl
    from hookline.models import Models
    from hookline.models.model import ModelRequest
    from hookline.models.script import Call
    from hookline.models.script import Turn as Said
    from hookline.models.scripted import ScriptedModel
    from hookline.tape import MemoryStore
    from hookline.tools import Tool, tool

    class Watched(ScriptedModel):
        def stream(self, request: ModelRequest) -> Any:
            seen.model(request.messages)
            return super().stream(request)

    class Adding:
        @hookimpl
        def register_tools(self) -> list[Tool]:
            return [tool(registry=None)(add)]

    class InMemory:
        @hookimpl
        def provide_tape_store(self) -> MemoryStore:
            return MemoryStore()

    said = Said(tool_calls=[Call(TOOL, json.loads(ARGUMENTS), CALL_ID)]), Said(ANSWER, chunk=CHUNK)
    models = Models()
    models.add(Watched(said, repeat=True, record=False))
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        app = Hookline(home=home, workspace=home, model="scripted", models=models)
        app.load_hooks(packages=False)
        app.hooks.add(Adding(), name="adding")
        if in_memory:
            app.hooks.add(InMemory(), name="in memory")
        numbers = itertools.count()

        async def turn() -> tuple[str, int]:
            pieces = 0

            def show(event: StreamEvent) -> None:
                nonlocal pieces
                pieces += event.kind == "text"

            session = f"bench:{next(numbers)}"
            result = await app.process_inbound(
                {"content": QUESTION, "session_id": session}, stream=show
            )
            return result.model_output, pieces

        async with app.running():
            await turn()  # some hooks fire in the first turn only
            for name in (await most_fired(app.hooks, turn))[:observers]:
                app.hooks.register(name, observer(app.hooks[name].spec.params))
            yield turn


async def most_fired(hooks: Any, turn: Turn) -> list[str]:
    """The hooks that fire in a turn, most often first; all but `output`.

    A handler of `output` might block the answer, so that none of it is shown before its end.
    """
    fired: Counter[str] = Counter()
    off = hooks.trace(lambda dispatch: fired.update([dispatch.hook]))
    await turn()
    off()
    del fired["output"]
    return [name for name, _ in fired.most_common()]


def observer(parameters: Sequence[str]) -> Any:
    """A handler that looks at everything and changes nothing."""
    body = "return call_next()" if "call_next" in parameters else "return None"
    return make_handler(0, "sync", ", ".join(parameters), body)


# --- Measuring ---


@dataclass
class Case:
    """One contender, open, and the samples taken of it: seconds per turn."""

    contender: Contender
    runner: asyncio.Runner  # of its own: what it leaves running cannot disturb another
    opened: AbstractAsyncContextManager[Turn]
    turn: Turn
    turns: int = 1  # in one sample
    cpu: list[float] = field(default_factory=list[float])
    wall: list[float] = field(default_factory=list[float])

    def calibrate(self) -> None:
        self.runner.run(timed(self.turn, WARM_UP))
        cpu, _ = self.runner.run(timed(self.turn, 10))
        self.turns = max(1, round(SAMPLE_SECONDS * 10 / cpu))

    def sample(self) -> None:
        cpu, wall = self.runner.run(timed(self.turn, self.turns))
        self.cpu.append(cpu / self.turns)
        self.wall.append(wall / self.turns)

    def close(self) -> None:
        self.runner.run(self.opened.__aexit__(None, None, None))  # pyright: ignore[reportArgumentType]
        self.runner.close()

    def as_json(self) -> dict[str, Any]:
        return {
            "contender": self.contender.name,
            "transport": self.contender.transport,
            "note": self.contender.note,
            "cpu_min_ms": min(self.cpu) * 1e3,
            "cpu_median_ms": statistics.median(self.cpu) * 1e3,
            "wall_min_ms": min(self.wall) * 1e3,
            "wall_median_ms": statistics.median(self.wall) * 1e3,
            "samples": len(self.cpu),
            "turns_per_sample": self.turns,
        }


async def timed(turn: Turn, turns: int) -> tuple[float, float]:
    wall, cpu = perf_counter(), process_time()
    for _ in itertools.repeat(None, turns):
        await turn()
    return process_time() - cpu, perf_counter() - wall


async def verify(turn: Turn) -> None:
    """Check that this is the turn that everybody makes."""
    vars(seen).update(vars(Seen(noting=True)))
    try:
        answer, pieces = await turn()
    finally:
        seen.noting = False
    found = (seen.model_calls, seen.tool_calls, seen.result_shown, pieces, answer)
    if found != (2, 1, True, len(CHUNKS), ANSWER):
        raise RuntimeError(f"another turn: {found}")


def opened(contender: Contender) -> Case:
    runner = asyncio.Runner()
    try:
        manager = contender.open()
        turn = runner.run(manager.__aenter__())  # pyright: ignore[reportArgumentType]
        runner.run(verify(turn))
    except BaseException:
        runner.close()
        raise
    return Case(contender, runner, manager, turn)


def measure(
    contenders: Sequence[Contender], rounds: int
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Measure them all, round by round; give the rows, and why some are not there."""
    cases: list[Case] = []
    unavailable: dict[str, str] = {}
    for contender in contenders:
        progress(contender.name)
        try:
            cases.append(opened(contender))
        except Exception as error:
            unavailable[contender.name] = why_not(error, contender.distribution)
    for case in cases:
        case.calibrate()
    gc.collect()
    gc.freeze()  # so that collecting after each sample is quick
    gc.disable()
    try:
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for case in random.sample(cases, len(cases)):
                case.sample()
                gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
        for case in cases:
            case.close()
    progress("")
    return {case.contender.name: case.as_json() for case in cases}, unavailable


# --- Report ---


def checks(contenders: Sequence[Contender], rows: dict[str, dict[str, Any]]) -> list[Check]:
    """Hookline's own row against every peer, by the minimum and by the median."""
    ours = rows.get(OURS, {})
    return [
        Check(
            f"CPU per turn, {which}, {contender.transport}: against {contender.name}",
            ratio(ours.get(key), rows.get(contender.name, {}).get(key)),
            1.0,
        )
        for contender in contenders
        if contender.distribution not in ("", "hookline")
        for which, key in (("minimum", "cpu_min_ms"), ("median", "cpu_median_ms"))
    ]


def print_rows(
    contenders: Sequence[Contender], rows: dict[str, dict[str, Any]], unavailable: dict[str, str]
) -> None:
    ours = rows.get(OURS, {}).get("cpu_min_ms")
    print("One turn: 2 model calls, 1 tool call, the answer in 10 pieces. Milliseconds.")
    print(f"{'':26}{'':14}{'CPU':>16}{'wall':>18}{'CPU, min':>14}")
    print(f"{'':26}{'transport':14}{'min':>8}{'median':>9}{'min':>9}{'median':>9}{'/hookline':>13}")
    for contender in contenders:
        head = f"{contender.name:26}{contender.transport:14}"
        if contender.name in unavailable:
            print(f"{head}  {unavailable[contender.name]}")
            continue
        row = rows[contender.name]
        keys = ("cpu_min_ms", "cpu_median_ms", "wall_min_ms", "wall_median_ms")
        cells = "".join(f"{row[key]:>9.3f}" for key in keys)
        relative = ratio(row["cpu_min_ms"], ours)
        print(f"{head}{cells[1:]}{'' if relative is None else f'{relative:.2f}':>13}")
    for contender in contenders:
        if contender.note:
            print(f"  {contender.name}: {contender.note}.")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=100, help="samples of each contender (%(default)s)"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="contenders; the loop is always there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    contenders = [*hookline(), *peers()]
    if options.only:
        for word in options.only:
            if not any(word in contender.name for contender in contenders):
                names = ", ".join(contender.name for contender in contenders)
                parser.error(f"--only: no contender called {word!r}; there are {names}")
        contenders = [c for c in contenders if any(word in c.name for word in options.only)]
    contenders = [Contender("loop", bare_loop, note="written by hand, keeps nothing"), *contenders]

    about = environment((contender.distribution for contender in contenders), options.rounds)
    rows, unavailable = measure(contenders, options.rounds)
    print_environment(about)
    print_rows(contenders, rows, unavailable)
    outcomes = checks(contenders, rows)
    if options.json:
        found = {
            **about,
            "turns": list(rows.values()),
            "unavailable": unavailable,
            "checks": [check.as_json() for check in outcomes],
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
