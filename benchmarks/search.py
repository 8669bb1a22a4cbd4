"""What searching a large repository costs: `search_files` beside `git grep`, on the same patterns.

    python benchmarks/search.py                   # about two minutes, half of it making the repository
    python benchmarks/search.py --files 5000      # a smaller repository
    python benchmarks/search.py --check           # exit code 1 when a threshold is missed
    python benchmarks/search.py --json result.json

The repository is made in a temporary folder and committed. Each round runs every contender on every
pattern, in a new random order, after one round that is not counted and fills the file cache. `git grep`
prints every line into a pipe; `search_files` is the whole tool call, with its processes, and shows at
most 200 lines, as it does for a model: that is why it wins on a pattern that is everywhere. The row
"everywhere, all" lifts that to 5,000. Trust the minimum and the ratios.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio

from hookline.ext.tools import builtin_tools
from hookline.tools import Registry, ToolContext

SEARCH = Registry(builtin_tools()).get("search_files")
WORDS = ["def", "return", "import", "class", "self", "value", "index", "for", "in", "while", "if"]


@dataclass
class Search:
    """One pattern, and the seconds that each contender took each time."""

    name: str
    git: list[str]
    ours: dict[str, Any]
    git_seconds: list[float] = field(default_factory=list[float])
    our_seconds: list[float] = field(default_factory=list[float])

    def run_git(self, folder: Path) -> None:
        started = perf_counter()
        done = subprocess.run(
            ["git", "grep", "-n", "-I", *self.git], cwd=folder, capture_output=True, check=False
        )
        self.git_seconds.append(perf_counter() - started)
        if done.returncode not in {0, 1}:
            raise RuntimeError(f"git grep failed: {done.stderr.decode()}")

    async def run_ours(self, folder: Path) -> None:
        started = perf_counter()
        context = ToolContext(workspace=folder)
        await SEARCH._invoke(SEARCH.validate(self.ours), context, lambda value: None)
        self.our_seconds.append(perf_counter() - started)

    @property
    def speed(self) -> float | None:
        """Ours as a multiple of git's: 1 is as fast, 0.5 takes twice as long."""
        return ratio(min(self.git_seconds, default=None), min(self.our_seconds, default=None))

    def as_json(self) -> dict[str, Any]:
        return {
            "pattern": self.name,
            "git_min_ms": min(self.git_seconds) * 1e3,
            "git_median_ms": statistics.median(self.git_seconds) * 1e3,
            "ours_min_ms": min(self.our_seconds) * 1e3,
            "ours_median_ms": statistics.median(self.our_seconds) * 1e3,
            "speed": self.speed,
        }


def searches() -> list[Search]:
    return [
        Search("rare, a word", ["-F", "needle_function"], {"pattern": "needle_function"}),
        Search("rare, an expression", ["-E", r"needle_\w+\("], {"pattern": r"needle_\w+\("}),
        Search(
            "rare, ignoring case",
            ["-i", "-E", r"NEEDLE_\w+"],
            {"pattern": r"NEEDLE_\w+", "ignore_case": True},
        ),
        Search("nowhere", ["-F", "no such text"], {"pattern": "no such text"}),
        Search(
            "no literal, rare",
            ["-E", "[m-n][e-f]{2}[d-e][l-m][e-f]_[f-g]"],
            {"pattern": "[m-n][e-f]{2}[d-e][l-m][e-f]_[f-g]"},
        ),
        Search("everywhere", ["-F", "return"], {"pattern": "return"}),
        Search("everywhere, all", ["-F", "return"], {"pattern": "return", "limit": 5000}),
    ]


def make_repository(folder: Path, files: int) -> None:
    chance = random.Random(1)
    words = [f"name_{chance.randrange(10**6)}" for _ in range(5000)] + WORDS * 100
    for number in range(files):
        place = folder / f"package_{number % 50}" / f"part_{number // 50 % 40}"
        place.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(chance.choices(words, k=8)) for _ in range(chance.randrange(10, 100))]
        if number % 5000 == 7:
            lines[3] = "needle_function(1234)"
        (place / f"module_{number}.py").write_text("\n".join(lines) + "\n")
    # nothing is packed behind our back, neither while we measure nor when we remove the folder
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "config", "gc.auto", "0"], cwd=folder, check=True)
    who = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org"]
    for command in (["add", "."], [*who, "commit", "-q", "-m", "files"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


async def measure(rows: list[Search], folder: Path, rounds: int) -> None:
    for number in range(rounds + 1):
        progress(f"round {number} of {rounds}" if number else "filling the cache")
        for row in random.sample(rows, len(rows)):
            if random.random() < 0.5:
                row.run_git(folder)
                await row.run_ours(folder)
            else:
                await row.run_ours(folder)
                row.run_git(folder)
        if number == 0:
            for row in rows:
                row.git_seconds.clear()
                row.our_seconds.clear()
    progress("")


def print_rows(rows: list[Search], files: int) -> None:
    print(f"Searching {files:,} files: milliseconds, and our speed as a multiple of git's.")
    print(f"{'':24}{'git grep':>10}{'median':>10}{'ours':>10}{'median':>10}{'speed':>8}")
    for row in rows:
        found = row.as_json()
        print(
            f"{row.name:24}{found['git_min_ms']:>10.0f}{found['git_median_ms']:>10.0f}"
            f"{found['ours_min_ms']:>10.0f}{found['ours_median_ms']:>10.0f}{found['speed']:>8.2f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=50_000, help="in the repository (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="searches of each row (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    options = parser.parse_args()
    if options.rounds < 1 or options.files < 1:
        parser.error("--rounds and --files must be at least 1")

    rows = searches()
    about = environment(["hookline"], options.rounds)
    with tempfile.TemporaryDirectory() as directory:
        progress("making the repository")
        make_repository(Path(directory), options.files)
        asyncio.run(measure(rows, Path(directory), options.rounds))
    outcomes = [
        Check(f"search_files against git grep: {row.name}", row.speed, 0.5, at_least=True)
        for row in rows
    ]
    print_environment(about)
    print_rows(rows, options.files)
    if options.json:
        found = {
            **about,
            "files": options.files,
            "searches": [row.as_json() for row in rows],
            "checks": [check.as_json() for check in outcomes],
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
