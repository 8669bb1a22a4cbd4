"""What one turn takes from a cluster: bytes, transactions, flushes, CPU, and how workers share it.

    python benchmarks/capacity.py                       # some minutes, on a PostgreSQL of its own
    python benchmarks/capacity.py --turns 100           # shorter
    python benchmarks/capacity.py --json capacity.json  # what `simulate.py` reads

The turn is that of `turn.py`: two model calls, one tool call, the answer in ten pieces; the model is
scripted and takes no time. It is durable at each step.

Bytes. Turns of new sessions are made on a SQLite file and in PostgreSQL; what the files and tables grew
by is divided by the turns. PostgreSQL's log of changes is counted apart: it is written, then reused.

Transactions and flushes. One worker makes turns at a pace that leaves it time; the server's own
statistics say how many transactions and how many flushes of the log to the disk a turn took, those of
the gateway that accepts it and delivers its answer among them.

Workers. One, two and four processes of `hookline worker` make turns, as in `scale.py`: at a pace, and
as fast as they can. CPU is what the processes used, those of the workers, of the gateway and of the
server apart. Other programs may be busy on the machine: `cores` is what was left of it, used by the
measurement or idle. Of each number of workers the round counts in which a turn cost them the least.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from time import process_time
from typing import Any

from common import environment, print_environment, progress
from database import Server
from frameworks import ANSWER, ARGUMENTS, CALL_ID, CHUNK, QUESTION, TOOL, add
from scale_cluster import rounds, shown, work

from hookline.channel import Channel
from hookline.models.script import Call, Turn
from hookline.models.scripted import ScriptedModel
from hookline.runtime.app import Hookline
from hookline.serve.settings import WorkerSettings
from hookline.tools import tool

SESSIONS = 100
MORE = 10_000
"""Characters of the longer questions."""
PACE = 10.0
"""Messages a second for each worker."""
SIZE = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n "
SIZE += "ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = '{}' AND "
TABLES = f"{SIZE} c.relname IN ('sessions', 'entries')"
JOBS = f"{SIZE} (c.relname LIKE 'procrastinate%' OR c.relname IN ('inbox', 'deliveries'))"


class Shown(Channel):
    """Takes the pieces of an answer."""

    def stream(self, event: Any) -> None:
        """Drop a piece."""


async def on_sqlite(folder: Path, turns: int) -> dict[str, float]:
    """CPU and bytes of a turn on a SQLite file, and bytes for each character that is said more."""
    app = Hookline(home=folder / "home", workspace=folder, project=False)
    app.load_hooks(packages=False)
    said = [Turn(tool_calls=[Call(TOOL, json.loads(ARGUMENTS), CALL_ID)]), Turn(ANSWER, chunk=CHUNK)]
    app.models.add(ScriptedModel(said, repeat=True, record=False))
    app.model = "scripted"
    app.tools.add(tool(registry=None, side_effects="none")(add))
    sizes: list[int] = []
    spent: list[float] = []
    for more in (0, 0, MORE):  # the first makes the tables
        async with app.running():
            began = process_time()
            for number in range(turns):
                message = {
                    "content": QUESTION + token_hex(more // 2),
                    "session_id": f"s{len(sizes)}-{number % SESSIONS}",
                    "message_id": f"m{number}",
                }
                result = await app.process(message, Shown())
                if result.model_output != ANSWER:
                    raise SystemExit(f"another turn: {result.model_output!r}, {result.outcome}")
            spent.append((process_time() - began) / turns * 1e3)
        sizes.append(sum(f.stat().st_size for f in (folder / "home").rglob("*.db*")))
    plain, longer = ((b - a) / turns for a, b in pairwise(sizes))
    return {"bytes": plain, "bytes_per_character": (longer - plain) / MORE, "cpu_ms": spent[1]}


def on_postgres(folder: Path, turns: int, count: int) -> dict[str, Any]:
    """Single parts of a turn, and turns by workers."""
    server = Server()
    flushed, unflushed = server.commits(200)

    def counted(schema: str) -> dict[str, int]:
        sizes = {"tape_bytes": TABLES.format(schema), "job_bytes": JOBS.format(schema)}
        return {**server.counters(), **{name: server.number(size) for name, size in sizes.items()}}

    progress("PostgreSQL: a turn at a time")
    single = asyncio.run(work(server, folder / "single", 1, turns, turns, PACE, counted))
    progress("")
    return {
        "postgres_version": server.number("SELECT current_setting('server_version_num')::int") // 10000,
        "machine_cores": os.cpu_count(),
        "concurrency": WorkerSettings().concurrency,
        "postgres": {
            **single["counted"],
            "commit_ms": flushed,
            "commit_unflushed_ms": unflushed,
            "notice_ms": server.notices(200),
        },
        "paced": asyncio.run(rounds(server, folder, turns, count, PACE)),
        "fast": asyncio.run(rounds(server, folder, 2 * turns, count)),
    }


def report(found: dict[str, Any]) -> None:
    print_environment(found)
    server = found["postgres"]
    print(f"PostgreSQL {found['postgres_version']}, {found['machine_cores']} cores for everything\n")
    lines = (
        ("SQLite: bytes", found["sqlite"]["bytes"]),
        ("SQLite: bytes for a character more", found["sqlite"]["bytes_per_character"]),
        ("SQLite: CPU, ms", found["sqlite"]["cpu_ms"]),
        ("PostgreSQL: bytes of the tape", server["tape_bytes"]),
        ("PostgreSQL: bytes of message and job", server["job_bytes"]),
        ("PostgreSQL: bytes of the log", server["log_bytes"]),
        ("PostgreSQL: transactions", server["transactions"]),
        ("PostgreSQL: flushes", server["flushes"]),
    )
    print("For each turn")
    for text, value in lines:
        print(f"  {text:38}{value:>10,.2f}")
    print("Milliseconds")
    print(f"  {'one commit':38}{server['commit_ms']:>10.2f}")
    print(f"  {'the same, not waited for':38}{server['commit_unflushed_ms']:>10.2f}")
    print(f"  {'a notice':38}{server['notice_ms']:>10.2f}")
    for what, rows in ((f"{PACE:g} messages a second for each", "paced"), ("a backlog", "fast")):
        print(f"\n{what}, by workers")
        for row in found[rows]:
            waits = f"  answered in {row['wait_p50_ms']:.0f} ms" if row["pace"] else ""
            print(f"  {row['workers']}  {shown(row)}, {row['cores']:.2f} cores left{waits}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=200, help="turns for each worker (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="of the workers (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    options = parser.parse_args()
    if options.turns < 20 or options.rounds < 1:
        parser.error("--turns is at least 20, --rounds at least 1")
    with tempfile.TemporaryDirectory(prefix="hookline-capacity-") as name:
        progress("SQLite")
        sqlite = asyncio.run(on_sqlite(Path(name) / "sqlite", options.turns))
        found = {
            **environment(["hookline", "procrastinate", "psycopg"], options.rounds),
            "sqlite": sqlite,
            **on_postgres(Path(name), options.turns, options.rounds),
        }
    report(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
