"""Processes by what they run: a confined one knows its id only within its own namespace."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

_numbers = count(1)


def long_sleep() -> str:
    """A command that sleeps for ten minutes, and that no other process runs."""
    return f"sleep 600.{os.getpid()}{next(_numbers):03}"


def running(command: str) -> list[int]:
    """The ids of the processes with this command in their command line, outermost first."""
    wanted = command.encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if wanted in line and state != "Z":
            found.append(int(folder.name))
    return sorted(found)
