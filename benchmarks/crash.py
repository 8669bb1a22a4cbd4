"""Kill processes at random moments over a workload, and see what is left.

    python benchmarks/crash.py                       # 200 kills of a gateway on SQLite
    python benchmarks/crash.py --kills 20 --json result.json

Each round takes a new home and a plan of messages to several sessions. A process works on it and is
killed by SIGKILL at a random moment, again and again; the last one may finish. Then the tapes, the
inbox and what the tool wrote are compared with the plan.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hookline.tape import SQLiteStore, TapeStore

PROCESS = Path(__file__).with_name("crash_process.py")


@dataclass
class Report:
    """What was found, added up over the rounds."""

    store: str
    workers: int
    kills: int = 0
    messages: int = 0
    calls_interrupted: int = 0
    sent_twice: int = 0
    """Not a fault: a crash between sending and recording; the channel can drop the second."""
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        return (
            f"{self.store:10} {self.workers:7} {self.kills:6} {self.messages:9} "
            f"{self.calls_interrupted:12} {self.sent_twice:11} "
            f"{len(self.faults):7}"
        )


HEAD = "store      workers  kills  messages  interrupted  sent twice  faults"


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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


async def examine(store: TapeStore, folder: Path, plan: dict[str, list[str]], report: Report) -> None:
    """Compare what is left with the plan."""
    ran, faults = Counter(lines(folder / "ran.txt")), report.faults
    for session, names in plan.items():
        entries = await store.entries(session)
        started = [e for e in entries if e.kind == "turn" and e.payload["status"] == "started"]
        turns = [e.payload["envelope"]["message_id"] for e in started]
        if missing := set(names) - set(turns):
            faults.append(f"{session}: lost {sorted(missing)}")
        if len(turns) != len(set(turns)):
            faults.append(f"{session}: two turns for one message")
        if turns != sorted(turns, key=names.index):
            faults.append(f"{session}: out of order: {turns}")
        ends = Counter(
            e.payload["turn_id"]
            for e in entries
            if e.kind == "turn" and e.payload["status"] == "completed"
        )
        if any(ends[e.payload["turn_id"]] != 1 for e in started):
            faults.append(f"{session}: a turn without one end")
        said = [e.payload["message"] for e in entries if e.kind == "message"]
        answers = Counter(m["content"] for m in said if m["role"] == "assistant" and m["content"])
        for name in names:
            if answers[f"paid {name}"] != 1:
                faults.append(f"{name}: {answers[f'paid {name}']} answers")
            if ran[name] > 1:
                faults.append(f"{name}: its tool ran {ran[name]} times")
        for before, entry in zip([None, *entries], entries, strict=False):
            if entry.parent_id != (before and before.id):
                faults.append(f"{session}: entry {entry.id} does not follow the one before")
        calls = Counter(e.payload["id"] for e in entries if e.kind == "tool_call")
        results = Counter(e.payload["tool_call_id"] for e in entries if e.kind == "tool_result")
        if set(calls) - set(results) or max(results.values(), default=1) > 1:
            faults.append(f"{session}: calls and results do not match")
        report.calls_interrupted += sum(
            e.payload["is_error"] for e in entries if e.kind == "tool_result"
        )
        report.messages += len(names)
    sent = Counter(lines(folder / "sent.txt"))
    report.sent_twice += sum(count > 1 for count in sent.values())
    if unsent := {f"{name}/0 paid {name}" for names in plan.values() for name in names} - set(sent):
        faults.append(f"never sent: {sorted(unsent)}")
    if errors := lines(folder / "errors.txt"):
        faults.append(f"errors were told: {errors[:3]}")


async def round_on_sqlite(report: Report, kills: int, sessions: int, messages: int, seed: int) -> None:
    """One plan, one home, one process at a time."""
    with tempfile.TemporaryDirectory(prefix="hookline-crash-") as name:
        folder = Path(name)
        arguments = [name, str(sessions), str(messages)]
        report.kills += run_and_kill(arguments, kills, 1.0, seed)
        plan = {f"s{s}": [f"s{s}-m{m}" for m in range(messages)] for s in range(sessions)}
        store = SQLiteStore(folder / "home" / "tape.db")
        await examine(store, folder, plan, report)
        (waiting,) = (
            await store.using(
                "read", lambda db: db.execute("SELECT count(*) FROM inbox WHERE outcome IS NULL")
            )
        ).fetchone()
        if waiting:
            report.faults.append(f"{waiting} messages are still in the inbox")
        await store.close()


async def suite(kills: int, seed: int) -> list[Report]:
    """Rounds until so many processes were killed."""
    report, number = Report("SQLite", 1), 0
    while report.kills < kills and not report.faults:
        number += 1
        await round_on_sqlite(report, min(25, kills - report.kills), 6, 60, seed + number)
        print(f"{report.kills} kills, {len(report.faults)} faults", file=sys.stderr, flush=True)
    return [report]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    reports = asyncio.run(suite(asked.kills, asked.seed))
    print(f"seed {asked.seed}\n{HEAD}")
    for report in reports:
        print(report.row(), *(fault[:200] for fault in report.faults[:20]), sep="\n  ")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(report) for report in reports], indent=2))
    sys.exit(any(report.faults for report in reports))


if __name__ == "__main__":
    main()
