"""`Policy`: the word on a call that no plugin can loosen.

    policy = Policy.load({"default": "auto", "packs": ["protected-paths"]})
    rulings = await policy.judge(action)

After `authorize_action`, three have their say, and the strictest counts: the default (where no plugin
answered), the packs, and the operator's floor.
"""

from __future__ import annotations

import asyncio
import re
from asyncio import timeout
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hookline.errors import PolicyError
from hookline.hooks import Decision, Ruling
from hookline.hooks.errors import error_text
from hookline.specs import PackSpec

from .compiled_rules import Match, PreparedRules
from .facts import Facts
from .operator_rules import Floor
from .pack import MANIFEST, Pack, check_together, find_pack, load_pack
from .rule import Rule, read_rules
from .settings import Default, Layered, layered

Spending: TypeAlias = Callable[[str], Awaitable[Mapping[str, int]]]
"""Returns what a session has spent: calls, tokens, cost in millionths, seconds."""

FLOOR = "floor"
UNCLEAR = re.compile(r"\bcontext\.(opaque|dynamic)\b")
PATIENCE = 30.0
BUDGETS = "budgets"
SPENT_BY_MODELS = {"tokens": "tokens", "cost": "cost", "seconds": "time"}
"""What model calls consume, with labels."""
PERSON = ("command", "shell")
"""The source of a call that a person typed."""
OF_FILES = ("paths", "path_text", "outside", "opaque", "network", "hosts_allowed")
"""Facts for which the files below a folder are looked at, in a thread of its own."""


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """One of the three decisions, and its reason."""

    stage: str
    """`default`, `pack` or `floor`; `policy` where the judging itself failed."""
    decision: Decision
    by: str
    reason: str | None = None
    place: str = ""
    """Where the rule is written."""

    @property
    def is_question(self) -> bool:
        """Whether it is the default that asks."""
        return self.stage == "default" and self.decision is Decision.ASK


ALLOWS = {name: PolicyStep("default", Decision.ALLOW, f"default {name}") for name in ("allow", "auto")}
"""What the defaults say that let a call pass with no more words."""


class Policy:
    """The default, the packs and the floor of one app."""

    def __init__(
        self,
        *,
        default: Default = "auto",
        packs: Sequence[Pack] = (),
        floor: Floor | None = None,
        floor_rules: Sequence[Rule] = (),
        allow: Sequence[Sequence[str]] = (),
        budget: Mapping[str, int] | None = None,
        spending: Spending | None = None,
        notes: Sequence[str] = (),
        seconds: float | None = None,
    ) -> None:
        check_together(packs)
        self.default: Default = default
        self.packs = list(packs)
        self.floor = floor or Floor()
        self.allow = allow
        self.budget = dict(budget or {})
        self.spending = spending
        self.notes = list(notes)
        self.seconds = seconds
        """How long a question waits for its answer."""
        self.patience = PATIENCE
        """Seconds to find out what was spent; after that the call is denied."""
        self._floor_rules = list(floor_rules)
        rules = [*(rule for pack in packs for rule in pack.rules), *floor_rules]
        self._rules = PreparedRules(rules) if rules else None
        self._counts = self._rules is not None and self._rules.wants("spent")
        self._looks_at_files = bool(self.floor.lists) or (
            self._rules is not None and any(map(self._rules.wants, OF_FILES))
        )

    @classmethod
    def load(
        cls,
        user: Mapping[str, Any],
        project: Mapping[str, Any] | None = None,
        *,
        home: Path | None = None,
        workspace: Path | None = None,
        registered: Iterable[PackSpec] = (),
        spending: Spending | None = None,
    ) -> Policy:
        """The policy that `[policy]` describes, with the packs that plugins bring.

        What cannot be read is an error: a gate that is configured is there, or nothing runs.
        """
        home, workspace = home or Path.cwd(), workspace or Path.cwd()
        settings = layered(user, project or {}, home=home, workspace=workspace)
        return cls(
            default=settings.default,
            packs=load_packs(settings, registered),
            floor=Floor.of([floor for floor, _ in settings.floors]),
            floor_rules=[rule for one in settings.floors for rule in floor_rules(*one)],
            allow=settings.allow,
            budget=settings.budget,
            spending=spending,
            notes=settings.notes,
            seconds=settings.seconds,
        )

    def with_packs(self, packs: Iterable[Pack]) -> Policy:
        """The same policy with more packs; one of a known id takes the place of the old one."""
        fresh = {pack.id: pack for pack in packs}
        return Policy(
            default=self.default,
            packs=[*(pack for pack in self.packs if pack.id not in fresh), *fresh.values()],
            floor=self.floor,
            floor_rules=self._floor_rules,
            allow=self.allow,
            budget=self.budget,
            spending=self.spending,
            notes=self.notes,
            seconds=self.seconds,
        )

    async def judge(self, action: Mapping[str, Any]) -> list[Ruling]:
        """Judge an action and return each decision. Every objection is included.

        The default gives no reason to ask: if another rule also asks, its question counts.
        """
        return [
            Ruling(step.decision, None if step.is_question else step.reason, by=step.by)
            for step in await self.explain(action)
        ]

    async def explain(self, action: Mapping[str, Any]) -> list[PolicyStep]:
        """The same, with where each rule is written. A failure denies."""
        steps = [self._by_default(action)]
        if self._rules is None and not self.floor.lists:
            return steps
        try:
            spent = await self._spent(action) if self._counts else None
            facts = Facts(action, allow=self.allow, budget=self.budget, spent=spent)
            if self._looks_at_files and facts.walks and not facts.see_small_folders():
                await asyncio.to_thread(getattr, facts, "below")
            if self._rules and (matches := self._rules.judge(facts)):
                steps += [step_of(match, facts) for match in matches if not is_floor(match)]
                steps += [step_of(match, facts) for match in matches if is_floor(match)]
            if self.floor.lists:
                steps += [PolicyStep(FLOOR, *found) for found in self.floor.judge(facts)]
        except Exception as error:
            why = f"the policy cannot judge this call: {error_text(error)}"
            steps.append(PolicyStep("policy", Decision.DENY, "policy", why))
        return steps

    async def used_up(self, session_id: str) -> str | None:
        """Which budgets of a session are exhausted for a model call, if the pack `budgets` is in use.

        Tool calls are not included: with none left, the model can still answer.
        """
        limits = {name: self.budget[name] for name in SPENT_BY_MODELS if name in self.budget}
        if not limits or all(pack.id != BUDGETS for pack in self.packs):
            return None
        spent = await self._spent({"session_id": session_id})
        used_up = [name for name, limit in limits.items() if spent[name] >= limit]
        return SPENT_BY_MODELS[used_up[0]] if used_up else None

    async def _spent(self, action: Mapping[str, Any]) -> Mapping[str, int]:
        """What the session has spent."""
        spent: Mapping[str, int] | None = action.get("spent")
        if spent is not None:
            return spent
        if self.spending is None:
            raise PolicyError("a policy asks what was spent, and nobody counts it here")
        async with timeout(self.patience):
            return await self.spending(str(action["session_id"]))

    def _by_default(self, action: Mapping[str, Any]) -> PolicyStep:
        """The decision if no plugin gave one."""
        authorized, tool = action.get("authorized"), action["tool"]
        if authorized is not None:
            decision = Decision.ALLOW if authorized is True else Decision.DENY
            return PolicyStep("default", decision, "authorize_action")
        if self.default == "allow":
            return ALLOWS["allow"]
        by = f"default {self.default}"
        if self.default == "deny":
            return PolicyStep("default", Decision.DENY, by, f"{tool} is denied: nothing allows it")
        if self.default == "auto":
            effects = action["side_effects"]
            if effects in ("none", "read"):
                return ALLOWS["auto"]
            if action["source"] in PERSON and action["channel"] == "terminal":
                return PolicyStep("default", Decision.ALLOW, by, "a person typed it")
            does = "writes" if effects == "write" else "reaches outside"
            return PolicyStep("default", Decision.ASK, by, f"{tool} {does}")
        return PolicyStep("default", Decision.ASK, by, "every call is asked about")


def is_floor(match: Match) -> bool:
    """Whether a rule is the operator's own."""
    return match[2] is not None and match[2].owner == FLOOR


def step_of(match: Match, facts: Facts) -> PolicyStep:
    """The decision of a rule; one that uses `opaque` or `dynamic` says what is unclear."""
    decision, reason, rule = match
    if rule is None:
        return PolicyStep("policy", decision, "policy", f"the policies {reason}")
    stage = FLOOR if rule.owner == FLOOR else "pack"
    why = facts.because if UNCLEAR.search(rule.text) else ""
    return PolicyStep(stage, decision, rule.id, f"{reason or f'{rule.id} forbids it'}{why}", rule.place)


def load_packs(settings: Layered, registered: Iterable[PackSpec]) -> list[Pack]:
    """The packs of plugins, then the ones that are named."""
    brought: dict[str, Path] = {}
    loaded: dict[Path, Pack] = {}
    for spec in registered:
        pack = load_pack(spec.manifest_path)
        if (pack.id, pack.version) != (spec.id, spec.version):
            raise PolicyError(
                f"{pack.folder / MANIFEST}: a plugin registers the pack {spec.id} {spec.version}, "
                f"and its manifest says {pack.id} {pack.version}"
            )
        brought[spec.id] = pack.folder
        loaded[pack.folder.resolve()] = pack
    for name, base in settings.packs:
        folder = find_pack(name, base, brought)
        if folder.resolve() not in loaded:
            loaded[folder.resolve()] = load_pack(folder)
    return list(loaded.values())


def floor_rules(floor: Any, base: Path) -> list[Rule]:
    """The rules of the floor's own file."""
    return read_rules(base / Path(floor.cedar).expanduser(), FLOOR) if floor.cedar else []


def strictest(steps: Iterable[PolicyStep]) -> Decision:
    """What the steps come to."""
    return max((step.decision for step in steps), default=Decision.ALLOW)
