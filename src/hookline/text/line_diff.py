"""Unified diffs whose time is bounded: `difflib` alone takes minutes on long texts with equal lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

MOST = 2_000
"""Lines, of both texts together, that are compared one by one."""


def line_diff(
    old: Sequence[str], new: Sequence[str], names: tuple[str, str], *, end: str = "\n", context: int = 3
) -> Iterator[str]:
    """What changed from one text to the other, as the lines of a unified diff.

    What both begin and end with alike is left out first. If more than `MOST` lines are left, all of
    the old ones are shown as removed and all of the new ones as added.
    """
    from difflib import unified_diff

    if len(old) + len(new) <= MOST:
        yield from unified_diff(old, new, *names, n=context, lineterm=end)
        return
    head, tail = _alike(old, new)
    if head == len(old) == len(new):
        return
    yield f"--- {names[0]}{end}"
    yield f"+++ {names[1]}{end}"
    begin, spare = max(head - context, 0), max(tail - context, 0)
    was, now = old[begin : len(old) - spare], new[begin : len(new) - spare]
    if len(was) + len(now) <= MOST:
        _, _, *lines = unified_diff(was, now, n=context, lineterm=end)
        yield from (_moved(line, begin) if line.startswith("@@ ") else line for line in lines)
        return
    yield f"@@ -{head + 1},{len(old) - head - tail} +{head + 1},{len(new) - head - tail} @@{end}"
    yield from (f"-{line}" for line in old[head : len(old) - tail])
    yield from (f"+{line}" for line in new[head : len(new) - tail])


def _alike(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = shorter - head
    return head, next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)


def _moved(heading: str, by: int) -> str:
    """`@@ -1,2 +1,3 @@` with its line numbers counted from the beginning of the whole text."""
    _, was, now, *rest = heading.split(" ")

    def moved(part: str) -> str:
        first, comma, count = part[1:].partition(",")
        return f"{part[0]}{int(first) + by}{comma}{count}"

    return " ".join(["@@", moved(was), moved(now), *rest])
