"""Cases: a table of calls and what should become of them, so that a policy can be tested.

[[case]]
tool = "shell"
arguments = { command = "rm -rf /" }
expect = "deny"
by = "destructive-shell/root-or-home"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hookline.errors import PolicyError
from hookline.specs import SideEffects
from hookline.text.untrusted import load_toml

from .policy import Policy, strictest


class PolicyCase(BaseModel):
    """One call, and its expected decision."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    expect: Literal["allow", "ask", "deny"]
    name: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    by: str | None = None
    """The rule that should decide."""
    namespace: str | None = None
    side_effects: SideEffects | None = None
    """For a tool that is not installed here; `external` unless said."""
    user: str = "human"
    channel: str = "terminal"
    agent: str = "main"
    depth: int = 0
    source: str = "model"
    session: str = "case"
    authorized: bool | None = None
    """What `authorize_action` answered."""
    spent: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyCaseResult:
    """The result of a case."""

    case: PolicyCase
    number: int
    decision: str
    deciders: list[str]

    @property
    def passed(self) -> bool:
        """Whether the decision was as expected."""
        expected = self.case.by is None or self.case.by in self.deciders
        return self.decision == self.case.expect and expected

    @property
    def title(self) -> str:
        """How the case is called."""
        return self.case.name or f"case {self.number}: {self.case.tool} {self.case.arguments}"


def read_cases(file: Path) -> list[PolicyCase]:
    """The cases of a TOML or YAML file, or an error that names the case and the field."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{file}: the cases cannot be read: {error}") from None
    given = _parsed(text, file)
    cases = given.get("case", given.get("cases"))
    if not isinstance(cases, list) or not cases:
        raise PolicyError(f"{file}: there are no cases; write them as [[case]] tables")
    found: list[PolicyCase] = []
    for number, one in enumerate(cast("list[Any]", cases), start=1):
        try:
            found.append(PolicyCase.model_validate(one))
        except ValidationError as error:
            fault = error.errors()[0]
            field = ".".join(map(str, fault["loc"]))
            raise PolicyError(f"{file}: case {number}: {field}: {fault['msg']}") from None
    return found


def _parsed(text: str, file: Path) -> Mapping[str, Any]:
    try:
        if file.suffix in (".yaml", ".yml"):
            import yaml

            given: Any = yaml.safe_load(text)
        else:
            given = load_toml(text)
    except ValueError as error:
        raise PolicyError(f"{file}: not TOML: {error}") from None
    except Exception as error:
        raise PolicyError(f"{file}: not YAML: {error}") from None
    if not isinstance(given, dict):
        raise PolicyError(f"{file}: there are no cases; write them as [[case]] tables")
    return cast("dict[str, Any]", given)


async def run_cases(
    cases: list[PolicyCase], policy: Policy, *, workspace: Path, spec: Callable[[str], Any]
) -> list[PolicyCaseResult]:
    """Judge every case. `spec` gives a tool's spec, or None for one that is not installed."""
    results: list[PolicyCaseResult] = []
    for number, case in enumerate(cases, start=1):
        steps = await policy.explain(action_of(case, spec(case.tool), workspace))
        decision = strictest(steps)
        deciders = [step.by for step in steps if step.decision is decision]
        results.append(PolicyCaseResult(case, number, decision.name.lower(), deciders))
    return results


def action_of(case: PolicyCase, spec: Any, workspace: Path) -> dict[str, Any]:
    """The action that a case describes."""
    effects = case.side_effects or (spec.side_effects if spec else SideEffects.external)
    namespace = case.namespace if case.namespace is not None else spec.namespace if spec else ""
    spent = {"calls": 0, "tokens": 0, "cost": 0, "seconds": 0, **case.spent}
    return {
        "kind": "tool.call",
        "tool": case.tool,
        "name": spec.name if spec else case.tool,
        "namespace": namespace,
        "side_effects": effects.value,
        "permissions": list(spec.permissions) if spec else [],
        "arguments": case.arguments,
        "call_id": f"case_{case.tool}",
        "session_id": case.session,
        "agent_id": case.agent,
        "depth": case.depth,
        "source": case.source,
        "user": case.user,
        "channel": case.channel,
        "workspace": str(workspace),
        "authorized": case.authorized,
        "spent": spent,
    }
