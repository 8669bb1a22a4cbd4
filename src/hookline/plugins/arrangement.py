"""Arrangement: in which order plugins load, by what they require and by the place they state."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING

from hookline.hooks.errors import suggestion

from .errors import BadRequirement, PluginClash, PluginError

if TYPE_CHECKING:
    from .candidate import Candidate

Refused = list[tuple["Candidate", PluginError]]


def arranged(
    found: Iterable[Candidate], present: Iterable[str] = ()
) -> tuple[list[Candidate], Refused]:
    """Plugins after those that they require, else by place, else by name; and those left over.

    `present` are the plugins that are there already.
    """
    waiting = {candidate.name: candidate for candidate in found}
    there = set(present)
    refused = _without_requirements(waiting, there)
    missing = {n: set(c.requires) - there for n, c in waiting.items()}
    ready = [(c.order, n) for n, c in waiting.items() if not missing[n]]
    heapify(ready)
    ordered: list[Candidate] = []
    while ready:
        _, name = heappop(ready)
        ordered.append(waiting.pop(name))
        for other in waiting:
            if name in missing[other]:
                missing[other].discard(name)
                if not missing[other]:
                    heappush(ready, (waiting[other].order, other))
    refused += [(c, BadRequirement(_circle(c.name, waiting))) for c in waiting.values()]
    return ordered, refused


def _without_requirements(waiting: dict[str, Candidate], there: set[str]) -> Refused:
    """Take out whoever requires what is not there, and whoever requires those in turn."""
    refused: Refused = []
    gone: set[str] = set()
    while True:
        known = there | set(waiting)
        lacking = [c for c in waiting.values() if not known.issuperset(c.requires)]
        if not lacking:
            return refused
        for candidate in lacking:
            name = next(r for r in candidate.requires if r not in known)
            why = "could not be loaded" if name in gone else "is not installed"
            hint = "" if name in gone else suggestion(name, known)
            refused.append(
                (candidate, BadRequirement(f"it requires plugin {name!r}, which {why}{hint}"))
            )
        for candidate in lacking:
            gone.add(candidate.name)
            del waiting[candidate.name]


def _circle(name: str, waiting: dict[str, Candidate]) -> str:
    """Say which plugins require each other, beginning with one of them."""
    path = [name]
    while True:
        following = next(r for r in waiting[path[-1]].requires if r in waiting)
        if following in path:
            circle = [*path[path.index(following) :], following]
            break
        path.append(following)
    shown = " → ".join(circle)
    if name in circle:
        return f"plugins require each other in a circle: {shown}; one of them must do without"
    return f"it requires plugin {path[1]!r}, which is held up by a circle: {shown}"


def tied(ordered: Iterable[Candidate]) -> list[tuple[int, list[str]]]:
    """Places that more than one plugin states for itself, with the plugins."""
    stating = sorted((c.order, c.name) for c in ordered if c.states_order)
    groups = ((order, [name for _, name in same]) for order, same in groupby(stating, lambda s: s[0]))
    return [(order, names) for order, names in groups if len(names) > 1]


def owners(
    ordered: Iterable[Candidate],
) -> tuple[dict[str, str], Refused]:
    """Which plugin owns each namespace; a later one that claims the same is refused."""
    owned: dict[str, str] = {}
    refused: Refused = []
    for candidate in ordered:
        claimed = candidate.manifest.namespaces if candidate.manifest else []
        taken = next((n for n in claimed if owned.get(n, candidate.name) != candidate.name), None)
        if taken is not None:
            clash = f"namespace {taken!r} belongs to plugin {owned[taken]!r}, and {candidate.name!r} "
            refused.append((candidate, PluginClash(clash + "claims it too; disable one of them")))
            continue
        owned.update(dict.fromkeys(claimed, candidate.name))
    return owned, refused
