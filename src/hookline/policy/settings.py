"""Settings: `[policy]` of the user and of the project.

A project belongs to strangers. Its settings are added to the user's and can only make them stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hookline.errors import PolicyError
from hookline.hooks.errors import suggestion
from hookline.specs import SideEffects

Default: TypeAlias = Literal["auto", "allow", "ask", "deny"]
STRICTNESS: tuple[Default, ...] = ("allow", "auto", "ask", "deny")


class Section(BaseModel):
    """The base of every table: unknown settings are refused."""

    # Built when first used: where the settings say nothing, most of them never are.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class FloorRules(Section):
    """What the operator's floor denies, or asks about."""

    tools: list[str] = Field(default_factory=list)
    namespaces: list[str] = Field(default_factory=list)
    effects: list[SideEffects] = Field(default_factory=list[SideEffects])
    paths: list[str] = Field(default_factory=list)
    commands: list[str] = Field(default_factory=list)


class FloorSettings(Section):
    """`[policy.floor]`."""

    deny: FloorRules = FloorRules()
    ask: FloorRules = FloorRules()
    cedar: str | None = None
    """A file with policies of one's own."""


class NetworkSettings(Section):
    """`[policy.network]`."""

    allow: list[str] | None = None


class BudgetSettings(Section):
    """`[policy.budgets]`, each for a session."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    seconds: int | None = Field(default=None, ge=0)

    def amounts(self) -> dict[str, int]:
        """The limits that are set; the cost in millionths."""
        said = self.model_dump(exclude_none=True)
        return {name: round(v * 1_000_000) if name == "cost" else v for name, v in said.items()}


class ApprovalSettings(Section):
    """`[policy.approvals]`."""

    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """How long a question waits; then it is denied."""


class AuditSettings(Section):
    """`[audit]`."""

    enabled: bool = False
    payloads: bool = False
    """Whether arguments and reasons are written, too."""
    path: str | None = None
    """The file; by default `audit/audit.jsonl` of the home."""
    sign: list[str] | None = Field(default=None, min_length=1)
    """A program that signs: it gets the statement on standard input and prints the signature."""
    key: str | None = None
    """Instead of `sign`: a key for `ssh-keygen -Y sign`, outside the home."""
    every: int = Field(default=100, ge=1)
    """After how many lines the log is signed."""
    seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """After how many seconds it is signed, if there are new lines."""
    required: bool = False
    """Whether decisions are denied while no signature can be made."""
    witness: str | None = None
    """A file outside the home to which each signed head is added."""

    @model_validator(mode="after")
    def _signs_one_way(self) -> AuditSettings:
        if self.sign is not None and self.key is not None:
            raise ValueError("set either sign or key")
        if self.sign is None and self.key is None and (self.required or self.witness is not None):
            raise ValueError("required and witness need sign or key")
        return self


class PolicySettings(Section):
    """`[policy]` of one configuration."""

    default: Default | None = None
    approvals: ApprovalSettings = ApprovalSettings()
    packs: list[str] = Field(default_factory=list)
    floor: FloorSettings = FloorSettings()
    network: NetworkSettings = NetworkSettings()
    budgets: BudgetSettings = BudgetSettings()


@dataclass(slots=True)
class Layered:
    """The user's settings with the project's on top."""

    default: Default = "auto"
    packs: list[tuple[str, Path]] = field(default_factory=list[tuple[str, Path]])
    """Each pack with the folder that its path is relative to."""
    floors: list[tuple[FloorSettings, Path]] = field(default_factory=list[tuple[FloorSettings, Path]])
    allow: list[list[str]] = field(default_factory=list[list[str]])
    """Lists of hosts; one that may be reached is on each of them."""
    budget: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float | None = None
    """How long a question waits for its answer."""
    notes: list[str] = field(default_factory=list[str])
    """What was ignored, and why."""


def layered(
    user: Mapping[str, Any], project: Mapping[str, Any], *, home: Path, workspace: Path
) -> Layered:
    """Put the two together; the stricter one counts."""
    mine = read_settings(user, "the user's configuration")
    theirs = read_settings(project, "the project's configuration")
    found = Layered(default=mine.default or "auto")
    if theirs.default is not None:
        if STRICTNESS.index(theirs.default) >= STRICTNESS.index(found.default):
            found.default = theirs.default
        else:
            found.notes.append(
                f"the project's [policy] default = {theirs.default!r} is left out: "
                f"a project can only be stricter than {found.default!r}"
            )
    for settings, base in ((mine, home), (theirs, workspace)):
        found.packs += [(name, base) for name in settings.packs]
        found.floors.append((settings.floor, base))
        if settings.network.allow is not None:
            found.allow.append(settings.network.allow)
        if (seconds := settings.approvals.seconds) is not None:
            found.seconds = min(seconds, found.seconds or seconds)
        for name, amount in settings.budgets.amounts().items():
            found.budget[name] = min(amount, found.budget.get(name, amount))
    if mine.network.allow is None:
        found.allow.clear()  # a project opens nothing
    return found


def read_settings(values: Mapping[str, Any], where: str) -> PolicySettings:
    """One configuration's `[policy]`, or an error that names each wrong setting."""
    try:
        return PolicySettings.model_validate(dict(values))
    except ValidationError as error:
        told = [_told(dict(fault)) for fault in error.errors()]
        raise PolicyError("; ".join(f"{text} (in {where})" for text in told)) from None


def _told(fault: dict[str, Any]) -> str:
    *above, name = [str(part) for part in fault["loc"]]
    if fault["type"] != "extra_forbidden":
        dotted = ".".join(["policy", *above, name])
        return f"{dotted}: {fault['msg']}, got {fault['input']!r}"
    model: type[BaseModel] = PolicySettings
    for part in above:
        inner = model.model_fields[part].annotation
        assert isinstance(inner, type)
        model = inner
    fields = list(model.model_fields)
    near = suggestion(name, fields) or f"; there are {', '.join(fields)}"
    return f"unknown setting {'.'.join(['policy', *above, name])}{near}"
