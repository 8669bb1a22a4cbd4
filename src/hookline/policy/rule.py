r"""Rules: policies written in Cedar, each with where it stands and what it decides.

A rule is a `forbid`. It denies, or asks where it is annotated so:

    @id("no-pushes")
    @decision("ask")
    @reason("this reaches the shared repository")
    forbid (principal, action, resource)
    when { context.command_text like "*\ngit push*" };
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hookline.errors import PolicyError
from hookline.hooks import Decision
from hookline.hooks.errors import suggestion

DECISIONS = {"deny": Decision.DENY, "ask": Decision.ASK}


@dataclass(frozen=True, slots=True)
class Rule:
    """One policy."""

    owner: str
    """The pack it belongs to, or `floor`."""
    name: str
    """Its `@id`, or its file and number."""
    text: str
    file: Path
    line: int
    decision: Decision = Decision.DENY
    reason: str | None = None

    @property
    def id(self) -> str:
        """How the tape and `explain` name it: `protected-paths/keys`."""
        return f"{self.owner}/{self.name}"

    @property
    def place(self) -> str:
        """Its location."""
        return f"{self.file}:{self.line}"


def cedar() -> Any:
    """The Cedar engine, or an error that says how to get it."""
    try:
        import cedarpy
    except ImportError:
        raise PolicyError(
            "policies in Cedar are configured and the engine is not installed: "
            "pip install 'hookline[policy]'"
        ) from None
    return cedarpy


def read_rules(file: Path, owner: str) -> list[Rule]:
    """The rules of a file, or an error that names the line."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PolicyError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise PolicyError(f"{file}: the policies cannot be read: {error.strerror}") from None
    found = [parse_rule(statement, owner, file, line) for line, statement in statements(text, file)]
    return [
        rule if rule.name else replace(rule, name=f"{file.name}#{number}")
        for number, rule in enumerate(found, start=1)
    ]


def parse_rule(text: str, owner: str, file: Path, line: int) -> Rule:
    """One policy, checked: it must be whole, and it must forbid."""
    where = f"{file}:{line}"
    engine = cedar()
    try:
        parsed = engine.PolicySet.from_str(text).to_pst()
    except ValueError as error:
        raise PolicyError(f"{where}: not a policy: {error}") from None
    if parsed.templates or len(parsed.static_policies) != 1:
        raise PolicyError(f"{where}: templates (?principal, ?resource) cannot be used here")
    (policy,) = parsed.static_policies.values()
    if policy.effect != "forbid":
        raise PolicyError(
            f"{where}: a policy can only forbid: everything is permitted that none forbids; "
            "write `forbid (…) unless { … }`"
        )
    notes = dict(policy.annotations)
    decision = notes.get("decision", "deny")
    if decision not in DECISIONS:
        near = suggestion(decision, DECISIONS)
        raise PolicyError(f"{where}: @decision must be 'deny' or 'ask', not {decision!r}{near}")
    name, reason = notes.get("id") or "", notes.get("reason")
    return Rule(owner, name, text, file, line, DECISIONS[decision], reason)


def statements(text: str, file: Path) -> Iterator[tuple[int, str]]:
    """The policies of a text, each with the line that it begins on."""
    at, start, line, quoted = 0, None, 1, False
    first = 1
    while at < len(text):
        char = text[at]
        if not quoted and text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if start is None and not char.isspace():
            start, first = at, line
        if char == "\n":
            line += 1
        elif quoted and char == "\\":
            at += 1
            line += text[at : at + 1] == "\n"
        elif char == '"':
            quoted = not quoted
        elif char == ";" and not quoted and start is not None:
            yield first, text[start : at + 1]
            start = None
        at += 1
    if start is not None:
        raise PolicyError(f"{file}:{first}: the policy that begins here has no ';' at its end")
