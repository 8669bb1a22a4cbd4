"""Reading what strangers wrote: files that may be pipes, and TOML that may hang its parser."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, cast

from hookline.text.errors import NotRegular, TooComplex, TooLarge

DEEPEST = 32
"""Tables and lists in one another."""

MOST_DOTS = 1_000
"""Dots in one line of TOML."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


def read_regular_file(path: Path, largest: int, *, follow: bool = True) -> bytes:
    """Read a regular file of at most `largest` bytes; raises `OSError` otherwise.

    Opening never blocks, so a pipe without a writer cannot hang the reader. With `follow=False` the
    last part of the path must not be a link: what the caller resolved is what is opened.
    """
    data = read_beginning(path, largest + 1, follow=follow, largest=largest)
    if len(data) > largest:
        raise TooLarge(27, f"it has more than {largest:,} bytes")
    return data


def read_beginning(path: Path, most: int, *, follow: bool = True, largest: int | None = None) -> bytes:
    """The first bytes of a regular file; raises `OSError` otherwise, and never blocks."""
    handle = os.open(path, os.O_RDONLY | _NO_WAIT | (0 if follow else _NO_LINK))
    try:
        about = os.fstat(handle)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(21, "Is a directory")
        if not stat.S_ISREG(about.st_mode):
            raise NotRegular(22, "it is not a regular file")
        if largest is not None and about.st_size > largest:  # not read for nothing
            raise TooLarge(27, f"it has more than {largest:,} bytes")
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(most)  # the size of a file in /proc is 0, and one may grow
    finally:
        os.close(handle)


def load_toml(text: str) -> dict[str, Any]:
    """TOML as data; raises `TOMLDecodeError` or `TooComplex`, both of which are `ValueError`."""
    import tomllib

    # `tomllib` takes quadratic time for a name of many parts: `a.a.a.a…`
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS:
            raise TooComplex(f"line {number} has more than {MOST_DOTS} dots")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise TooComplex("the tables are nested too deep") from None
    if _is_deeper(values, DEEPEST):
        raise TooComplex("the tables are nested too deep")
    return values


def _is_deeper(values: Any, depth: int) -> bool:
    """Whether tables and lists are nested deeper, found without recursion."""
    level: list[Any] = [values]
    for _ in range(depth):
        inner: list[Any] = []
        for each in level:
            inner += cast("dict[str, Any]", each).values() if isinstance(each, dict) else each
        level = [cast("Any", each) for each in inner if isinstance(each, dict | list)]
        if not level:
            return False
    return True
