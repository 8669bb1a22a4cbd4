"""What a subagent is given and gives back: its role, its task, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from hookline.events import SubagentStatus
from hookline.sandbox.settings import Profile

Context: TypeAlias = Literal["temporary", "inherit", "named"]
"""What a subagent sees: only its task, the parent's conversation, or its own earlier tasks."""


class Role(BaseModel):
    """A kind of subagent, `[agents.NAME]` in the configuration: its instructions, model and tools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    description: str = ""
    instructions: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    """Tools that it does not get, whatever `tools` says."""
    skills: tuple[str, ...] | None = None
    context: Context = "temporary"
    steps: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    sandbox: Profile | None = None
    """The loosest profile in which its commands, and those of its own subagents, may start."""


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work for a subagent."""

    text: str
    label: str = ""
    role: str = ""
    context: Context | None = None
    tools: tuple[str, ...] | None = None
    skills: tuple[str, ...] | None = None
    id: str = field(default_factory=lambda: f"task_{uuid4().hex[:12]}")


@dataclass(frozen=True, slots=True)
class SubagentResult:
    """The result of a task."""

    task_id: str
    label: str
    session_id: str
    status: SubagentStatus
    text: str
    usage: dict[str, int] = field(default_factory=dict[str, int])
