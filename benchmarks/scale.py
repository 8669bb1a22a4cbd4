"""What durable messages cost, and whether a backlog drains at a constant rate.

    python benchmarks/scale.py                      # some minutes, most of it the backlog
    python benchmarks/scale.py --backlog 10000      # a shorter one
    python benchmarks/scale.py --postgres           # workers on a PostgreSQL of their own
    python benchmarks/scale.py --check              # exit code 1 when a threshold is missed
    python benchmarks/scale.py --json result.json

The inbox beside the tape. In interleaved rounds, on one SQLite file: a message is accepted and settled;
and the entries are appended that a turn leaves, one with a tool call and one without.

The backlog. So many messages, ten to a session, were accepted by a process that is gone. A gateway
starts, and makes their turns with a scripted model. The time of each tenth is taken.

Workers (`scale_cluster.py`). In rounds, one, two and four processes of `hookline worker` make the turns
of messages, each of another session: at a pace for each worker, at four times that for all of them
together, and as fast as they can. Of each number the round counts in which a turn cost them the least
CPU. A busy process does several things each time it is woken, so a turn costs less the busier it is:
where each has as much to do, only what workers cost each other shows. As fast as they can, they are
judged only where there are cores for all. Then two of them drain a backlog, twenty messages to a
session.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from common import Check, print_outcomes
from ends import Ends

from hookline.channel import Channel
from hookline.hooks import hookimpl
from hookline.models import ScriptedModel
from hookline.runtime.app import Hookline
from hookline.runtime.inbox import Inbox
from hookline.runtime.turn import TurnResult
from hookline.serve import Gateway, GatewayChannel
from hookline.tape import SQLiteStore, Tape
from hookline.types import Envelope

ROUNDS = 30
TURNS = 100
STEADY = "CPU of a turn at the end of the backlog beside its start"
RISE = "the workers' CPU of a turn with four of them beside one"
FAST = "as fast as they can"
ROOM = 6
"""Cores for four workers, a gateway and a database, each of which is busy."""
EACH = 10
"""Messages of one session, one after the other: every tenth has sessions of all lengths."""


def message(number: int, session: str) -> dict[str, Any]:
    return {
        "content": f"Message {number}: what is the weather like in the garden today?",
        "channel": "count",
        "chat_id": session,
        "session_id": session,
        "message_id": f"m{number}",
    }


# --- The inbox beside the tape ---


async def accept_and_settle(inbox: Inbox, start: int) -> None:
    for number in range(start, start + TURNS):
        envelope = message(number, "s1")
        await inbox.accept(envelope, "me")
        await inbox.settle(envelope, "answered")


async def append_turns(tape: Tape, start: int, *, with_tool: bool) -> None:
    for number in range(start, start + TURNS):
        begun = {"status": "started", "turn_id": str(number), "envelope": message(number, "s1")}
        said = {"message": {"role": "user", "content": f"Message {number}"}}
        await tape.append_many([("turn", begun), ("message", said)])
        if with_tool:
            call = {"id": "c1", "name": "add", "arguments": {"a": 1, "b": 2}}
            asked = {"role": "assistant", "content": "", "tool_calls": [call]}
            await tape.append("message", {"message": asked})
            await tape.append("tool_call", call)
            await tape.append("tool_result", {"tool_call_id": "c1", "name": "add", "content": "3"})
        await tape.append("message", {"message": {"role": "assistant", "content": "It is sunny."}})
        await tape.append("turn", {"status": "completed", "turn_id": str(number)})


async def overhead(folder: Path) -> dict[str, float]:
    """Microseconds of CPU for each turn, and the medians of the ratios."""
    store = SQLiteStore(folder / "tape.db")
    inbox = Inbox(store)
    plain, tools = await Tape.open(store, "plain"), await Tape.open(store, "tools")
    rows: list[tuple[float, float, float]] = []
    for round_ in range(ROUNDS):
        start, spent = round_ * TURNS, []
        for work in (
            accept_and_settle(inbox, start),
            append_turns(plain, start, with_tool=False),
            append_turns(tools, start, with_tool=True),
        ):
            began = process_time()
            await work
            spent.append((process_time() - began) / TURNS * 1e6)
        rows.append((spent[0], spent[1], spent[2]))
    await store.close()
    return {
        "inbox_us": statistics.median(row[0] for row in rows),
        "tape_us": statistics.median(row[1] for row in rows),
        "tape_with_tool_us": statistics.median(row[2] for row in rows),
        "ratio": statistics.median(row[0] / row[1] for row in rows),
        "ratio_with_tool": statistics.median(row[0] / row[2] for row in rows),
    }


# --- The backlog ---


class Counter(GatewayChannel):
    """A channel that counts answers."""

    name = "count"

    def __init__(self, total: int) -> None:
        self.total = total
        self.count = 0
        self.marks: list[tuple[float, float]] = []
        self.done = asyncio.Event()

    async def send(self, outbound: Envelope) -> bool:
        return True

    def reply_to(self, message: Envelope) -> Channel:
        return Ends(self, message)

    def end(self, inbound: Envelope, result: TurnResult) -> None:
        self.count += 1
        if self.count % (self.total // 10) == 0:
            self.marks.append((perf_counter(), process_time()))
        if self.count == self.total:
            self.done.set()

    def error(self, inbound: Envelope, message: str) -> None:
        raise SystemExit(message)

    @hookimpl
    def provide_channels(self) -> list[GatewayChannel]:
        return [self]


async def drain(folder: Path, total: int) -> list[dict[str, float]]:
    """Turns per second and CPU for each turn, for every tenth of the backlog."""
    app = Hookline(home=folder / "home", workspace=folder, project=False)
    app.load_hooks(packages=False)
    model = ScriptedModel(["It is sunny."], repeat=True, record=False)
    app.models.add(model)
    app.model = model.name
    counter = Counter(total)
    app.hooks.add(counter)
    async with app.running():
        inbox = Inbox(app.store())  # type: ignore[arg-type]
        for number in range(total):
            await inbox.accept(message(number, f"s{number // EACH}"), "gone")
    began = (perf_counter(), process_time())
    async with Gateway(app, enabled=["count"]).running():
        await counter.done.wait()
    tenth = total // 10
    return [
        {"per_second": tenth / (b[0] - a[0]), "cpu_us": (b[1] - a[1]) / tenth * 1e6}
        for a, b in zip([began, *counter.marks], counter.marks, strict=False)
    ]


def on_sqlite(folder: Path, backlog: int) -> tuple[dict[str, Any], list[Check]]:
    """The inbox beside the tape, and the backlog."""
    cost = asyncio.run(overhead(folder))
    tenths = asyncio.run(drain(folder, backlog))
    print("CPU for each message, µs")
    print(f"  accept and settle       {cost['inbox_us']:8.1f}")
    print(f"  tape of a plain turn    {cost['tape_us']:8.1f}   ratio {cost['ratio']:.2f}")
    tool = f"{cost['tape_with_tool_us']:8.1f}   ratio {cost['ratio_with_tool']:.2f}"
    print(f"  tape of one with a tool {tool}")
    print(f"A backlog of {backlog:,} messages, by tenths")
    for number, tenth in enumerate(tenths, 1):
        print(
            f"  {number:2}  {tenth['per_second']:8.0f} turns/s  {tenth['cpu_us']:7.0f} µs of CPU each"
        )
    checks = [
        Check("the inbox beside the tape of a plain turn", cost["ratio"], 1.0),
        Check(STEADY, grown([tenth["cpu_us"] for tenth in tenths]), 1.15),
    ]
    return {"overhead": cost, "backlog": tenths}, checks


def on_postgres(
    folder: Path, turns: int, count: int, pace: float, backlog: int
) -> tuple[dict[str, Any], list[Check]]:
    """Workers, and a backlog."""
    from database import Server
    from scale_cluster import rounds, shown, work

    server = Server()
    tried = {
        f"{pace:g} messages a second for each": asyncio.run(rounds(server, folder, turns, count, pace)),
        f"{4 * pace:g} messages a second in sum": asyncio.run(
            rounds(server, folder, 2 * turns, count, 4 * pace, in_sum=True)
        ),
        FAST: asyncio.run(rounds(server, folder, 4 * turns, count)),
    }
    for what, rows in tried.items():
        print(f"{count} rounds, {what}, by workers")
        for row in rows:
            print(f"  {row['workers']}  {shown(row)}")
    paced, in_sum, fast = tried.values()
    print(f"To accept a message, ms: {paced[0]['accept_ms']:.2f} of the gateway, ", end="")
    print(f"{paced[0]['accept_database_ms']:.2f} of the database")
    drained = asyncio.run(work(server, folder / "backlog", 2, backlog, backlog // 20))
    print(f"A backlog of {backlog:,} messages, two workers; from the second tenth on")
    for number, tenth in enumerate(drained["tenths"], 2):
        print(f"  {number:2}  {shown(tenth)}")
    spent = [tenth["worker_ms"] + tenth["database_ms"] for tenth in drained["tenths"]]
    rises = {what: rows[-1]["worker_ms"] / rows[0]["worker_ms"] for what, rows in tried.items()}
    for what, rise in rises.items():
        print(f"From one worker to four, {what}: {rise:.2f}")
    if (cores := os.cpu_count() or 1) < ROOM:
        rises = {what: rise if what != FAST else None for what, rise in rises.items()}
        print(f"There are {cores} cores, and busy workers of which each has one need {ROOM}.")
    checks = [Check(f"{RISE}, {what}", rise, 1.15) for what, rise in rises.items()]
    checks.append(Check(STEADY, grown(spent), 1.15))
    return {"paced": paced, "in_sum": in_sum, "fast": fast, "backlog": drained}, checks


def grown(tenths: list[float]) -> float:
    """How much more the last tenths took than the first ones, without the very first."""
    return statistics.median(tenths[-3:]) / statistics.median(tenths[1:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--turns", type=int, default=300, help="of each round, on PostgreSQL")
    parser.add_argument("--rounds", type=int, default=3, help="on PostgreSQL")
    parser.add_argument("--pace", type=float, default=10.0, help="messages a second for each worker")
    parser.add_argument("--backlog", type=int, default=100_000)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hookline-scale-") as name:
        folder = Path(name)
        if asked.postgres:
            found, checks = on_postgres(folder, asked.turns, asked.rounds, asked.pace, asked.backlog)
        else:
            found, checks = on_sqlite(folder, asked.backlog)
    passed = print_outcomes(checks)
    if asked.json:
        asked.json.write_text(json.dumps({**found, "checks": [c.as_json() for c in checks]}, indent=2))
    if asked.check:
        sys.exit(not passed)


if __name__ == "__main__":
    main()
