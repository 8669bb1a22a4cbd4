"""Kill processes at random moments over a workload, and see what is left.

    python benchmarks/crash.py                            # 200 kills of a gateway on SQLite
    python benchmarks/crash.py --longest 0.3              # harder: it never lives for long
    python benchmarks/crash.py --postgres --workers 4     # 200 kills of 4 workers and 2 gateways
    python benchmarks/crash.py --kills 20 --json result.json

Each round takes a new home and a plan of messages to several sessions. On SQLite, a process works on it
and is killed by SIGKILL at a random moment, again and again; the last one may finish. On PostgreSQL,
one of the workers or gateways is killed at each random moment, and another takes its place. Then the
tapes, the inbox and what the tool wrote are compared with the plan.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from crash_examine import HEAD, Report, examine, plan_of

from hookline.tape import SQLiteStore

PROCESS = Path(__file__).with_name("crash_process.py")


def run_and_kill(arguments: list[str], kills: int, longest: float, seed: int) -> int:
    """Run a process until it is done; kill it so many times on the way."""
    moments, killed = random.Random(seed), 0
    while True:
        with subprocess.Popen(
            [sys.executable, str(PROCESS), *arguments], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            if killed < kills:
                if moments.random() < 0.9:  # the others die while they start
                    process.stdout.readline()
                try:
                    process.wait(moments.uniform(0, longest))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    killed += 1
                    continue
            output = process.communicate(timeout=300)[0]
            if process.returncode != 0 or "done" not in output:
                raise SystemExit(f"a process failed with code {process.returncode}")
            return killed


async def round_on_sqlite(
    report: Report, kills: int, sessions: int, messages: int, longest: float, seed: int
) -> None:
    """One plan, one home, one process at a time."""
    with tempfile.TemporaryDirectory(prefix="hookline-crash-") as name:
        folder = Path(name)
        arguments = ["gateway", name, str(sessions), str(messages)]
        report.kills += run_and_kill(arguments, kills, longest, seed)
        store = SQLiteStore(folder / "home" / "tape.db")
        await examine(store, folder, plan_of(sessions, messages), report)
        (waiting,) = (
            await store.using(
                "read", lambda db: db.execute("SELECT count(*) FROM inbox WHERE state = 'started'")
            )
        ).fetchone()
        if waiting:
            report.faults.append(f"{waiting} messages are still in the inbox")
        await store.close()


async def suite(asked: argparse.Namespace) -> Report:
    """Rounds until so many processes were killed."""
    report = Report("PostgreSQL" if asked.postgres else "SQLite", asked.workers)
    size, server, number = (asked.sessions, asked.messages), None, 0
    if asked.postgres:
        from crash_cluster import round_on_postgres
        from database import Server

        server = Server(flushes=False)  # programs crash here, not the machine
    while report.kills < asked.kills and not report.faults:
        number += 1
        kills, seed = min(25, asked.kills - report.kills), asked.seed + number
        if server is None:
            await round_on_sqlite(report, kills, *size, asked.longest, seed)
        else:
            await round_on_postgres(report, server, kills, *size, seed)
        print(f"{report.kills} kills, {len(report.faults)} faults", file=sys.stderr, flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--messages", type=int, default=60, help="to each session, in a round")
    parser.add_argument("--longest", type=float, default=1.0, help="seconds to a kill, on SQLite")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="on PostgreSQL")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    report = asyncio.run(suite(asked))
    print(f"seed {asked.seed}\n{HEAD}")
    print(report.row(), *(fault[:300] for fault in report.faults[:20]), sep="\n  ")
    if asked.json:
        asked.json.write_text(json.dumps(asdict(report), indent=2))
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()
