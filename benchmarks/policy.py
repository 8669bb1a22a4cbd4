"""What judging a tool call by ten Cedar policies costs, beside the bare call of the Cedar engine.

    python benchmarks/policy.py                   # some ten seconds
    python benchmarks/policy.py --check           # exit code 1 when a threshold is missed
    python benchmarks/policy.py --json result.json

Both sides have the same ten policies, parsed once, and the same entities, parsed once; the bare call is
`cedarpy.is_authorized` with the finished question. Ours begins with the action that the runner gives
and ends with the rulings: the facts that the policies ask for are worked out each time. The threshold
is on "arguments". The other rows are shown beside it: looking for symlinks on the way to a file, and
taking a command line apart, is work that the engine does not do at all.
Each round times a batch of both, in a random order. Trust the minimum and the ratios.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import cedarpy
from common import Check, environment, print_environment, print_outcomes, progress, ratio

from hookline.policy import Policy, load_pack
from hookline.policy.facts import Facts
from hookline.policy.prepared import entities, parties

ARGUMENTS = [
    'context.arguments has path && context.arguments.path like "*.secret"',
    'context.arguments has path && context.arguments.path like "private/*"',
    'principal in User::"eve"',
    'principal in Channel::"untrusted"',
    "principal.depth > 3",
    'resource in Namespace::"dangerous"',
    'resource == Tool::"format_disk"',
    'context.source == "trigger" && principal.channel == "cron"',
    'context.permissions.contains("root")',
    'context.workspace like "/production/*"',
]
PATHS = [
    *ARGUMENTS[2:8],
    'context.path_text like "*/.ssh/*"',
    'context.path_text like "*/.env\\n*"',
    'context.path_text like "*.pem\\n*"',
    "context.outside",
]
COMMANDS = [
    *ARGUMENTS[2:8],
    'context.programs.contains("mkfs")',
    'context.options.containsAny(["rm -r", "rm -R"])',
    'context.command_text like "*\\ngit push*"',
    "context.opaque",
]


@dataclass
class Row:
    name: str
    conditions: list[str]
    tool: str
    effect: str
    arguments: dict[str, Any]
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    def prepare(self, folder: Path, workspace: Path) -> None:
        place = folder / self.name.replace(" ", "-")
        place.mkdir()
        (place / "pack.toml").write_text('id = "ten"\nversion = "1"\n')
        rules = (f"forbid (principal, action, resource) when {{ {c} }};" for c in self.conditions)
        (place / "ten.cedar").write_text("\n".join(rules))
        self.policy = Policy(default="allow", packs=[load_pack(place)])
        self.action = {
            "kind": "tool.call", "tool": self.tool, "name": self.tool, "namespace": "",
            "side_effects": self.effect, "permissions": [], "arguments": self.arguments,
            "call_id": "c", "session_id": "s", "agent_id": "main", "depth": 0, "source": "model",
            "channel": "terminal", "user": "ada", "workspace": str(workspace), "authorized": None,
        }  # fmt: skip
        prepared = self.policy._rules
        facts = Facts(self.action)
        self.request = {**prepared.request(facts), "context": facts.context(prepared.wanted)}
        self.policies = prepared.policies
        self.entities = entities(*parties(self.action))
        assert cedarpy.is_authorized(self.request, self.policies, self.entities).allowed

    def run_bare(self, batch: int) -> None:
        began = perf_counter()
        for _ in range(batch):
            cedarpy.is_authorized(self.request, self.policies, self.entities)
        self.bare.append((perf_counter() - began) / batch * 1e6)

    async def run_ours(self, batch: int) -> None:
        began = perf_counter()
        for _ in range(batch):
            await self.policy.judge(self.action)
        self.ours.append((perf_counter() - began) / batch * 1e6)

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
            "times": self.times,
        }


def rows() -> list[Row]:
    return [
        Row("arguments", ARGUMENTS, "read_file", "read", {"path": "src/app.py", "start": 1}),
        Row("paths", PATHS, "write_file", "write", {"path": "src/app.py", "content": "x = 1\n" * 40}),
        Row("commands", COMMANDS, "shell", "external", {"command": "pytest -q tests | tail -5"}),
    ]


async def measure(found: list[Row], rounds: int, batch: int) -> None:
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for row in random.sample(found, len(found)):
            if random.random() < 0.5:
                row.run_bare(batch)
                await row.run_ours(batch)
            else:
                await row.run_ours(batch)
                row.run_bare(batch)
    progress("")


def print_rows(found: list[Row]) -> None:
    print("Judging a call by ten policies: microseconds, and ours as a multiple of the bare call.")
    print(f"{'policies about':20}{'cedarpy':>10}{'median':>10}{'ours':>10}{'median':>10}{'times':>8}")
    for row in found:
        said = row.as_json()
        print(
            f"{row.name:20}{said['bare_min_us']:>10.1f}{said['bare_median_us']:>10.1f}"
            f"{said['ours_min_us']:>10.1f}{said['ours_median_us']:>10.1f}{said['times']:>8.2f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300, help="batches of each row (%(default)s)")
    parser.add_argument("--batch", type=int, default=30, help="calls in a batch (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1 or options.batch < 1:
        parser.error("--rounds and --batch must be at least 1")
    found = rows()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        (workspace / "src").mkdir(parents=True)
        (workspace / "src" / "app.py").touch()
        for row in found:
            row.prepare(Path(folder), workspace)
        asyncio.run(measure(found, options.rounds, options.batch))
    about = environment(["hookline", "cedarpy"], options.rounds)
    checks = [
        Check(f"ten policies about {row.name}, against the bare call", row.times, 1.5)
        for row in found
        if row.name == "arguments"
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
