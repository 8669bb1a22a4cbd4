"""Places: the files and hosts that a call may touch, resolved the way the system resolves them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from stat import S_ISLNK
from urllib.parse import urlsplit

from hookline.text.patterns import PathGlob, matches_glob, plain
from hookline.text.shell import globs as shell_globs
from hookline.text.shell.words import Word

from .names import HIDDEN, MADE, SECRET_ENDS, SECRET_STARTS

MOST = 400
"""More places than these in one call are not looked up; the call counts as opaque."""
MOST_BELOW = 20_000
"""Files below a folder that are looked at."""
FEW_BELOW = 500
"""As many are checked in a millisecond, which is not worth a thread."""
LONGEST = 4_096
"""Characters of a path; the system takes no longer one."""
DEEPEST = 256
"""Folders in one path."""
HARMLESS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s'\"<>]*")
UNKNOWN_HOST = "?"


def place(path: str, base: str) -> tuple[str, str]:
    """A path made absolute, as it is written and as it is once symlinks are followed."""
    path = path.removeprefix("file://")
    if path[:1] == "~":
        path = os.path.expanduser(path)  # noqa: PTH111
    whole = path if path[:1] == "/" else f"{base}/{path}"
    if whole is not path and is_straight(path, base):
        return whole, whole
    return os.path.normpath(whole), os.path.realpath(whole)


def is_straight(path: str, base: str) -> bool:
    """Whether a path leads down from a resolved folder with no detour and no symlink on the way.

    It spares most calls the look at every folder from the root on, which `realpath` takes.
    """
    here = base
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return False
        here = f"{here}/{name}"
        try:
            if S_ISLNK(os.lstat(here).st_mode):
                return False
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def places(path: str, base: str) -> tuple[str, ...]:
    """Both, without the devices that hold nothing. A path with a NUL is a ValueError."""
    found = place(path, base)
    return () if found[0] in HARMLESS else found


def candidates(text: str) -> Iterator[str]:
    """The parts of a word that may be a path: all of it, and what follows `=`, `:`, `@` or an option
    letter.
    """
    if len(text) > LONGEST or ("://" in text and "file://" not in text):
        return
    if not text.startswith("-"):
        yield text
    elif found := re.search(r"[/~.*?\[].*", text, re.DOTALL):
        yield found[0]
    for mark in "=:@":
        _, found, tail = text.partition(mark)
        if found and tail:
            yield tail


@dataclass(slots=True)
class TargetFiles:
    """The files that the words of a command may name."""

    paths: set[str] = field(default_factory=set[str])
    globs: set[str] = field(default_factory=set[str])
    """Absolute paths with wildcards, which may stand for files that do not exist yet."""
    bases: list[str] = field(default_factory=list[str])
    """The folders that relative paths may be relative to."""


def word_places(words: Iterable[Word], folders: Iterable[str], workspace: str) -> TargetFiles | None:
    """The places that words of a command name; None if they are too many to look up."""
    found = TargetFiles(bases=[workspace])
    for folder in folders:
        found.bases.extend([place(folder, base)[1] for base in found.bases])
        if len(found.bases) > 8:
            return None
    for word in words:
        for text in candidates(word.text):
            if text.count("/") > DEEPEST:
                return None
            for base in found.bases:
                found.paths.update(places(text, base))
        for text in candidates(word.glob) if word.glob is not None else ():
            for base in found.bases:
                if not add_glob(text, base, found):
                    return None
        if len(found.paths) > MOST:
            return None
    return found


def add_glob(glob: str, base: str, found: TargetFiles) -> bool:
    """Record what a path with wildcards stands for: existing files, and protected names."""
    if len(glob) > LONGEST or glob.count("/") > DEEPEST:
        return False
    whole = os.path.normpath(os.path.join(base, os.path.expanduser(glob)))  # noqa: PTH111, PTH118
    found.globs.add(whole)
    try:
        for name in islice(shell_globs.existing(whole), MOST + 1):
            found.paths |= {name, os.path.realpath(name)}
    except shell_globs.TooManyFiles:
        return False
    folder, _, last = whole.rpartition("/")
    for name in shell_globs.could_be(last, HIDDEN):
        found.paths.add(f"{folder}/{name}")
    return True


def files_below(folders: Iterable[str], most: int = MOST_BELOW) -> list[str] | None:
    """Everything below some folders, without what tools put there; None if there is too much of it."""
    found: list[str] = []
    left = [folder for folder in folders if os.path.isdir(folder)]  # noqa: PTH112
    while left:
        folder = left.pop()
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                found.append(entry.path)
                if len(found) > most:
                    return None
                if entry.name not in MADE and entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
    return found


def is_protected(path: str) -> bool:
    """Whether a file has a name that the shipped packs protect."""
    name = plain(path.rpartition("/")[2])
    return name in HIDDEN or name.startswith(SECRET_STARTS) or name.endswith(SECRET_ENDS)


def listed(values: Iterable[str]) -> str:
    """Texts in one, each between line ends, so that a pattern can ask for a whole one."""
    lines = sorted({plain(value).replace("\n", "␤") for value in values})
    return "\n".join(["", *lines, ""])


def hosts_in(text: str) -> set[str]:
    """The hosts of the addresses in a text; one that clients may read differently is `?`."""
    return {host_of(url) for url in URL.findall(text)}


def host_of(url: str) -> str:
    """The host of an address."""
    if "\\" in url or not url.isprintable():
        return UNKNOWN_HOST
    try:
        return (urlsplit(url).hostname or UNKNOWN_HOST).rstrip(".")
    except ValueError:
        return UNKNOWN_HOST


def host_allowed(host: str, patterns: Iterable[str]) -> bool:
    """Whether a host is one of these; `*.example.org` stands for all below it."""
    return any(matches_glob(host.lower(), pattern.lower()) for pattern in patterns)


@lru_cache(maxsize=512)
def path_glob(glob: str, workspace: str) -> PathGlob:
    """A glob over absolute paths: `**` crosses folders; one without a slash is a name anywhere."""
    glob = os.path.expanduser(glob)  # noqa: PTH111
    if "/" not in glob:
        glob = f"**/{glob}"
    elif not glob.startswith(("/", "**")):
        glob = f"{workspace}/{glob}"
    below = glob.endswith("/**")
    body = glob[:-3] if below else glob.rstrip("/")
    return PathGlob(plain(body), sets=False, below=below)
