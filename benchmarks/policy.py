"""What judging a tool call by ten Cedar policies costs, beside the bare call of the Cedar engine.

    python benchmarks/policy.py                   # some ten seconds
    python benchmarks/policy.py --check           # exit code 1 when a threshold is missed
    python benchmarks/policy.py --json result.json

Both sides have the same ten policies, parsed once, and the same entities, parsed once; the bare call is
`cedarpy.is_authorized` with the finished question. Ours begins with the action that the runner gives
and ends with the rulings: the facts that the policies ask for are worked out each time. Looking for
symlinks on the way to a file, and taking a command line apart, is work that the engine does not do.
In a batch every call is a different one: another file, another command line; both sides get the same.
The row "shipped packs" has no threshold: three packs, and lines with quotes and redirections.
Each round times a batch of both, in a random order. Trust the minimum and the ratios.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import cedarpy
from common import Check, environment, print_environment, print_outcomes, progress, ratio

from hookline.policy import Policy, load_pack
from hookline.policy.compiled_rules import PERMIT, entities, parties, question, wanted
from hookline.policy.facts import Facts
from hookline.policy.pack import find_pack
from hookline.text.shell.reader import _commands_of

BATCH = 30
CONTENT = "x = 1\n" * 40
PACKS = ("protected-paths", "destructive-shell", "network-egress")
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
    arguments: Callable[[int], dict[str, Any]]
    packs: tuple[str, ...] = ()
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    def prepare(self, folder: Path, workspace: Path) -> None:
        packs = [find_pack(name, folder, {}) for name in self.packs] or [self.written(folder)]
        self.policy = Policy(default="allow", packs=[load_pack(pack) for pack in packs])
        self.actions = [self.action(number, workspace) for number in range(BATCH)]
        text = "\n".join(rule.text for pack in self.policy.packs for rule in pack.rules)
        pair = parties(self.actions[0])
        self.requests = [
            {**question(pair), "context": Facts(action).context(wanted(text))}
            for action in self.actions
        ]
        self.policies = cedarpy.PolicySet.from_str(f"{PERMIT}\n{text}")
        self.entities = entities(pair)
        for request in self.requests:
            assert cedarpy.is_authorized(request, self.policies, self.entities).allowed

    def written(self, folder: Path) -> Path:
        place = folder / self.name.replace(" ", "-")
        place.mkdir()
        (place / "pack.toml").write_text('id = "ten"\nversion = "1"\n')
        rules = (f"forbid (principal, action, resource) when {{ {c} }};" for c in self.conditions)
        (place / "ten.cedar").write_text("\n".join(rules))
        return place

    def action(self, number: int, workspace: Path) -> dict[str, Any]:
        return {
            "kind": "tool.call", "tool": self.tool, "name": self.tool, "namespace": "",
            "side_effects": self.effect, "permissions": [], "arguments": self.arguments(number),
            "call_id": "c", "session_id": "s", "agent_id": "main", "depth": 0, "source": "model",
            "channel": "terminal", "user": "ada", "workspace": str(workspace), "authorized": None,
        }  # fmt: skip

    def run_bare(self) -> None:
        began = perf_counter()
        for request in self.requests:
            cedarpy.is_authorized(request, self.policies, self.entities)
        self.bare.append((perf_counter() - began) / BATCH * 1e6)

    async def run_ours(self) -> None:
        _commands_of.cache_clear()  # so that every command line is read again
        began = perf_counter()
        for action in self.actions:
            await self.policy.judge(action)
        self.ours.append((perf_counter() - began) / BATCH * 1e6)

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
        Row("arguments", ARGUMENTS, "read_file", "read", lambda n: {"path": file(n), "start": 1}),
        Row("paths", PATHS, "write_file", "write", lambda n: {"path": file(n), "content": CONTENT}),
        Row("commands", COMMANDS, "shell", "external", lambda n: {"command": command(n)}),
        Row("shipped packs", [], "shell", "external", lambda n: {"command": longer(n)}, PACKS),
    ]


def file(number: int) -> str:
    return f"src/app{number}.py"


def command(number: int) -> str:
    return f"pytest -q tests/test_{number}.py | tail -{number}"


def longer(number: int) -> str:
    return f"grep -rn \"def main\" 'src' > out{number}.txt 2>&1 && wc -l out{number}.txt"


async def measure(found: list[Row], rounds: int) -> None:
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for row in random.sample(found, len(found)):
            if random.random() < 0.5:
                row.run_bare()
                await row.run_ours()
            else:
                await row.run_ours()
                row.run_bare()
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    found = rows()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        (workspace / "src").mkdir(parents=True)
        for number in range(BATCH):
            (workspace / file(number)).touch()
        for row in found:
            row.prepare(Path(folder), workspace)
        asyncio.run(measure(found, options.rounds))
    about = environment(["hookline", "cedarpy"], options.rounds)
    checks = [
        Check(f"ten policies about {row.name}, against the bare call", row.times, 1.5)
        for row in found
        if not row.packs
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
