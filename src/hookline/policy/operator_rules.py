"""The operator's floor: what the user denies or wants to be asked about, regardless of plugins."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hookline.hooks import Decision
from hookline.text.patterns import matches_glob, plain
from hookline.text.shell import command_pattern
from hookline.text.shell.globs import may_touch

from .facts import Facts
from .settings import FloorRules, FloorSettings
from .targets import path_glob


@dataclass(frozen=True, slots=True)
class Floor:
    """The lists of `[policy.floor]`."""

    lists: Sequence[tuple[Decision, str, FloorRules]] = ()

    @classmethod
    def of(cls, settings: Sequence[FloorSettings]) -> Floor:
        """The floor that settings describe."""
        lists: list[tuple[Decision, str, FloorRules]] = []
        for floor in settings:
            lists += [(Decision.DENY, "deny", floor.deny), (Decision.ASK, "ask", floor.ask)]
        return cls([one for one in lists if one[2] != FloorRules()])

    def judge(self, facts: Facts) -> list[tuple[Decision, str, str]]:
        """What objects to a call: the decision, the entry of the list, and why."""
        return [
            (decision, f"floor.{name}.{entry}", why)
            for decision, name, rules in self.lists
            for entry, why in _matching(rules, facts)
        ]


def _matching(rules: FloorRules, facts: Facts) -> Iterator[tuple[str, str]]:
    action = facts.action
    for pattern in rules.tools:
        if matches_glob(action["tool"], pattern) or matches_glob(action["name"], pattern):
            yield f"tools={pattern}", f"the floor names the tool {action['tool']}"
    for pattern in rules.namespaces:
        if matches_glob(action["namespace"], pattern):
            yield f"namespaces={pattern}", f"the floor names the namespace {action['namespace']!r}"
    for effect in rules.effects:
        if action["side_effects"] == effect.value:
            yield (
                f"effects={effect.value}",
                f"the floor names the side effect {effect.value}",
            )
    for pattern in rules.paths:
        if why := _path(pattern, facts):
            yield f"paths={pattern}", why
    for pattern in rules.commands:
        if why := _command(pattern, facts):
            yield f"commands={pattern}", why


def _path(pattern: str, facts: Facts) -> str | None:
    glob = path_glob(pattern, facts.workspace)
    touched = next((path for path in facts.paths if glob.matches(plain(path))), None)
    if touched is not None:
        return f"the floor protects {touched}"
    wanted = os.path.expanduser(pattern)  # noqa: PTH111
    if "/" in wanted and not wanted.startswith(("/", "**")):
        wanted = f"{facts.workspace}/{wanted}"
    for path in facts.globs:
        if may_touch(path, wanted):
            return f"the floor protects {pattern}, and {path} may stand for it"
    if facts.opaque or facts.dynamic:
        return f"it is not clear that the call leaves {pattern} alone{facts.because}"
    return None


def _command(pattern: str, facts: Facts) -> str | None:
    commands = facts.commands
    line = command_pattern(pattern).match(commands)
    if line is not None:
        return f"the floor names the command {line[:200]!r}"
    if commands.opaque:
        return f"it is not clear that this is no {pattern!r}{facts.because}"
    return None
