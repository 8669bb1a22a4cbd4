"""The crash suite on PostgreSQL: gateways that accept, workers that make the turns, all of them killed.

Every process is a real one. Whoever is killed is started again at once; others notice its death by its
silence, which is short here, and go on with its turns.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from os import environ
from pathlib import Path

import psycopg
from crash_examine import Report, examine, plan_of
from database import Server

from hookline.tape.postgres.store import PostgresStore

PROCESS = Path(__file__).with_name("crash_process.py")
GATEWAYS = 2
SETTINGS = {
    "GATEWAY__WORKER": "false",
    "WORKER__HEARTBEAT": "0.5",
    "WORKER__SILENCE": "2",
    "WORKER__POLL": "0.2",
    "WORKER__DEATHS": "1000",  # no message is to blame here
    "TAPE__HOME": "crash",
    "TAPE__POOL_SIZE": "4",
}
PAUSE = "0.02"
"""Seconds of a step. With more of them, more turns are under way when a process dies."""
PATIENCE = 180.0
"""Seconds in which all must be done after the last kill."""


class Processes:
    """The processes of a round."""

    def __init__(self, folder: Path, url: str, schema: str, commands: dict[str, list[str]]) -> None:
        self._folder = folder
        self._commands = commands
        self._starts = Counter[str]()
        given = {**SETTINGS, "TAPE__URL": url, "TAPE__SCHEMA": schema}
        self._environment = {**environ, "CRASH_PAUSE": PAUSE}
        self._environment |= {f"HOOKLINE_{name}": value for name, value in given.items()}
        self._running = {name: self._started(name) for name in commands}

    def _started(self, name: str) -> "subprocess.Popen[bytes]":
        self._starts[name] += 1
        with self._log(name).open("wb") as log:
            return subprocess.Popen(
                [sys.executable, str(PROCESS), *self._commands[name]], env=self._environment, stderr=log
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}-{self._starts[name]}.log"

    def is_up(self, name: str) -> bool:
        """Whether it has said so."""
        return self._log(name).stat().st_size > 0

    def kill(self, name: str) -> None:
        """Kill one, and start another in its place."""
        self._running[name].kill()
        self._running[name].wait()
        self._running[name] = self._started(name)

    def ended(self) -> list[str]:
        """Those that ended though nobody killed them."""
        return [name for name, process in self._running.items() if process.poll() is not None]

    def end(self) -> list[str]:
        """End all in good order; those that did not manage."""
        deadline = time.monotonic() + 60
        for name, process in self._running.items():
            # One that only starts knows no good order yet.
            while not self.is_up(name) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
        failed: list[str] = []
        for name, process in self._running.items():
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.returncode != 0:
                failed.append(f"{name} ended with code {process.returncode}")
        return failed


def commands_of(folder: Path, workers: int, sessions: int, messages: int) -> dict[str, list[str]]:
    """How to start each process. Messages come as fast as one worker could answer them."""
    found = {f"worker{n}": ["worker", str(folder)] for n in range(workers)}
    pace = 0.05 * GATEWAYS
    for n in range(GATEWAYS):
        share = (sessions, messages, n, GATEWAYS, pace)
        found[f"gateway{n}"] = ["member", str(folder), *map(str, share)]
    return found


async def round_on_postgres(
    report: Report, server: Server, kills: int, sessions: int, messages: int, seed: int
) -> None:
    """One plan in one schema, with so many kills on the way."""
    moments, schema = random.Random(seed), f"crash{report.workers}_{seed}"
    longest = 1.0 + 3.0 / report.workers  # a lone worker is idle until its own silence is over
    plan, total = plan_of(sessions, messages), sessions * messages
    with tempfile.TemporaryDirectory(prefix="hookline-crash-") as name:
        folder = Path(name)
        commands = commands_of(folder, report.workers, sessions, messages)
        store = await PostgresStore.open(server.url, schema=schema, home="crash")
        processes = Processes(folder, server.url, schema, commands)
        left, until = 0, 0.0
        try:
            for number in range(kills):
                time.sleep(moments.uniform(0, longest))
                if number and not await open_messages(store, total):
                    break
                kind = moments.choices(("worker", "gateway"), (3, 1))[0]
                named = [each for each in commands if each.startswith(kind)]
                if moments.random() < 0.9:  # the others die while they start
                    while not (up := [each for each in named if processes.is_up(each)]):
                        time.sleep(0.05)
                    named = up
                processes.kill(moments.choice(named))
                report.kills += 1
            until = time.monotonic() + PATIENCE
            while (left := await open_messages(store, total)) and time.monotonic() < until:
                report.faults += [f"{name} ended by itself" for name in processes.ended()]
                if report.faults:
                    break
                time.sleep(0.1)
        finally:
            report.faults += processes.end()
        await examine(store, folder, plan, report)
        if left:
            report.faults.append(f"{left} messages, answers or jobs are left")
        report.faults += await leftovers(store)
        if report.faults:
            keep_logs(folder)
        await store.close()
    if not report.faults:
        server.execute(f"DROP SCHEMA {schema} CASCADE")


OPEN = """
    SELECT {0} - (SELECT count(*) FROM {1}.inbox WHERE outcome IS NOT NULL)
        + (SELECT count(*) FROM {1}.deliveries) + (SELECT count(*) FROM {1}.procrastinate_jobs)
"""


async def open_messages(store: PostgresStore, total: int) -> int:
    """How many messages are not settled, how many answers not delivered, and how many jobs are left."""
    async with store.connection() as connection:
        try:
            row = await (await connection.execute(OPEN.format(total, store.schema))).fetchone()
        except psycopg.errors.UndefinedTable:  # nobody is up yet
            return total
    assert row is not None
    return row[0]


async def leftovers(store: PostgresStore) -> list[str]:
    """What else became of messages than an answer."""
    statement = "SELECT outcome, count(*) FROM {}.inbox WHERE outcome != 'answered' GROUP BY 1"
    async with store.connection() as connection:
        rows = await (await connection.execute(statement.format(store.schema))).fetchall()
    return [f"{count} messages came to the outcome {outcome!r}" for outcome, count in rows]


def keep_logs(folder: Path) -> None:
    """Show what the processes said, where something is wrong."""
    for path in sorted(folder.glob("*.log")):
        said = [line for line in path.read_text().splitlines() if "message.done" not in line]
        print(f"--- {path.name}", *said[-30:], sep="\n", file=sys.stderr)
