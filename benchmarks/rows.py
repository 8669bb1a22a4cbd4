"""What a contender is: a row of the table, the handlers it runs and the loop that times it."""

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Mode = Literal["sync", "async"]
Meaning = Literal["notify", "first", "chain", "collect"]
Handler = Callable[..., Any]
Names = dict[str, Any]
Attach = Callable[[Sequence[Handler]], Names]  # returns the names that a row's statement uses

MODES: tuple[Mode, ...] = ("sync", "async")
MEANINGS: tuple[Meaning, ...] = ("notify", "first", "chain", "collect")
COUNTS = (0, 1, 5, 20)
THOUSAND = 1000
EVENT = 7

clock = time.perf_counter_ns


@dataclass(frozen=True)
class Row:
    """One line of the table: one contender, in one mode, with one meaning."""

    name: str
    mode: Mode
    meaning: Meaning
    call: str  # the statement that is timed; it may use `event` and what `attach` returns
    attach: Attach
    isolates: bool  # one failing handler leaves the others running
    distribution: str = ""  # the PyPI name; empty for what is written here
    parameters: str = "event"  # of each handler
    returns: str = "None"  # by each handler
    before: str = "pass"  # run before the clock starts
    after: str = "pass"  # run when the clock has stopped
    warm_up: int = 2  # dispatches until its cost is steady
    note: str = ""
    counts: tuple[int, ...] = COUNTS


def make_handler(index: int, mode: Mode, parameters: str, body: str, **names: Any) -> Handler:
    """Compile one handler; each has code of its own, as handlers in real programs have."""
    keyword = "async def" if mode == "async" else "def"
    exec(f"{keyword} handler_{index}({parameters}):\n    {body}", names)
    return names[f"handler_{index}"]


def make_handlers(row: Row, count: int) -> list[Handler]:
    """Compile the handlers that are measured: they do nothing."""
    return [
        make_handler(index, row.mode, row.parameters, f"return {row.returns}") for index in range(count)
    ]


def make_measure(row: Row, handlers: Sequence[Handler]) -> Callable[[int], Any]:
    """Compile the loop that times the row's statement; called with how often to dispatch."""
    names: Names = {"event": EVENT, **row.attach(handlers)}
    source = f"""
{"async def" if row.mode == "async" else "def"} measure(calls, clock, repeat, {", ".join(names)}):
    {row.before}
    started = clock()
    for _ in repeat(None, calls):
        {row.call}
    elapsed = clock() - started
    {row.after}
    return elapsed
"""
    namespace: Names = {}
    exec(source, namespace)
    return functools.partial(namespace["measure"], clock=clock, repeat=itertools.repeat, **names)
