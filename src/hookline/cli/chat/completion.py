"""What the Tab key offers: slash commands, tools, and the workspace's files after an `@`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

OFFERED = 50
"""Files that are offered at most."""
VISITED = 5000
"""Entries that are looked at for them."""
SKIPPED = {"node_modules", "__pycache__", "dist", "build", "target"}

AT = re.compile(r"(?:^|\s)@(\S*)$")
COMMAND = re.compile(r"/(\S*)$")
ARGUMENT = re.compile(r"/(\S+)\s+(\S*)$")

Names = Callable[[], Iterable[tuple[str, str]]]
"""The commands that there are, each with a line of help."""
Choices = Callable[[str], Iterable[str]]
"""The completions of a command's arguments."""


def no_choices(command: str) -> Iterable[str]:
    """Nothing in particular."""
    return ()


class ChatCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(
        self, names: Names, workspace: Callable[[], Path], choices: Choices = no_choices
    ) -> None:
        self._names = names
        self._choices = choices
        self._workspace = workspace

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Completes commands at the start of a message, their arguments, and files after an `@`."""
        before = document.text_before_cursor
        if found := COMMAND.fullmatch(before):
            for name, help_ in self._names():
                if name.startswith(found[1]):
                    yield Completion(f"{name} ", -len(found[1]), display=f"/{name}", display_meta=help_)
        elif found := ARGUMENT.fullmatch(before):
            for choice in self._choices(found[1]):
                if choice.startswith(found[2]):
                    yield Completion(choice, -len(found[2]))
        elif found := AT.search(before):
            for path in files(self._workspace(), found[1]):
                end = "" if path.endswith("/") else " "
                yield Completion(path + end, -len(found[1]), display=path)


def files(workspace: Path, typed: str) -> list[str]:
    """The paths that a typed beginning may mean: of its folder first, then of a name anywhere."""
    folder, _, name = typed.rpartition("/")
    if ".." in folder.split("/") or folder.startswith("/"):
        return []
    here = [path for path in entries(workspace, folder) if base(path).startswith(name)]
    if not folder and name and len(here) < OFFERED:
        here += (path for path in walk(workspace) if base(path).startswith(name) and path not in here)
    return here[:OFFERED]


def base(path: str) -> str:
    """A path's last name."""
    return path.rstrip("/").rpartition("/")[2]


def entries(workspace: Path, folder: str) -> list[str]:
    """The contents of one folder; folders end in a slash."""
    prefix = f"{folder}/" if folder else ""
    try:
        with os.scandir(workspace / folder) as found:
            names = sorted(f"{prefix}{e.name}{'/' if e.is_dir() else ''}" for e in found)
    except OSError:
        return []
    return [name for name in names if name.isprintable()]


def walk(workspace: Path) -> Iterator[str]:
    """Files further down, nearest first, without hidden and generated ones."""
    folders, visited = [""], 0
    for folder in folders:
        for path in entries(workspace, folder):
            visited += 1
            if visited > VISITED:
                return
            if not path.endswith("/"):
                yield path
            elif base(path) not in SKIPPED and not base(path).startswith("."):
                if not (workspace / path).is_symlink():
                    folders.append(path.rstrip("/"))
                yield path
