"""How many recorded tool calls a backtest judges in a second, on one core.

    python benchmarks/backtest.py                   # some twenty seconds
    python benchmarks/backtest.py --check           # exit code 1 when the threshold is missed
    python benchmarks/backtest.py --json result.json

A tape of 40,000 calls in 40 sessions is made first, in the form that the runner writes. Each round is
the whole backtest of it: the file is opened, rows are read and decoded, every call goes through the
runner's gates, the decision is compared with the recorded one. Making the app is not in it. The rows:
no hook, a hook that looks at every call and says nothing, one that denies every tenth, and a guard
that rewrites arguments; a round has one of each, so that a slow moment of the machine falls on all
alike. CPU counts, and the best round: calls per second of it are calls per second and core.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from common import Check, environment, print_environment, print_outcomes, progress

from hookline.events import ToolCallEventResult
from hookline.observe.replay import ReplayApp, backtest
from hookline.policy import Policy
from hookline.tape import Entry, SQLiteStore
from hookline.tape.sqlite.reader import TapeReader

WANTED = 20_000
RULINGS = {"rulings": [{"by": "default auto", "decision": "allow", "reason": None, "changed": []}]}


async def make_tape(path: Path, calls: int, sessions: int) -> None:
    store = SQLiteStore(path)
    for number in range(sessions):
        name = f"terminal:{number}"
        entries: list[Entry] = []

        def add(kind, payload, meta=None, name=name, entries=entries):
            parent = entries[-1].id if entries else None
            entries.append(Entry.new(name, parent, kind, payload, meta))

        for turn in range(calls // sessions // 10):
            envelope = {"content": "go", "channel": "terminal", "sender_id": "ada"}
            begun = {"status": "started", "turn_id": f"t{turn}", "envelope": envelope, "system": ""}
            add("turn", begun)
            add("message", {"message": {"role": "user", "content": "go"}})
            for call in range(10):
                arguments = {"path": f"src/part_{turn % 50}/file_{call}.py", "end": 100}
                asked = {"id": f"c{number}_{turn}_{call}", "name": "read_file"}
                written = json.dumps(arguments)
                said = {**asked, "arguments": written}
                add("message", {"message": {"role": "assistant", "content": "", "tool_calls": [said]}})
                add("tool_call", {**asked, "arguments": arguments, "requested": written}, RULINGS)
                result = {"tool_call_id": asked["id"], "name": "read_file", "content": "x" * 400}
                add("tool_result", {**result, "is_error": False, "ran": True, "terminate": False})
            add("turn", {"status": "completed", "turn_id": f"t{turn}"})
        await store.append(entries)
        progress(f"making the tape: {number + 1} of {sessions} sessions")
    await store.close()


def nothing(app):
    pass


def looks(app):
    app.hooks.register("tool_call", lambda event: None)


def denies(app):
    no = ToolCallEventResult(block=True, reason="no")
    app.hooks.register("tool_call", lambda e: no if e.input["path"].endswith("_9.py") else None)


def rewrites(app):
    app.hooks.register("before_tool_call", lambda arguments: {**arguments, "end": 100}, guard=True)


async def one_round(folder: Path, attach) -> tuple[float, float, int]:
    def make() -> ReplayApp:
        app = ReplayApp(home=folder, workspace=folder, policy=Policy(default="auto"), project=False)
        app.load_hooks(packages=False)
        attach(app)
        return app

    app = make()
    with TapeReader(folder / "tape.db") as reader:
        started, worked = perf_counter(), process_time()
        report = await backtest(lambda: app, reader)
        return perf_counter() - started, process_time() - worked, report.calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    about = environment(["hookline"], options.rounds)
    print_environment(about)
    rows = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        asyncio.run(make_tape(folder / "tape.db", options.calls, 40))
        found = {attach: [] for attach in (nothing, looks, denies, rewrites)}
        for number in range(options.rounds):
            progress(f"round {number + 1} of {options.rounds}")
            for attach, rounds in found.items():
                rounds.append(asyncio.run(one_round(folder, attach)))
    for attach, rounds in found.items():
        wall, work, calls = min(rounds, key=lambda one: one[1])
        median = calls / statistics.median(work for _, work, _ in rounds)
        rows[attach.__name__] = {
            "calls": calls, "wall": wall, "cpu": work, "rate": calls / work, "median": median,
        }  # fmt: skip
    print(f"\n{'hook':10} {'calls':>8} {'wall s':>8} {'cpu s':>8} {'calls/s/core':>13} {'median':>8}")
    for name, row in rows.items():
        times = f"{row['wall']:8.2f} {row['cpu']:8.2f} {row['rate']:13,.0f} {row['median']:8,.0f}"
        print(f"{name:10} {row['calls']:8} {times}")
    what = "calls per second and core, a hook that looks at every call"
    check = Check(what, rows["looks"]["rate"], WANTED, at_least=True, unit="/s")
    passed = print_outcomes([check])
    if options.json:
        said = {"environment": about, "rows": rows, "checks": [check.as_json()]}
        options.json.write_text(json.dumps(said, indent=2))
    if options.check and not passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
