"""Search for a command line that a real shell reads in another way than Hookline does.

    python -m tests.security.shell_search --seed 7 --count 2000

Each seed is a new set of command lines; the tests of the suite use fixed ones. A command that the
reader got wrong is printed, and belongs in `FOUND` of `test_shell_differential.py`.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from hookline.text.shell import Word, commands_of

from . import shell_sandbox
from .shell_grammar import command_line

BATCH = 500
"""Command lines for one start of the sandbox."""


def fits(call: list[Word], argv: list[str]) -> bool:
    """Whether a program was called as the reader said; an unknown word may be any number of them."""
    if call[0].text != argv[0]:
        return False
    places = past_dynamic({1}, call)
    for argument in argv[1:]:
        following: set[int] = set()
        for place in places:
            if place == len(call):
                continue
            word = call[place]
            if word.dynamic or word.pattern:
                following |= {place, place + 1}
            elif word.text == argument or word.text.startswith("~"):
                following.add(place + 1)
        places = past_dynamic(following, call)
    return len(call) in places


def past_dynamic(places: set[int], call: list[Word]) -> set[int]:
    """The places that can be reached if words that are not known are empty."""
    for place in sorted(places):
        while place < len(call) and call[place].dynamic:
            place += 1
            places.add(place)
    return places


def compare(commands: list[str], folder: Path) -> tuple[int, list[str]]:
    """Run command lines: how many of those that ran something were read, and what was read wrongly."""
    understood, wrong = 0, list[str]()
    for command, ran in zip(commands, shell_sandbox.executed(commands, folder), strict=True):
        found = commands_of(command)
        if found.opaque:
            continue
        understood += any(ran.values())
        wrong += [
            f"{shell} ran {argv} for {command!r}, and the reader says {found.lines}"
            for shell, calls in ran.items()
            for argv in calls
            if argv and not any(fits(call, argv) for call in found.calls)
        ]
    return understood, wrong


def main() -> int:
    """Search once; 1 if something was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--count", type=int, default=2_000)
    given = options.parse_args()
    random, failed = Random(given.seed), 0
    for begin in range(0, given.count, BATCH):
        commands = [command_line(random) for _ in range(min(BATCH, given.count - begin))]
        with tempfile.TemporaryDirectory() as folder:
            understood, wrong = compare(commands, Path(folder))
        failed += len(wrong)
        print(f"{begin + len(commands)} commands, {understood} of this batch read", *wrong, sep="\n")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
