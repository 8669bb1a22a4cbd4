"""What one turn takes from a cluster: bytes, transactions, flushes, CPU, and how workers share it.

    python benchmarks/capacity.py                       # some minutes, on a PostgreSQL of its own
    python benchmarks/capacity.py --turns 200           # shorter
    python benchmarks/capacity.py --json capacity.json  # what `simulate.py` reads

The turn is that of `turn.py`: two model calls, one tool call, the answer in ten pieces; the model is
scripted and takes no time. It is durable at each step.

Bytes. Turns of new sessions are made on a SQLite file and in PostgreSQL; what the files grew by is
divided by the turns. PostgreSQL's log of changes is counted apart: it is written, and then reused.

Transactions and flushes. One worker makes one turn at a time; the server's own statistics say how many
transactions and how many flushes of the log to the disk a turn took.

Workers. A backlog is accepted as jobs of procrastinate, locked by session. One, two and four processes
(`capacity_process.py`) make the turns, some at a time each. CPU is what the processes used, those of
the workers and those of the server apart. Other programs may be busy on the machine: `cores` is what
was left of it, used by the measurement or idle. All are measured in rounds, one after the other, and of
each the round counts that used the least CPU for a turn; the others are in the JSON.
"""

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from time import process_time, time
from typing import Any

import psutil
from capacity_process import make_app, make_turn, queue
from common import environment, print_environment, progress
from database import Server

PROCESS = Path(__file__).with_name("capacity_process.py")
SESSIONS = 100
WORKERS = (1, 2, 4)
MORE = 10_000
"""Characters of the longer questions."""
SIZE = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n "
SIZE += "ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND "
TABLES = f"{SIZE} n.nspname = 'hookline'"
JOBS = f"{SIZE} c.relname LIKE 'procrastinate%'"


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def idle_seconds() -> float:
    """What all cores together did not use; waiting for the disk is no use of a core."""
    times = psutil.cpu_times()
    return times.idle + getattr(times, "iowait", 0.0)


# --- Bytes ---


async def on_sqlite(folder: Path, turns: int) -> dict[str, float]:
    """CPU and bytes of a turn on a SQLite file, and bytes for each character that is said more."""
    sizes: list[int] = []
    spent: list[float] = []
    app = make_app(folder)
    for more in (0, 0, MORE):  # the first makes the tables
        async with app.running():
            began = process_time()
            for number in range(turns):
                name = f"s{len(sizes)}-{number % SESSIONS}"
                await make_turn(app, name, number, token_hex(more // 2))
            spent.append((process_time() - began) / turns * 1e3)
        sizes.append(sum(f.stat().st_size for f in (folder / "home").rglob("*.db*")))
    plain, longer = ((b - a) / turns for a, b in pairwise(sizes))
    return {"bytes": plain, "bytes_per_character": (longer - plain) / MORE, "cpu_ms": spent[1]}


# --- Jobs and workers ---


async def accept(url: str, turns: int, name: str) -> float:
    """Accept messages as jobs; milliseconds of CPU for each."""
    jobs = queue(url)

    @jobs.task(name="turn")
    async def turn(session: str, number: int, accepted: float) -> None: ...

    async with jobs.open_async():
        began = process_time()
        for number in range(turns):
            session = f"{name}-{number % SESSIONS}"
            await turn.configure(lock=session).defer_async(
                session=session, number=number, accepted=time()
            )
        return (process_time() - began) / turns * 1e3


async def wake_up(url: str, count: int) -> list[float]:
    """Milliseconds from the accepting of a job to its start by a worker that has nothing else to do."""
    jobs = queue(url)
    waits: list[float] = []
    started = asyncio.Event()

    @jobs.task(name="wake", queue="wake")
    async def wake(accepted: float) -> None:
        waits.append((time() - accepted) * 1e3)
        started.set()

    async with jobs.open_async():
        worker = asyncio.create_task(
            jobs.run_worker_async(queues=["wake"], install_signal_handlers=False)
        )
        await asyncio.sleep(1)  # until it listens; a job that comes too soon is found by polling
        for _ in range(count + 10):
            started.clear()
            await wake.defer_async(accepted=time())
            await started.wait()
            await asyncio.sleep(0.005)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    return waits[10:]


def work(
    server: Server, folder: Path, workers: int, concurrency: int, turns: int, name: str = "first"
) -> dict[str, Any]:
    """Let so many processes make the turns of a backlog."""
    accept_ms = asyncio.run(accept(server.url, turns, f"{name}w{workers}c{concurrency}"))
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROCESS), str(folder / str(n)), server.url, str(concurrency)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(workers)
    ]
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "up\n":
            raise SystemExit("a worker did not start")
    server_cpu, idle, began, before = server.cpu(), idle_seconds(), time(), server.counters()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [json.loads(process.communicate(timeout=600)[0]) for process in processes]
    wall = time() - began
    server_cpu, idle = server.cpu() - server_cpu, idle_seconds() - idle
    after = server.counters()
    rows = sorted((row for each in done for row in each["rows"]), key=lambda row: row[2])
    if len(rows) != turns:
        raise SystemExit(f"{len(rows)} turns were made of {turns}")
    cpu = sum(each["cpu"] for each in done)
    seconds = rows[-1][2] - min(row[1] for row in rows)
    waits = [(row[1] - began) * 1e3 for row in rows]
    return {
        "workers": workers,
        "concurrency": concurrency,
        "turns": turns,
        "per_second": turns / seconds,
        "worker_cpu_ms": cpu / turns * 1e3,
        "database_cpu_ms": server_cpu / turns * 1e3,
        "cpu_ms": (cpu + server_cpu) / turns * 1e3,
        "wait_p50_ms": percentile(waits, 0.5),
        "wait_p99_ms": percentile(waits, 0.99),
        # The CPU was used while turns were made; what was idle is known from the start to the end.
        "cores": min((cpu + server_cpu) / seconds + idle / wall, os.cpu_count() or 1),
        "accept_cpu_ms": accept_ms,
        **{name: (after[name] - before[name]) / turns for name in after},
    }


def measure(turns: int, concurrency: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hookline-capacity-") as name:
        folder = Path(name)
        progress("SQLite")
        sqlite = asyncio.run(on_sqlite(folder / "sqlite", turns))
        progress("PostgreSQL")
        server = Server()
        jobs = queue(server.url)

        async def prepare() -> None:
            async with jobs.open_async():
                await jobs.schema_manager.apply_schema_async()

        asyncio.run(prepare())
        work(server, folder, 1, 1, 20)  # makes the tables
        flushed, unflushed = server.commits(200)
        waits = asyncio.run(wake_up(server.url, 100))
        before = server.number(TABLES), server.number(JOBS)
        single = work(server, folder, 1, 1, turns)
        grown = [server.number(TABLES) - before[0], server.number(JOBS) - before[1]]
        tried: dict[int, list[dict[str, Any]]] = {workers: [] for workers in WORKERS}
        for number in range(rounds):
            for workers in WORKERS:
                progress(f"round {number + 1}, {workers} workers")
                name = f"r{number}"
                tried[workers].append(work(server, folder, workers, concurrency, turns * workers, name))
        version = server.number("SELECT current_setting('server_version_num')::int") // 10000
    return {
        **environment(["hookline", "procrastinate", "psycopg"], rounds),
        "postgres_version": version,
        "machine_cores": os.cpu_count(),
        "sqlite": sqlite,
        "postgres": {
            "tape_bytes": grown[0] / turns,
            "job_bytes": grown[1] / turns,
            "commit_ms": flushed,
            "commit_unflushed_ms": unflushed,
            "wake_up_p50_ms": percentile(waits, 0.5),
            "wake_up_p90_ms": percentile(waits, 0.9),
            "wake_up_p99_ms": percentile(waits, 0.99),
            "wake_up_by_polling": sum(wait > 1_000 for wait in waits) / len(waits),
        },
        "single": single,
        "points": [min(found, key=lambda row: row["cpu_ms"]) for found in tried.values()],
        "rounds_of_points": [*tried.values()],
    }


def report(found: dict[str, Any]) -> None:
    print_environment(found)
    server, single = found["postgres"], found["single"]
    print(f"PostgreSQL {found['postgres_version']}, {found['machine_cores']} cores for everything\n")
    lines = (
        ("SQLite: bytes", found["sqlite"]["bytes"]),
        ("SQLite: bytes for a character more", found["sqlite"]["bytes_per_character"]),
        ("SQLite: CPU, ms", found["sqlite"]["cpu_ms"]),
        ("PostgreSQL: bytes of the tape", server["tape_bytes"]),
        ("PostgreSQL: bytes of the job", server["job_bytes"]),
        ("PostgreSQL: bytes of the log", single["log_bytes"]),
        ("PostgreSQL: transactions", single["transactions"]),
        ("PostgreSQL: flushes", single["flushes"]),
        ("accepting a job: CPU, ms", single["accept_cpu_ms"]),
    )
    print("For each turn")
    for text, value in lines:
        print(f"  {text:34}{value:>10,.2f}")
    print("Milliseconds")
    print(f"  {'one commit':34}{server['commit_ms']:>10.2f}")
    print(f"  {'the same, not waited for':34}{server['commit_unflushed_ms']:>10.2f}")
    woken = f"{server['wake_up_p50_ms']:>10.2f}, p90 {server['wake_up_p90_ms']:.2f}, "
    woken += f"p99 {server['wake_up_p99_ms']:.2f}, {server['wake_up_by_polling']:.1%} by polling"
    print(f"  {'accepted to started, idle: p50':34}{woken}")
    print(
        "\nworkers  at once  turns/s  CPU of worker + database, ms   wait p50, ms      p99  cores left"
    )
    for row in (single, *found["points"]):
        cpu = f"{row['worker_cpu_ms']:.2f} + {row['database_cpu_ms']:.2f} = {row['cpu_ms']:.2f}"
        print(
            f"{row['workers']:7}{row['concurrency']:9}{row['per_second']:9.0f}{cpu:>31}"
            f"{row['wait_p50_ms']:15.0f}{row['wait_p99_ms']:9.0f}{row['cores']:12.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=300, help="turns for each worker (%(default)s)")
    parser.add_argument("--concurrency", type=int, default=8, help="turns of a worker at once")
    parser.add_argument("--rounds", type=int, default=3, help="of the workers (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    options = parser.parse_args()
    if min(options.turns, options.concurrency, options.rounds) < 1:
        parser.error("--turns, --concurrency and --rounds are at least 1")
    logging.disable(logging.INFO)
    found = measure(options.turns, options.concurrency, options.rounds)
    report(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
