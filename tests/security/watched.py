"""The command line in the process of the test, with an eye on everything that it opens and starts.

Python's audit events show each file that is opened for writing, each program that is started, each
code object that is run and each address that is connected to. Programs that are started from here
leave marks of their own.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from types import CodeType
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
STARTED = ("subprocess.Popen", "os.posix_spawn", "os.exec")
CHANGED = {
    "os.remove": 0, "os.rename": 1, "os.mkdir": 0, "os.rmdir": 0, "os.symlink": 1, "os.link": 1,
    "os.chmod": 0, "os.chown": 0, "os.truncate": 0, "sqlite3.connect": 0,
}  # fmt: skip
"""Events about a change of a file, with the place of its name among the arguments."""


class Watch:
    """What happened while it was on."""

    def __init__(self, folder: Path, allowed: tuple[Path, ...], ports: tuple[int, ...]) -> None:
        self.folder = os.path.realpath(folder)
        self.allowed = tuple(os.path.realpath(each) for each in allowed)
        self.ports = ports
        self.on = False
        self.found: list[str] = []

    def allow(self, *more: Path) -> None:
        """Let more places be changed."""
        self.allowed += tuple(os.path.realpath(each) for each in more)

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Keep an event that must not happen."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and isinstance(flags, int) and flags & WRITING:
                self.changes(event, path)
        elif event in CHANGED:
            self.changes(event, arguments[CHANGED[event]])
        elif event == "exec":
            code = arguments[0]
            named = isinstance(code, CodeType) and not code.co_filename.startswith("<")
            if named and self.within(code.co_filename):
                self.found.append(f"ran {code.co_filename}")
        elif event in STARTED:
            program = os.fsdecode(arguments[0] or arguments[1][0])
            found = which(program)
            if found is not None and (self.within(found) or not found.startswith("/")):
                self.found.append(f"started {program}")
        elif event == "socket.connect" and self.is_foreign(arguments[1]):
            self.found.append(f"connected to {arguments[1]}")

    def is_foreign(self, address: Any) -> bool:
        """Whether an address is another one than those that may be connected to."""
        return isinstance(address, tuple) and address[1] not in self.ports

    def within(self, path: str) -> bool:
        """Whether a path lies in the folder."""
        return os.path.realpath(path).startswith(f"{self.folder}/")

    def changes(self, event: str, path: str | bytes | int) -> None:
        """Keep the name of a file that changes, unless it may."""
        if isinstance(path, int):
            return
        written = os.fsdecode(path)
        if written.startswith("file:"):  # an address of SQLite
            written = written[5:].partition("?")[0]
        name = os.path.realpath(written)
        if name.startswith("/dev/") or any(f"{name}/".startswith(f"{each}/") for each in self.allowed):
            return
        if "/__pycache__/" in f"{name}/" and not self.within(name):
            return  # what is imported for the first time is compiled
        self.found.append(f"{event} {name}")


_watches: list[Watch] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watches and _watches[-1].on:
        watch = _watches[-1]
        watch.on = False  # what it looks up itself does not count
        try:
            watch.see(event, arguments)
        finally:
            watch.on = True


sys.addaudithook(_audit)


@contextmanager
def watching(watch: Watch) -> Iterator[list[str]]:
    """Keep what happens, and must not, in the list that is given."""
    watch.found = []
    _watches.append(watch)
    watch.on = True
    try:
        yield watch.found
    finally:
        watch.on = False
        _watches.remove(watch)
