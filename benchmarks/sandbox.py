"""What the sandbox costs: the start of a command, and opening files in it.

    python benchmarks/sandbox.py             # some twenty seconds
    python benchmarks/sandbox.py --check     # exit code 1 when a threshold is missed

Each round times both sides, one after the other. The start is `sh -c true`, from putting the command
line together to the end of the process. The files are opened and closed by one Python process, which
times itself. Root measures at real-time priority, so that other work on the machine counts less. Trust
the minimum and the ratios.
"""

import argparse
import os
import statistics
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from hookline.sandbox import Sandbox
from hookline.system.children.process import run

ROUNDS = 40
MOST_MS = 10.0
MOST_OPENS = 1.15
OPENS = (
    "import os, time; t = time.perf_counter();"
    "[os.close(os.open(f'files/{i % 300}', os.O_RDONLY)) for i in range(3000)];"
    "print(time.perf_counter() - t)"
)


class Sides:
    """A command, plain and confined."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sandbox = Sandbox(workspace=folder, home=folder / "home")

    def plain(self, *argv: str) -> str:
        """Run a command as it is; what it prints."""
        return run(argv, cwd=self.folder, timeout=60).stdout.decode()

    def confined(self, *argv: str) -> str:
        """Run a command in the sandbox; what it prints."""
        return run(argv, cwd=self.folder, timeout=60, sandbox=self.sandbox).stdout.decode()


def main() -> None:
    """Measure, print, and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    with tempfile.TemporaryDirectory() as name:
        sides = Sides(Path(name).resolve())
        if not sides.sandbox.active:
            print(f"no sandbox here: {sides.sandbox.reason}")
            return
        (sides.folder / "files").mkdir()
        for number in range(300):
            (sides.folder / "files" / str(number)).touch()
        starts: dict[str, list[float]] = {"plain": [], "confined": []}
        opens: dict[str, list[float]] = {"plain": [], "confined": []}
        for side in (sides.plain, sides.confined):  # the first one of each warms up
            side("/bin/sh", "-c", "true")
        for _ in range(chosen.rounds):
            for side, command in (("plain", sides.plain), ("confined", sides.confined)):
                began = perf_counter()
                command("/bin/sh", "-c", "true")
                starts[side].append((perf_counter() - began) * 1000)
                opens[side].append(float(command(sys.executable, "-I", "-c", OPENS)) * 1000)
        sides.sandbox.close()
    print(f"{'':24}{'plain':>10}{'confined':>10}")
    for what, found in (("sh -c true, ms", starts), ("3,000 opens, ms", opens)):
        for how, measure in (("minimum", min), ("median", statistics.median)):
            values = "".join(f"{measure(found[side]):10.2f}" for side in ("plain", "confined"))
            print(f"{what + ', ' + how:24}{values}")
    more = min(starts["confined"]) - min(starts["plain"])
    ratio = min(opens["confined"]) / min(opens["plain"])
    print(f"a start costs {more:.1f} ms more (at most {MOST_MS:g})")
    print(f"opens take {ratio:.2f} times as long (at most {MOST_OPENS:g})")
    if chosen.check and (more > MOST_MS or ratio > MOST_OPENS):
        sys.exit(1)


if __name__ == "__main__":
    main()
