"""Folders: commands that read or change everything below one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hookline.text.patterns import matches_glob
from hookline.text.shell import Word
from hookline.text.shell.options import FOLDER_READERS
from hookline.text.shell.reader import options_of

from . import targets as places

INCLUDED = re.compile(r"[\w.*-]+", re.ASCII)
"""Patterns that every implementation of grep reads in the same way."""


def folder_words(call: list[Word]) -> Iterator[str]:
    """The arguments of a program that reads or changes everything below a folder."""
    program = call[0].text
    if program not in FOLDER_READERS:
        return
    wanted = FOLDER_READERS[program]
    given = {
        option
        for word in call[1:]
        if word.text[:1] == "-" and word.text != "-"
        for option in options_of(program, word.text)
    }
    if wanted is not None and wanted.isdisjoint(given):
        return
    operands = [
        word.text for word in call[1:] if word.text[:1] != "-" and len(word.text) <= places.LONGEST
    ]
    yield from operands
    if program in ("grep", "egrep", "fgrep", "rg", "ag", "find") and len(operands) < 2:
        yield "."


def included(call: list[Word]) -> Callable[[str], bool] | None:
    """Which files `grep --include` is limited to; None if it may read any."""
    globs: list[str] = []
    for word in call[1:] if call[0].text in ("grep", "egrep", "fgrep") else ():
        if word.dynamic or word.text.startswith("--exclude"):
            return None  # how several of them combine depends on their order
        name, _, glob = word.text.partition("=")
        if name == "--include":
            if not INCLUDED.fullmatch(glob):
                return None
            globs.append(glob.lower())
    if not globs:
        return None
    return lambda path: any(matches_glob(path.rpartition("/")[2].lower(), glob) for glob in globs)
