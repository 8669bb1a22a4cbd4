"""Places: the files and hosts that a call may touch, resolved the way the system resolves them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from stat import S_ISLNK
from unicodedata import normalize
from urllib.parse import urlsplit

from hookline.patterns import PathGlob, matches_glob

from .words import Word

MOST = 400
"""More places than these in one call are not looked up; the call counts as opaque."""
HARMLESS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]*")
UNKNOWN_HOST = "?"


def plain(text: str) -> str:
    """A text in the form that patterns are compared with: look-alikes folded, small letters."""
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold()


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


def candidates(word: Word) -> Iterator[str]:
    """What of a word may be a path: all of it, and what follows `=`, `:`, `@` or an option's letter."""
    text = word.text
    if "://" in text and "file://" not in text:
        return
    if not text.startswith("-"):
        yield text
    elif found := re.search(r"[/~.].*", text):
        yield found[0]
    for mark in "=:@":
        _, found, tail = text.partition(mark)
        if found and tail:
            yield tail


def word_places(words: Iterable[Word], folders: Iterable[str], workspace: str) -> set[str] | None:
    """The places that words of a command name; None where they are too many to look up."""
    found: set[str] = set()
    bases = [workspace]
    for folder in folders:
        bases.extend([place(folder, base)[1] for base in bases])
        if len(bases) > 8:
            return None
    for word in words:
        for text in candidates(word):
            for base in bases:
                found.update(places(text, base))
                if word.pattern:
                    found |= matching(text, base)
                if len(found) > MOST:
                    return None
    return found


def matching(pattern: str, base: str) -> set[str]:
    """The files that a word with wildcards stands for."""
    import glob

    pattern = os.path.join(base, os.path.expanduser(pattern))  # noqa: PTH111, PTH118
    found: set[str] = set()
    for name in islice(glob.iglob(pattern), MOST + 1):  # noqa: PTH207
        found |= {name, os.path.realpath(name)}
    return found


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
