"""Shell effects: what a program does beyond its own name says, read from its arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .words import Word

VERSION = re.compile(r"(?<![\d.])[\d.]++$")


@dataclass(slots=True)
class Effects:
    """What a command runs and changes in turn."""

    runs: list[list[Word]] = field(default_factory=list[list[Word]])
    """Commands that it runs."""
    texts: list[str] = field(default_factory=list[str])
    """Command lines that it has a shell read."""
    assignments: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    folders: list[str] = field(default_factory=list[str])
    """The directory that it changes to."""
    unclear: list[str] = field(default_factory=list[str])
    """Why its effect is not certain."""

    def unknown_option(self, program: str, option: str) -> None:
        """Note an option that may change what the other arguments mean."""
        self.unclear.append(f"the option {option[:40]!r} of {program} is not known")

    def only_when_run(self, program: str) -> None:
        """Note that a program runs something that the command line does not say."""
        self.unclear.append(f"what {program} runs is known only when it runs")


def base_of(program: str) -> str:
    """A program's name without its version: `python3.12` is a `python`."""
    return program if program[-1:].isalpha() else VERSION.sub("", program).rstrip("-") or program
