"""Prepared rules: all of them parsed once into one set, and asked about one call at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hookline.hooks import Decision

from .facts import Facts
from .names import FACTS
from .rule import Rule, cedar

PERMIT = "permit (principal, action, resource);"
"""What no rule forbids is permitted."""
ASKED = re.compile(r"\bcontext\s*(?:\.\s*|\bhas\s+)(\w+)")
FAILED = re.compile(r"policy `policy(\d+)`: (.*)", re.DOTALL)

Match = tuple[Decision, str | None, Rule | None]
"""What a rule decided and why; no rule where the judging itself failed."""


class PreparedRules:
    """Rules, ready to judge."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        engine = cedar()
        self.rules = list(rules)
        text = "\n".join(rule.text for rule in rules)
        self.policies = engine.PolicySet.from_str(f"{PERMIT}\n{text}")
        self.wanted = wanted(text)
        """The facts that some rule looks at; the others are not worked out."""
        self._authorize = engine.is_authorized

    def judge(self, facts: Facts) -> list[Match]:
        """The rules that object. What cannot be evaluated denies."""
        result = self._authorize(self.request(facts), self.policies, entities(*parties(facts.action)))
        diagnostics = result.diagnostics
        if not diagnostics.errors:
            if result.allowed:
                return []
            positions = sorted(int(name.removeprefix("policy")) for name in diagnostics.reasons)
            matched = [self._rule(position) for position in positions]
            if matched:
                return [(rule.decision, rule.reason, rule) for rule in matched]
        return [self._failure(error) for error in diagnostics.errors or ["no decision was made"]]

    def request(self, facts: Facts) -> dict[str, Any]:
        """The question as Cedar takes it."""
        action = facts.action
        return {
            "principal": {"type": "Agent", "id": action["agent_id"]},
            "action": {"type": "Action", "id": action["side_effects"]},
            "resource": {"type": "Tool", "id": action["tool"]},
            "context": json.dumps(facts.context(self.wanted)),
        }

    def _rule(self, position: int) -> Rule:
        return self.rules[position - 1]  # the first is the permit

    def _failure(self, error: str) -> Match:
        found = FAILED.search(error)
        rule = self._rule(int(found[1])) if found else None
        return Decision.DENY, f"cannot be evaluated: {found[2] if found else error}", rule


def wanted(text: str) -> list[str]:
    """The facts that policies look at; all of them where one looks at the context as a whole."""
    named = ASKED.findall(text)
    if len(re.findall(r"\bcontext\b", text)) > len(named):
        return list(FACTS)
    return [name for name in FACTS if name in named]


def parties(action: Mapping[str, Any]) -> tuple[str, str, str, int, str, str, str]:
    """Who is involved in an action."""
    return (
        action["agent_id"],
        action["user"],
        action["channel"],
        action["depth"],
        action["tool"],
        action["name"],
        action["namespace"],
    )


@lru_cache(maxsize=1024)
def entities(
    agent: str, user: str, channel: str, depth: int, tool: str, name: str, namespace: str
) -> Any:
    """The agent in its user and channel, and the tool in its namespace; parsed once for each pair."""

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
