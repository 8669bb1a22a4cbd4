"""What a whole turn costs: Hookline beside other agent frameworks, in process and over HTTP.

Run it from the checkout, with the peers of the `bench` extra installed:

    pip install -e '.[bench]'
    python benchmarks/turn.py                        # everything; some minutes
    python benchmarks/turn.py --only hookline strands
    python benchmarks/turn.py --transport process    # or http
    python benchmarks/turn.py --check                # exit code 1 when a threshold is missed
    python benchmarks/turn.py --json result.json

The turn. A question comes in; the model answers with a tool call; the tool adds two numbers; the model
answers in ten pieces, which are read as they come. Two model calls and one tool call, in a new
conversation each time, so that no history grows; the agent or app is made once.

In process, the models answer from memory at once, each of the kind that its framework has for it: what
is left is the framework. Over HTTP, all ask the same server on loopback (`server.py`, a process of its
own, whose CPU is not counted), each with the OpenAI client of its framework: what is left is the
framework and its client. That is measured with one turn at a time and with 32 at once; everybody keeps
its client and its connections.

Hookline's own row does more than the peers': its tape is a SQLite file, every step is durable before
the next, the builtin plugin is loaded with its tools, and each of the ten hooks that fire most often in
this turn (counted by `hooks.trace`) has an observer. The peers keep nothing and have no hooks attached.
The other rows of Hookline show what each of these costs.

How it measures. All contenders are measured in one process, in rounds: each round takes one short
sample of every contender, in a new random order, so that a slow moment of the machine falls on all
alike. Trust the ratios; absolute times belong to one machine. CPU is what the process used in all its
threads, user and system. The garbage collector is off while the clock runs. A SQLite file is written
back now and then, which a minimum would miss: the thresholds hold for the minimum and the median. The
transports are measured one after the other: compare rows of the same transport. With 32 turns at once a
sample is at least 32 turns, so there are fewer of them.

Before anything is timed, every contender must show that it makes this turn: two model calls, one tool
call, the tool's result shown to the model, ten pieces, the whole answer. Over HTTP the server counts
the calls; where 32 turns are made at once, all 32 are tested.

Some frameworks ask for versions of `openai` that exclude each other. What an environment lacks is
listed as not installed: measure it in another one, beside Hookline and the loop again.
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
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
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
from overhttp import AIOHTTP, CLIENTS, CONCURRENCIES, KEY, http_loop, http_peers, transport
from rows import make_handler
from server import MODEL, Server, serving

SAMPLE_SECONDS = 0.02
WARM_UP = 50
TEN = 10
OURS = "hookline"
IN_PROCESS = "in process"
FEWER = 5  # times fewer samples where each is of many turns


# --- Hookline ---


SQLITE = "tape on SQLite"
OURS_NOTE = f"{SQLITE}, an observer on each of the ten hooks that fire most"


def hookline() -> list[Contender]:
    def row(name: str, note: str, **options: Any) -> Contender:
        return Contender(name, partial(open_hookline, **options), "hookline", note=note)

    return [
        row(OURS, OURS_NOTE),
        row(f"{OURS}, no observers", SQLITE, observers=0),
        row(f"{OURS}, all observed", f"{SQLITE}, an observer on every hook but output", observers=None),
        row(f"{OURS}, in memory", "tape in memory, the ten observers", in_memory=True),
    ]


def hookline_http(server: Server, concurrency: int) -> Contender:
    opener = partial(open_hookline, url=server.url)
    return Contender(OURS, opener, "hookline", transport(concurrency), OURS_NOTE, server, concurrency)


@asynccontextmanager
async def open_hookline(
    observers: int | None = TEN, *, in_memory: bool = False, url: str = ""
) -> AsyncGenerator[Turn]:
    from hookline.channel import Channel
    from hookline.hooks import hookimpl
    from hookline.models import Models
    from hookline.models.model import ModelRequest
    from hookline.models.script import Call
    from hookline.models.script import Turn as Said
    from hookline.models.scripted import ScriptedModel
    from hookline.runtime.app import Hookline
    from hookline.tape import MemoryTapeStore
    from hookline.tools import Tool, tool
    from hookline.types import StreamEvent

    class Watched(ScriptedModel):
        def stream(self, request: ModelRequest) -> Any:
            seen.model(request.messages)
            return super().stream(request)

    class Adding:
        @hookimpl
        def register_tools(self) -> list[Tool]:
            return [tool(registry=None, side_effects="none")(add)]

    class Counting(Channel):
        pieces = 0

        def stream(self, event: StreamEvent) -> None:
            self.pieces += event.kind == "text"

    class InMemory:
        @hookimpl
        def provide_tape_store(self) -> MemoryTapeStore:
            return MemoryTapeStore()

    said = Said(tool_calls=[Call(TOOL, json.loads(ARGUMENTS), CALL_ID)]), Said(ANSWER, chunk=CHUNK)
    models = Models(settings={"openai": {"base_url": url, "api_key": KEY}})
    models.add(Watched(said, repeat=True, record=False))
    model = f"openai:{MODEL}" if url else "scripted"
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        app = Hookline(home=home, workspace=home, model=model, models=models)
        app.load_hooks(packages=False)
        app.hooks.add(Adding(), name="adding")
        if in_memory:
            app.hooks.add(InMemory(), name="in memory")
        numbers = itertools.count()

        async def turn() -> tuple[str, int]:
            shown = Counting()
            session = f"bench:{next(numbers)}"
            result = await app.process({"content": QUESTION, "session_id": session}, shown)
            return result.model_output, shown.pieces

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
    rounds: int = 1  # of turns in one sample, each of as many as are made at once
    cpu: list[float] = field(default_factory=list[float])
    wall: list[float] = field(default_factory=list[float])

    def calibrate(self) -> None:
        each = self.contender.concurrency
        self.run(max(1, WARM_UP // each))
        self.rounds = 10 if each == 1 else 1
        cpu, _ = self.run(self.rounds)
        self.rounds = max(1, round(SAMPLE_SECONDS * self.rounds / cpu))

    def sample(self) -> None:
        cpu, wall = self.run(self.rounds)
        self.cpu.append(cpu / self.turns)
        self.wall.append(wall / self.turns)

    def run(self, rounds: int) -> tuple[float, float]:
        return self.runner.run(timed(self.turn, rounds, self.contender.concurrency))

    @property
    def turns(self) -> int:
        """In one sample."""
        return self.rounds * self.contender.concurrency

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


async def timed(turn: Turn, rounds: int, concurrency: int) -> tuple[float, float]:
    async def one_after_the_other() -> None:
        for _ in itertools.repeat(None, rounds):
            await turn()

    wall, cpu = perf_counter(), process_time()
    if concurrency == 1:
        await one_after_the_other()
    else:
        await asyncio.gather(*(one_after_the_other() for _ in range(concurrency)))
    return process_time() - cpu, perf_counter() - wall


async def verify(turn: Turn, contender: Contender) -> None:
    """Check that this is the turn that everybody makes."""
    count, server = contender.concurrency, contender.server
    if server:
        server.noted()
    vars(seen).update(vars(Seen(noting=True)))
    try:
        made = await asyncio.gather(*(turn() for _ in range(count)))
    finally:
        seen.noting = False
    if server:
        seen.model_calls, seen.results_shown = server.noted()
    counts = (seen.model_calls, seen.tool_calls, seen.results_shown)
    if counts != (2 * count, count, count) or {*made} != {(ANSWER, len(CHUNKS))}:
        raise RuntimeError(f"another turn: {counts}, {made[0]}")


def opened(contender: Contender) -> Case:
    runner = asyncio.Runner()
    try:
        manager = contender.open()
        turn = runner.run(manager.__aenter__())  # pyright: ignore[reportArgumentType]
        runner.run(verify(turn, contender))
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


BY = (("minimum", "cpu_min_ms"), ("median", "cpu_median_ms"))


def checks(contenders: Sequence[Contender], rows: dict[str, dict[str, Any]]) -> list[Check]:
    """Hookline's own row against the others of its transport, by the minimum and by the median."""
    ours = rows.get(OURS, {})
    over = contenders[0].transport
    others = [c.name for c in contenders if c.distribution not in ("", "hookline")]
    found: list[Check] = []
    for which, key in BY:
        about = f"CPU per turn, {which}, {over}: against"
        if over == IN_PROCESS:
            found += [
                Check(f"{about} {name}", ratio(ours.get(key), rows.get(name, {}).get(key)), 1.0)
                for name in others
            ]
            continue
        measured = {name: rows[name][key] for name in others if name in rows}
        best = min(measured, key=measured.__getitem__, default="")
        against = f"{about} the best framework{best and f', {best}'}"
        found.append(Check(against, ratio(ours.get(key), measured.get(best)), 0.25))
        bare = rows.get(AIOHTTP, {}).get(key)
        found.append(Check(f"{about} the {AIOHTTP}", ratio(ours.get(key), bare), 3.0))
    return found


def print_rows(
    contenders: Sequence[Contender], rows: dict[str, dict[str, Any]], unavailable: dict[str, str]
) -> None:
    ours = rows.get(OURS, {}).get("cpu_min_ms")
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
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--rounds",
        type=int,
        default=100,
        help=f"samples of each contender (%(default)s); /{FEWER} where 32 turns are made at once",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="contenders; the loop is always there"
    )
    parser.add_argument(
        "--transport",
        choices=("process", "http", "all"),
        default="all",
        help="how the model is reached (%(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    with ExitStack() as stack:
        groups: list[list[Contender]] = []
        if options.transport in ("process", "all"):
            loop = Contender("loop", bare_loop, note="written by hand, keeps nothing")
            groups.append([loop, *hookline(), *peers()])
        if options.transport in ("http", "all"):
            server = stack.enter_context(serving())
            groups += [
                [http_loop(server, n), hookline_http(server, n), *http_peers(server, n)]
                for n in CONCURRENCIES
            ]
        if options.only:
            names = list(dict.fromkeys(c.name for group in groups for c in group))
            for word in options.only:
                if not any(word in name for name in names):
                    parser.error(f"--only: no contender called {word!r}; there are {', '.join(names)}")
            groups = [
                [c for c in group if not c.distribution or any(word in c.name for word in options.only)]
                for group in groups
            ]
        return run(groups, options)


def run(groups: Sequence[Sequence[Contender]], options: argparse.Namespace) -> int:
    distributions = [contender.distribution for group in groups for contender in group]
    if options.transport != "process":
        distributions += CLIENTS
    about = environment(distributions, options.rounds)
    print_environment(about)
    print("One turn: 2 model calls, 1 tool call, the answer in 10 pieces. Milliseconds.")
    turns: list[dict[str, Any]] = []
    missing: dict[str, dict[str, str]] = {}
    outcomes: list[Check] = []
    for group in groups:
        each = group[0].concurrency
        rounds = options.rounds if each == 1 else max(1, options.rounds // FEWER)
        rows, unavailable = measure(group, rounds)
        print_rows(group, rows, unavailable)
        turns += rows.values()
        missing[group[0].transport] = unavailable
        outcomes += checks(group, rows)
    if options.json:
        found = {
            **about,
            "turns": turns,
            "unavailable": missing,
            "checks": [check.as_json() for check in outcomes],
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
