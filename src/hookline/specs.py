"""Specs: what plugins say about the tools, skills, stores and packs they bring, and about themselves.

from hookline.specs import SideEffects, ToolSpec

ToolSpec(name="search", namespace="acme", side_effects=SideEffects.read)
"""

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from .hookspecs import API_VERSION
from .text.requirement import Requirement

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$", max_length=128)]
Namespace = Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.:/-]*)?$", max_length=128)]
JsonSchema = dict[str, Any]


class SideEffects(StrEnum):
    """The side effects of a tool."""

    none = "none"
    read = "read"
    write = "write"
    external = "external"


class ReplayPolicy(StrEnum):
    """What a replay does when the tool is called."""

    recorded_result = "recorded-result"
    must_stub = "must-stub"
    fail_loud = "fail-loud"


class SkillKind(StrEnum):
    """The purpose of a skill."""

    agent = "agent"
    workflow = "workflow"
    utility = "utility"


class StoreProtocol(StrEnum):
    """The operations of a store."""

    vector = "vector"
    graph = "graph"
    doc = "doc"
    memory = "memory"
    fact = "fact"


class Provides(StrEnum):
    """What a plugin may provide."""

    tool = "tool"
    skill = "skill"
    store = "store"
    pack = "pack"
    trigger = "trigger"
    channel = "channel"
    model = "model"
    command = "command"
    cli = "cli"


class Spec(BaseModel):
    """The base of every spec: unknown fields are refused, and specs are immutable."""

    # Each is built when it is first used: most processes use one or two of them.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _no_arguments() -> JsonSchema:
    return {"type": "object", "properties": {}}


class ToolSpec(Spec):
    """A tool as everyone but its own function knows it."""

    name: Name
    namespace: Namespace = ""
    version: str = "0.0.0"
    description: str = ""
    input_schema: JsonSchema = Field(default_factory=_no_arguments)
    output_schema: JsonSchema = Field(default_factory=dict)
    side_effects: SideEffects = SideEffects.external
    """A tool that does not say is taken for one that reaches outside."""
    replay_policy: ReplayPolicy = ReplayPolicy.recorded_result
    permissions: list[str] = Field(default_factory=list)
    idempotency_key: str | None = None
    """How a repeated call is recognised: the name of an argument, or a `{template}` over several.
    A tool that has one may run again after a crash."""
    cost_estimate: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    examples: list[Any] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    deprecated: bool | str = False
    """True, or what to use instead."""

    @property
    def qualified_name(self) -> str:
        """`namespace.name`, or the bare name without a namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @field_validator("input_schema")
    @classmethod
    def _takes_an_object(cls, schema: JsonSchema) -> JsonSchema:
        if schema.get("type", "object") != "object":
            raise ValueError(
                f"a tool takes named arguments: type must be 'object', not {schema['type']!r}"
            )
        return schema


class SkillSpec(Spec):
    """A skill that a plugin brings."""

    name: Name
    namespace: Namespace = ""
    version: str = "0.0.0"
    description: str = ""
    kind: SkillKind = SkillKind.utility
    tools: list[str] = Field(default_factory=list)
    examples: list[Any] = Field(default_factory=list)
    system_prompt: str = ""


class StoreSpec(Spec):
    """A named store and how to open it."""

    name: Name
    provider: str
    protocol: StoreProtocol
    config: dict[str, Any] = Field(default_factory=dict)
    """`${VAR}` is filled in from the environment before the schema is applied."""
    config_schema: JsonSchema = Field(default_factory=dict)
    capabilities: list[str] = Field(default_factory=list)


class PackSpec(Spec):
    """A pack of policy rules that a plugin ships."""

    id: Name
    version: str = "0.0.0"
    manifest_path: Path


class PluginManifest(Spec):
    """What is known about a plugin before any of its code is imported."""

    name: Name
    version: str = "0.0.0"
    api_version: str = Field(default=API_VERSION, pattern=r"^\d+(\.\d+)*$")
    namespaces: list[Name] = Field(default_factory=list)
    provides: list[Provides] = Field(default_factory=list[Provides])
    requires: list[str] = Field(default_factory=list)
    """Plugins that must be there, with the versions that will do: `other`, `other>=1.2,<2`."""
    order: int = Field(default=5000, ge=0, le=10000)
    """Lower comes first on the hooks that run oldest first."""
    required: bool = False
    """Whether nothing runs without this plugin, once it was installed."""
    settings: dict[str, str] = Field(default_factory=dict[str, str])
    """The sections of the settings that it reads, each with the pydantic model that has its form, as
    `module:Class`; empty for a section of any form. It is imported when the section is checked."""

    @field_validator("requires")
    @classmethod
    def _are_requirements(cls, texts: list[str]) -> list[str]:
        for text in texts:
            Requirement.read(text).check()
        return texts
