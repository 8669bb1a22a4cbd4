"""Arrangement: the order in which plugins load, by requirements and by stated place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING

from hookline.errors import PluginError
from hookline.hooks.errors import suggestion
from hookline.text.requirement import HOOKLINE, hookline_version

if TYPE_CHECKING:
    from .candidate import Candidate

Refused = list[tuple["Candidate", PluginError]]


def arranged(
    found: Iterable[Candidate], present: Iterable[str] = ()
) -> tuple[list[Candidate], Refused]:
    """Order plugins after their requirements, then by place, then by name; also return the rest.

    Hookline's own plugins come first. `present` are the plugins already loaded.
    """
    waiting = {candidate.name: candidate for candidate in found}
    there = set(present)
    refused = _without_requirements(waiting, there)
    missing = {n: set(c.requires) - there for n, c in waiting.items()}
    ready = [(not c.own, c.order, n) for n, c in waiting.items() if not missing[n]]
    heapify(ready)
    ordered: list[Candidate] = []
    while ready:
        _, _, name = heappop(ready)
        ordered.append(waiting.pop(name))
        for other, candidate in waiting.items():
            if name in missing[other]:
                missing[other].discard(name)
                if not missing[other]:
                    heappush(ready, (not candidate.own, candidate.order, other))
    refused += [(c, PluginError(_circle(c.name, waiting))) for c in waiting.values()]
    return ordered, refused


def _without_requirements(waiting: dict[str, Candidate], there: set[str]) -> Refused:
    """Remove plugins with unmet requirements, and those that require them in turn."""
    refused: Refused = []
    gone: set[str] = set()
    while True:
        lacking = [
            (candidate, PluginError("; ".join(problems)))
            for candidate in waiting.values()
            if (problems := [*_problems(candidate, waiting, there, gone)])
        ]
        if not lacking:
            return refused
        refused += lacking
        for candidate, _ in lacking:
            gone.add(candidate.name)
            del waiting[candidate.name]


def _problems(
    candidate: Candidate, waiting: dict[str, Candidate], there: set[str], gone: set[str]
) -> Iterator[str]:
    """Why each requirement of a plugin that is not met, is not."""
    for required in candidate.requirements:
        name = required.name
        if name in waiting:
            found = waiting[name]
            problem = required.problem(found.version)
            where = f" ({found.entry})"
        elif name in there or name == HOOKLINE:
            problem = required.problem(hookline_version()) if required.versions else ""
            where = ""
        elif name in gone:
            yield f"it requires plugin {required}, which could not be loaded"
            continue
        else:
            hint = suggestion(name, {*there, *waiting})
            yield f"it requires plugin {required}, which is not installed{hint}"
            continue
        if problem:
            yield f"it requires plugin {required}, and {problem}{where}"


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
    stating = sorted((c.order, c.name) for c in ordered if c.states_order and not c.own)
    groups = ((order, [name for _, name in same]) for order, same in groupby(stating, lambda s: s[0]))
    return [(order, names) for order, names in groups if len(names) > 1]


def owners(
    ordered: Iterable[Candidate],
) -> tuple[dict[str, str], Refused]:
    """Which plugin owns each namespace; a later one that claims the same is refused."""
    owned: dict[str, str] = {}
    refused: Refused = []
    for candidate in ordered:
        claimed = candidate.namespaces
        taken = next((n for n in claimed if owned.get(n, candidate.name) != candidate.name), None)
        if taken is not None:
            clash = f"namespace {taken!r} belongs to plugin {owned[taken]!r}, and {candidate.name!r} "
            refused.append((candidate, PluginError(clash + "claims it too; disable one of them")))
            continue
        owned.update(dict.fromkeys(claimed, candidate.name))
    return owned, refused
