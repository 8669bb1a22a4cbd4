"""What a command hook costs, beside the bare subprocess that it is.

    python benchmarks/commandhooks.py                   # a minute
    python benchmarks/commandhooks.py --check           # exit code 1 when the threshold is missed
    python benchmarks/commandhooks.py --json result.json

The bare side is `subprocess.run` of the same words, with the same bytes as input and both outputs
captured. Ours is a dispatch of `tool_call` in a running app with one PreToolUse hook: the matcher, the
payload, the transcript brought up to date after an entry was added to the tape, a sandbox, a process
group of its own, its end and its outputs watched, the answer read. The payload is made while the
process starts, which takes a core that is free: on a busy machine the first row, a shell that does
nothing, shows it.

The sandbox was set up after the run before; the first run, in the last column, has to wait for it.
There is a tenth of a second between two runs, as a model takes longer. Each round times both sides in a
random order. Trust the minimum and the ratios.
"""

import argparse
import asyncio
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio

from hookline.events import ToolCallEvent
from hookline.ext.command_hooks.dispatch import shell
from hookline.runtime.app import Hookline

LIMIT = 1.15
PAUSE = 0.1  # seconds between two runs
INPUT = {"command": "pytest -q tests | tail -5"}
READS = "import json, sys; assert json.load(sys.stdin)['tool_name'] == 'Bash'"


@dataclass
class Row:
    name: str
    command: str
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    first: float = 0.0
    turn: int = 0

    def prepare(self, folder: Path) -> None:
        self.folder = folder / self.name.replace(" ", "-")
        (self.folder / "home" / ".claude").mkdir(parents=True)
        hook = {"type": "command", "command": self.command}
        settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
        (self.folder / "home" / ".claude" / "settings.json").write_text(json.dumps(settings))
        self.app = Hookline(home=self.folder / "hookline", workspace=self.folder)
        self.app.load_hooks(packages=False)
        self.app.user_home = self.folder / "home"
        self.words = [shell(), "-c", self.command]
        about = {"session_id": "s", "transcript_path": "x" * 60, "cwd": str(self.folder)}
        asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": INPUT}
        self.body = json.dumps({**about, "permission_mode": "default", **asked}).encode()

    async def run_bare(self) -> None:
        began = perf_counter()
        given = {"input": self.body, "capture_output": True, "cwd": self.folder}
        subprocess.run(self.words, **given, env=os.environ, check=True)
        self.bare.append((perf_counter() - began) * 1e6)

    async def run_ours(self) -> None:
        self.turn += 1
        tape = await self.app.tape("s")
        await tape.append("message", {"message": {"role": "user", "content": f"turn {self.turn}"}})
        event = ToolCallEvent(f"call-{self.turn}", "shell", dict(INPUT))
        fire, ctx = self.app.hooks["tool_call"].fire, self.app.context("s")
        began = perf_counter()
        verdict = await fire(event, ctx)
        self.ours.append((perf_counter() - began) * 1e6)
        assert verdict.allowed

    @property
    def times(self) -> float | None:
        return ratio(min(self.ours), min(self.bare))

    def as_json(self) -> dict[str, Any]:
        return {
            "row": self.name,
            "bare_min_us": min(self.bare),
            "bare_median_us": statistics.median(self.bare),
            "ours_min_us": min(self.ours),
            "ours_median_us": statistics.median(self.ours),
            "first_us": self.first,
            "times": self.times,
        }


def rows() -> list[Row]:
    python = shlex.quote(sys.executable)
    return [
        Row("shell, does nothing", ":"),
        Row("shell, reads its input", 'grep -q \'"tool_name": "Bash"\''),
        Row("python, reads its input", f"{python} -S -c {shlex.quote(READS)}"),
    ]


async def measure(found: list[Row], rounds: int) -> None:
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:
        for row in found:
            await stack.enter_async_context(row.app.running())
            await row.run_ours()
            row.first, row.ours = row.ours[0], []
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for row in random.sample(found, len(found)):
                sides = [row.run_bare, row.run_ours]
                for side in random.sample(sides, 2):
                    await asyncio.sleep(PAUSE)
                    await side()
    progress("")


def print_rows(found: list[Row]) -> None:
    print("One PreToolUse hook: microseconds, and ours as a multiple of the bare subprocess.")
    print(
        f"{'the hook':26}{'bare':>10}{'median':>10}{'ours':>10}{'median':>10}{'times':>8}{'first':>10}"
    )
    for row in found:
        said = row.as_json()
        print(
            f"{row.name:26}{said['bare_min_us']:>10.0f}{said['bare_median_us']:>10.0f}"
            f"{said['ours_min_us']:>10.0f}{said['ours_median_us']:>10.0f}{said['times']:>8.2f}"
            f"{said['first_us']:>10.0f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, help="runs of each row (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    found = rows()
    with tempfile.TemporaryDirectory() as folder:
        for row in found:
            row.prepare(Path(folder))
        asyncio.run(measure(found, options.rounds))
    about = environment(["hookline"], options.rounds)
    checks = [
        Check(f"a command hook ({row.name}), against the bare subprocess", row.times, LIMIT)
        for row in found
    ]
    print_environment(about)
    print_rows(found)
    if options.json:
        said = {
            **about,
            "rows": [row.as_json() for row in found],
            "checks": [check.as_json() for check in checks],
        }
        options.json.write_text(json.dumps(said, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(checks) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
