"""The search as a program: it reads an order from standard input and writes matches to standard
output.

It imports nothing of Hookline, so it starts fast.
"""

import json
import os
import re
import stat
import sys
from typing import Any

LARGEST = 10_000_000
LONGEST = 500
PROBE = 8192


def search(order: dict[str, Any]) -> dict[str, Any]:
    """Go through the files until there are enough lines."""
    try:
        flags = re.MULTILINE | (re.IGNORECASE if order["ignore_case"] else 0)
        pattern = re.compile(order["pattern"], flags)
    except (re.error, OverflowError, RecursionError) as error:
        return {"error": str(error)}
    literal = order["literal"].encode()
    lines: list[tuple[str, int, str]] = []
    too_large = 0
    names: list[str] = order["names"]
    for name in names:
        text = read(f"{order['folder']}/{name}", literal)
        if text is None:
            too_large += 1
            continue
        for number, line in matching(pattern, text):
            if len(lines) == order["limit"]:
                return {"lines": lines, "more": True, "too_large": too_large}
            lines.append((name, number, line))
    return {"lines": lines, "more": False, "too_large": too_large}


def read(path: str, literal: bytes) -> str | None:
    """The text of a file; empty if it is binary or lacks the literal, None if it is too large."""
    try:
        # a link could lead out of the workspace, and a pipe would never end
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return ""
        if about.st_size > LARGEST:
            return None
        data = os.read(handle, about.st_size + 1)
    except OSError:
        return ""
    finally:
        os.close(handle)
    if literal not in data or data.find(b"\0", 0, PROBE) >= 0:
        return ""
    return data.decode("utf-8", errors="replace")


def matching(pattern: re.Pattern[str], text: str) -> Any:
    """The number and text of each line in which a match begins."""
    number, counted, at = 1, 0, 0
    while at < len(text) and (found := pattern.search(text, at)):
        begin = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.start())
        end = len(text) if end < 0 else end
        if begin >= len(text):
            return
        number += text.count("\n", counted, begin)
        counted = begin
        line = text[begin:end].rstrip("\r")
        yield number, line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
        at = end + 1


if __name__ == "__main__":
    json.dump(search(json.load(sys.stdin)), sys.stdout)
