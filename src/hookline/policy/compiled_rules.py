"""Prepared rules: parsed once, and asked about one call at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from pydantic_core import to_json

from hookline.hooks import Decision

from .facts import Facts
from .names import FACTS
from .rule import Rule, cedar

PERMIT = "permit (principal, action, resource);"
"""What no rule forbids is permitted."""
ASKED = re.compile(r"\bcontext\s*(?:\.\s*|\bhas\s+)(\w+)")
FAILED = re.compile(r"policy `policy(\d+)`: (.*)", re.DOTALL)

Match = tuple[Decision, str | None, Rule | None]
"""The decision of a rule and its reason; no rule if judging itself failed."""

Parties = tuple[str, str, str, str, int, str, str, str, str, str, tuple[str, ...]]
"""The side effect; agent, user, channel and depth; the tool, its name and its namespace; and what of
the context is the same for all such calls: where they come from, the workspace, the permissions."""

STANDING = frozenset({"source", "workspace", "permissions"})
"""The facts that do not come from the call itself."""
REPEATED = frozenset({"programs", "opaque", "dynamic", "outside", "network", "hosts_allowed"})
"""Facts with few values, so that most calls have those of an earlier one."""


class PreparedRules:
    """Rules, ready to judge.

    What a rule says that does not look at the call itself is the same for every call of a tool by an
    agent: it is asked once for each pair. A rule that looks at few-valued facts only is asked once for
    each pair and their values. The others are asked about every call.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._places = {rule: number for number, rule in enumerate(rules)}
        of_pairs = [rule for rule in rules if STANDING.issuperset(wanted(rule.text))]
        rest = [rule for rule in rules if rule not in of_pairs]
        repeated = [rule for rule in rest if (STANDING | REPEATED).issuperset(wanted(rule.text))]
        self._of_pairs = RuleSet(of_pairs)
        self._of_repeated = RuleSet(repeated)
        self._of_calls = RuleSet([rule for rule in rest if rule not in repeated])
        self._pair = lru_cache(maxsize=1024)(self._ask_of_pair)
        self._repeated = lru_cache(maxsize=1024)(self._ask_of_repeated)

    def judge(self, facts: Facts) -> list[Match]:
        """The rules that object. What cannot be evaluated denies."""
        pair = parties(facts.action)
        asked, involved, found = self._pair(pair)
        if self._of_repeated.rules:
            values = [getattr(facts, name) for name in self._of_repeated.wanted]
            key = [tuple(cast("list[str]", each)) if type(each) is list else each for each in values]
            found = [*found, *self._repeated(pair, *key)]
        if self._of_calls.rules:
            context = facts.context(self._of_calls.wanted)
            found = [*found, *self._of_calls.ask(asked, context, involved)]
        return sorted(found, key=self._place) if found else found

    def wants(self, name: str) -> bool:
        """Whether some rule uses a fact; unused facts are not computed."""
        return any(name in some.wanted for some in (self._of_calls, self._of_repeated, self._of_pairs))

    def _ask_of_pair(self, pair: Parties) -> tuple[dict[str, Any], Any, list[Match]]:
        """The question less its context, who is involved, and what rules say that look no further."""
        asked, involved = question(pair), entities(pair)
        source, workspace, permissions = pair[-3:]
        context = {"source": source, "workspace": workspace, "permissions": permissions}
        return asked, involved, self._of_pairs.ask(asked, context, involved)

    def _ask_of_repeated(self, pair: Parties, *values: Any) -> list[Match]:
        asked, involved, _ = self._pair(pair)
        context = dict(zip(self._of_repeated.wanted, values, strict=True))
        return self._of_repeated.ask(asked, context, involved)

    def _place(self, match: Match) -> int:
        return self._places[match[2]] if match[2] is not None else -1


class RuleSet:
    """Rules that are asked together."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        engine = cedar()
        self.rules = rules
        self.wanted = wanted("\n".join(rule.text for rule in rules))
        """The facts that some of them look at."""
        self.policies = engine.PolicySet.from_str("\n".join([PERMIT, *[rule.text for rule in rules]]))
        self._authorize = engine.is_authorized_batch

    def ask(self, question: dict[str, Any], context: dict[str, Any], involved: Any) -> list[Match]:
        """The rules that object."""
        asked = {**question, "context": to_json(context).decode()}
        result = self._authorize([asked], self.policies, involved)[0]
        errors = result.diagnostics.errors
        if result.allowed and not errors:
            return []
        found = [self._failure(error) for error in errors]
        if not result.allowed:
            for name in result.diagnostics.reasons:
                rule = self._rule(int(name.removeprefix("policy")))
                found.append((rule.decision, rule.reason, rule))
        return found or [self._failure("no decision was made")]

    def _rule(self, position: int) -> Rule:
        return self.rules[position - 1]  # the first is the permit

    def _failure(self, error: str) -> Match:
        found = FAILED.search(error)
        rule = self._rule(int(found[1])) if found else None
        return Decision.DENY, f"cannot be evaluated: {found[2] if found else error}", rule


def question(pair: Parties) -> dict[str, Any]:
    """Whether an agent may do this with a tool, as a Cedar request."""
    effect, agent, tool = pair[0], pair[1], pair[5]
    return {
        "principal": {"type": "Agent", "id": agent},
        "action": {"type": "Action", "id": effect},
        "resource": {"type": "Tool", "id": tool},
    }


def wanted(text: str) -> list[str]:
    """The facts that policies use; all of them if one uses the context as a whole."""
    named = ASKED.findall(text)
    if len(re.findall(r"\bcontext\b", text)) > len(named):
        return list(FACTS)
    return [name for name in FACTS if name in named]


def parties(action: Mapping[str, Any]) -> Parties:
    """Who is involved in an action."""
    return (
        action["side_effects"],
        action["agent_id"],
        action["user"],
        action["channel"],
        action["depth"],
        action["tool"],
        action["name"],
        action["namespace"],
        str(action["source"]),
        str(action["workspace"]),
        tuple(action.get("permissions", ())),
    )


def entities(pair: Parties) -> Any:
    """The agent in its user and channel, and the tool in its namespace."""
    agent, user, channel, depth, tool, name, namespace = pair[1:8]

    def uid(kind: str, name: str) -> dict[str, str]:
        return {"type": kind, "id": name}

    found: list[dict[str, Any]] = [
        {
            "uid": uid("Agent", agent),
            "attrs": {"user": user, "channel": channel, "depth": depth},
            "parents": [uid("User", user), uid("Channel", channel)],
        },
        {
            "uid": uid("Tool", tool),
            "attrs": {"name": name, "namespace": namespace},
            "parents": [uid("Namespace", namespace)],
        },
    ]
    return cedar().Entities.from_json_str(json.dumps(found))
