"""Workers of a cluster on PostgreSQL: what a turn costs with one, two and four, and a long backlog.

A gateway in this process accepts messages and gets their answers; `hookline worker` runs as processes
of its own. The turn has two model calls, one tool call, and an answer in ten pieces.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeAlias

import psutil
from database import Server
from ends import Ends

from hookline.channel import Channel
from hookline.hooks import hookimpl
from hookline.runtime.app import Hookline
from hookline.runtime.turn import TurnResult
from hookline.serve import Gateway, GatewayChannel
from hookline.serve.settings import settings_of
from hookline.types import Envelope

ANSWER = "The sum of the two numbers that you gave me is 42."
SCRIPT = f"""
repeat = true

[[turns]]
tool_calls = [{{ name = "add", arguments = {{ a = 19, b = 23 }} }}]

[[turns]]
text = "{ANSWER}"
chunk = {len(ANSWER) // 10}
"""
TOOL = '''
from hookline import tool

hooks = []


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''
Mark: TypeAlias = tuple[float, ...]
"""A time, and until then: the CPU of workers, database and gateway, how often workers were interrupted,
the database's transactions, and the CPU that no program used."""
WORKERS = (1, 2, 4)
WARM_UP = 2
"""Tenths that do not count, nor does the last: modules are loaded, connections made."""
FEEDERS = 8
"""How many messages are being accepted at once."""


class Counter(GatewayChannel):
    """A channel that counts answers."""

    name = "count"

    def __init__(self, total: int) -> None:
        self.total = total
        self.count = 0
        self.wrong: list[str] = []
        self.marks: list[Mark] = []
        self.sent: dict[str, float] = {}
        self.waits: list[float] = []
        """Seconds until the answer, of those that were sent at a pace."""
        self.spent: Callable[[], tuple[float, ...]] = lambda: (0.0,) * 5
        self.warm = asyncio.Event()
        self.done = asyncio.Event()

    def mark(self) -> None:
        """Note the time, and the CPU of all."""
        self.marks.append((perf_counter(), *self.spent(), idle_seconds()))

    async def send(self, outbound: Envelope) -> bool:
        return True

    def reply_to(self, message: Envelope) -> Channel:
        return Ends(self, message)

    def end(self, inbound: Envelope, result: TurnResult) -> None:
        self.count += 1
        if inbound["message_id"] in self.sent:
            self.waits.append(perf_counter() - self.sent.pop(inbound["message_id"]))
        if result.model_output != ANSWER:
            self.wrong.append(f"{inbound['message_id']}: {result.model_output!r}")
        if self.count % (self.total // 10) == 0:
            self.mark()
        if self.count == self.total // 10 * WARM_UP:
            self.warm.set()
        if self.count == self.total:
            self.done.set()

    def error(self, inbound: Envelope, message: str) -> None:
        self.wrong.append(f"{inbound['message_id']}: {message}")
        self.done.set()

    @hookimpl
    def provide_channels(self) -> list[GatewayChannel]:
        return [self]


def idle_seconds() -> float:
    """What all cores together did not use; waiting for the disk is no use of a core."""
    times = psutil.cpu_times()
    return times.idle + getattr(times, "iowait", 0.0)


def message(name: str, session: str) -> dict[str, Any]:
    return {
        "content": "What is the sum of 19 and 23?",
        "channel": "count",
        "chat_id": session,
        "session_id": session,
        "message_id": name,
    }


class Workers:
    """Processes of `hookline worker`."""

    def __init__(self, folder: Path, count: int) -> None:
        hooks = folder / "home" / "profiles" / "default" / "hooks"
        hooks.mkdir(parents=True)
        (hooks / "add.py").write_text(TOOL)
        (folder / "turns.toml").write_text(SCRIPT)
        model = ["--model", f"scripted:{folder}/turns.toml"]
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "hookline", "worker", *model],
                cwd=folder,
                env={**os.environ, "HOOKLINE_HOME": str(folder / "home")},
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        for process in self._processes:
            assert process.stderr is not None
            if "working on" not in (line := process.stderr.readline()):
                raise SystemExit(f"a worker did not start: {line}{process.stderr.read()}")

    def cpu(self) -> float:
        """Seconds of CPU that they used since they began."""
        times = [psutil.Process(process.pid).cpu_times() for process in self._processes]
        return sum(each.user + each.system for each in times)

    def interrupted(self) -> int:
        """How often the scheduler gave their core to somebody else."""
        found = [psutil.Process(process.pid).num_ctx_switches() for process in self._processes]
        return sum(each.involuntary for each in found)

    def end(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.communicate(timeout=60)


async def feed(gateway: Gateway, numbers: range, sessions: int) -> None:
    """Accept messages, several at once, those of one session in order."""

    async def some(part: range) -> None:
        for number in part:
            await gateway.handle(message(f"m{number}", f"s{number % sessions}"))

    await asyncio.gather(*(some(numbers[first::FEEDERS]) for first in range(FEEDERS)))


async def feed_slowly(
    gateway: Gateway, numbers: range, sessions: int, pace: float, sent: dict[str, float]
) -> None:
    """Accept so many messages in a second, whatever becomes of them, and note when they came."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for count, number in enumerate(numbers):
        await asyncio.sleep(began + count / pace - loop.time())
        sent[f"m{number}"] = perf_counter()
        await gateway.handle(message(f"m{number}", f"s{number % sessions}"))


async def work(
    server: Server,
    folder: Path,
    workers: int,
    turns: int,
    sessions: int,
    pace: float = 0.0,
    counted: Callable[[str], dict[str, int]] = lambda schema: {},
) -> dict[str, Any]:
    """Have turns made; what a turn costs, without the start and the end.

    With a pace, so many messages come in a second, after a few to warm up, and what `counted` counts in
    the schema is given for each of them. Otherwise all are accepted before the workers start.
    """
    folder.mkdir(parents=True)
    schema = f"scale_{folder.name}"
    os.environ |= {
        "HOOKLINE_TAPE__URL": server.url,
        "HOOKLINE_TAPE__SCHEMA": schema,
        "HOOKLINE_TAPE__HOME": "scale",
        "HOOKLINE_POLICY__DEFAULT": "allow",
    }
    app = Hookline(home=folder / "gateway", workspace=folder, project=False)
    app.load_hooks(packages=False)
    counter = Counter(turns)
    app.hooks.add(counter)
    gateway = Gateway(app, enabled=["count"], settings=settings_of(app.config, worker=False))
    grown: dict[str, float] = {}
    async with gateway.running():
        before = process_time(), server.cpu()
        first = turns // 10 * WARM_UP if pace else turns
        await feed(gateway, range(first), sessions)
        accepted = process_time() - before[0], server.cpu() - before[1]
        made = await asyncio.to_thread(Workers, folder, workers)
        try:
            counter.spent = lambda: (
                made.cpu(),
                server.cpu(),
                process_time(),
                made.interrupted(),
                server.counters()["transactions"],
            )
            if pace:
                await counter.warm.wait()
                start = counted(schema)
                await feed_slowly(gateway, range(first, turns), sessions, pace, counter.sent)
            await counter.done.wait()
            if pace:
                grown = {k: (v - start[k]) / (turns - first) for k, v in counted(schema).items()}
        finally:
            await asyncio.to_thread(made.end)
    if counter.wrong:
        raise SystemExit(f"wrong answers: {counter.wrong[:3]}")
    server.execute(f"DROP SCHEMA {schema} CASCADE")
    tenths = [row_of(a, b, turns // 10) for a, b in pairwise(counter.marks)]
    warm, *_, last = counter.marks[WARM_UP - 1 : -1]
    return {
        "workers": workers,
        "turns": turns,
        "sessions": sessions,
        "pace": pace,
        **row_of(warm, last, turns // 10 * (9 - WARM_UP)),
        **{f"wait_p{p}_ms": percentile(counter.waits, p) * 1e3 for p in (50, 90) if counter.waits},
        "counted": grown,
        "accept_ms": accepted[0] / first * 1e3,
        "accept_database_ms": accepted[1] / first * 1e3,
        "tenths": tenths,
    }


def percentile(values: list[float], percent: int) -> float:
    """The value that so many of a hundred do not exceed."""
    return sorted(values)[min(len(values) - 1, percent * len(values) // 100)]


def row_of(start: Mark, end: Mark, turns: int) -> dict[str, float]:
    """What turns cost between two marks."""
    seconds, worker, database, gateway, interrupted, transactions, idle = (
        b - a for a, b in zip(start, end, strict=True)
    )
    return {
        "per_second": turns / seconds,
        "worker_ms": worker / turns * 1e3,
        "database_ms": database / turns * 1e3,
        "gateway_ms": gateway / turns * 1e3,
        "interrupted": interrupted / turns,
        "transactions": transactions / turns,
        "cores": (worker + database + gateway + idle) / seconds,
    }


async def rounds(
    server: Server, folder: Path, turns: int, count: int, pace: float = 0.0, *, in_sum: bool = False
) -> list[dict[str, Any]]:
    """For each number of workers, the round in which turns cost workers the least, with all rounds.

    With a pace, so many messages come in a second for each worker, or `in_sum` for all of them.
    """
    tried: dict[int, list[dict[str, Any]]] = {workers: [] for workers in WORKERS}
    for number in range(count):
        for workers in WORKERS:
            place = folder / f"r{number}w{workers}p{pace:.0f}{'s' * in_sum}"
            # As many for each worker: one that has less to do does less at a time, and that costs.
            times = workers if pace and not in_sum else 1
            made = turns * times
            tried[workers].append(await work(server, place, workers, made, made, pace * times))
            print(f"round {number + 1}, {workers}: {shown(tried[workers][-1])}", file=sys.stderr)
    return [{**min(each, key=lambda row: row["worker_ms"]), "rounds": each} for each in tried.values()]


def shown(row: dict[str, Any]) -> str:
    return (
        f"{row['per_second']:8.0f} turns/s  CPU of a turn, ms: {row['worker_ms']:6.2f} of workers, "
        f"{row['database_ms']:6.2f} of the database, {row['gateway_ms']:6.2f} of the gateway; "
        f"{row['transactions']:.1f} transactions, {row['interrupted']:.1f} interruptions"
    )
