"""What one dispatch costs: Hookline beside hand-written loops and other hook libraries.

Run it from the checkout, with the peers of the `bench` extra installed:

    pip install -e '.[bench]'
    python benchmarks/dispatch.py                        # everything; about two minutes
    python benchmarks/dispatch.py --only hookline pluggy
    python benchmarks/dispatch.py --check                # exit code 1 when a threshold is missed
    python benchmarks/dispatch.py --json result.json

How it measures. All contenders are measured in one process, in rounds: each round takes one short
sample of every contender at every handler count, in a new random order, so that a slow moment of the
machine falls on all alike. Now and then all are built anew, so that no ratio hangs on where something
happened to lie in memory. Trust the minimum and the ratios; absolute times belong to one machine. The
garbage collector is off while the clock runs.

What is timed is the statement that a call site would write, in a plain `for` loop, for async in the
same loop inside one coroutine. Each contender has a measuring loop of its own with its own inline
caches, as call sites have. Handlers do nothing, and are separate functions with separate code.

Hookline's own row holds the compiled caller (`fire = hook.fire`), as the loops are held; a call site
that reads `hook.fire` each time, tests `hook.live` first, or calls by name stands beside it.

The meanings. `notify` drops the results (handlers return None). `first` stops at the first result that
is not None; here every handler returns None, so that all of them run. `chain` hands each result to the
next handler, `collect` makes a list: handlers return what they were given, an `int`, and Hookline
checks that it is one.

Before anything is timed, every contender must show that it runs each handler once, and that it isolates
errors exactly if its row says so: one handler raises, and the others run all the same.
"""

import argparse
import asyncio
import gc
import json
import logging
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import environment, print_environment, progress, why_not
from ours import hookline, measure_import, measure_rebuild
from peers import loops, peers
from report import Results, print_checks, print_dispatch, print_upkeep
from rows import Row, clock, make_handler, make_handlers, make_measure

SAMPLE_NS = 1_000_000  # short, so that many samples fall between two interruptions
FEWEST_SAMPLES = 5  # of a contender so slow that it sits out most rounds
BUILDS = 5  # where its objects happen to lie in memory can make a contender some percent slower


@dataclass
class Case:
    """One row at one handler count, and the samples taken of it."""

    row: Row
    handlers: int
    measure: Callable[[int], Any]
    event_loop: asyncio.AbstractEventLoop
    calls: int = 1  # in one sample
    every: int = 1  # it takes part in every so many rounds
    samples: list[float] = field(default_factory=list)

    def run(self, calls: int) -> int:
        """Dispatch `calls` times and return the nanoseconds it took."""
        measured = self.measure(calls)
        return self.event_loop.run_until_complete(measured) if self.row.mode == "async" else measured

    def calibrate(self, rounds: int) -> None:
        """Find how many calls fill a sample, and how often a slow contender can take part."""
        self.run(self.row.warm_up)
        while True:
            started = clock()
            elapsed = self.run(self.calls)
            wall = clock() - started  # counts what runs after the measuring, too
            if elapsed >= SAMPLE_NS // 2:
                break
            self.calls *= 2
        self.every = min(max(1, wall // (2 * SAMPLE_NS)), max(1, rounds // FEWEST_SAMPLES))
        self.calls = max(1, self.calls * SAMPLE_NS // elapsed)

    def sample(self) -> None:
        if self.calls >= 20:
            self.run(self.calls // 20)  # the processor's caches are full of the contender before
        self.samples.append(self.run(self.calls) / self.calls)


def verify(row: Row, event_loop: asyncio.AbstractEventLoop) -> None:
    """Check that the row runs every handler once, and that it tells the truth about errors."""

    def ran(failing: int | None) -> list[int]:
        ran: list[int] = []
        handlers = [
            make_handler(
                index,
                row.mode,
                row.parameters,
                "raise ValueError"
                if index == failing
                else f"ran.append({index}); return {row.returns}",
                ran=ran,
            )
            for index in range(3)
        ]
        Case(row, 3, make_measure(row, handlers), event_loop).run(1)
        return sorted(ran)

    if (those := ran(failing=None)) != [0, 1, 2]:
        raise RuntimeError(f"of handlers 0, 1 and 2, these ran: {those}")
    try:
        isolates = ran(failing=1) == [0, 2]
    except Exception:
        isolates = False
    if isolates != row.isolates:
        raise RuntimeError(f"the row says isolates={row.isolates}, which is not so")


def refusals(rows: Sequence[Row]) -> dict[Row, str]:
    """Try every row; return those that cannot be measured, with the reason."""
    reasons: dict[Row, str] = {}
    for row in rows:
        event_loop = asyncio.new_event_loop()
        try:
            if max(row.counts) > 0:
                verify(row, event_loop)
        except Exception as error:
            reasons[row] = why_not(error, row.distribution)
        finally:
            event_loop.close()
    return reasons


def measure_dispatch(results: Results, rounds: int) -> None:
    logging.disable()  # handlers that fail on purpose are logged by those who isolate them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results.unavailable = refusals(results.rows)
        gc.collect()
    logging.disable(logging.NOTSET)
    rows = [row for row in results.rows if row not in results.unavailable]
    builds = min(BUILDS, rounds)
    for build in range(builds):
        progress(f"build {build + 1} of {builds}")
        for case in measure_build(rows, rounds // builds + (build < rounds % builds)):
            results.add(case.row, case.handlers, case.samples, case.calls)


def measure_build(rows: Sequence[Row], rounds: int) -> list[Case]:
    """Build every contender anew and measure them all, round by round."""
    # An event loop each: what one contender leaves running cannot disturb another.
    event_loops = {name: asyncio.new_event_loop() for name in {row.distribution for row in rows}}
    cases = [
        Case(row, count, make_measure(row, make_handlers(row, count)), event_loops[row.distribution])
        for row in rows
        for count in row.counts
    ]
    for case in cases:
        case.calibrate(rounds)
    gc.collect()
    gc.freeze()  # so that collecting after each round is quick
    gc.disable()
    try:
        for turn in range(rounds):
            for case in random.sample(cases, len(cases)):
                if (turn + case.handlers) % case.every == 0:
                    case.sample()
            gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
        for event_loop in event_loops.values():
            event_loop.close()
    return cases


def measure_upkeep(results: Results, rounds: int) -> None:
    progress("rebuilding")
    gc.disable()
    try:
        results.rebuild = measure_rebuild(max(5, rounds // 3))
    finally:
        gc.enable()
    progress("importing")
    results.imports = measure_import(min(20, max(3, rounds // 10)))


def main() -> int:
    parser = argparse.ArgumentParser(description="What one dispatch costs, in ratios and nanoseconds.")
    parser.add_argument(
        "--rounds", type=int, default=300, help="samples of each contender (%(default)s)"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="contenders; the loops are always there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    everyone = [*hookline(), *peers()]
    if options.only:
        for word in options.only:
            if not any(word in row.name or word == row.distribution for row in everyone):
                names = ", ".join(dict.fromkeys(row.distribution for row in everyone))
                parser.error(f"--only: no contender called {word!r}; there are {names}")
        everyone = [
            row
            for row in everyone
            if any(word in row.name or word == row.distribution for word in options.only)
        ]
    rows = [*loops(), *everyone]
    distributions = (row.distribution for row in rows)
    results = Results(rows, environment(distributions, options.rounds))

    measure_dispatch(results, options.rounds)
    if any(timing.row.name == "hookline" for timing in results.timings.values()):
        measure_upkeep(results, options.rounds)
    progress("")

    print_environment(results.environment)
    print_dispatch(results)
    print_upkeep(results)
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=2) + "\n")
    if options.check:
        return 0 if print_checks(results) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
