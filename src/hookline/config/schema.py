"""The form of the core sections, as pydantic models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hookline.system.retry import RetryPolicy


class HooksSettings(BaseModel):
    """`[hooks]`: how a gate treats a handler that raises, and the command hooks."""

    model_config = ConfigDict(extra="forbid")

    on_gate_error: Literal["allow", "deny"] = "allow"
    commands: dict[str, Any] = Field(default_factory=dict)
    """Checked where they are read."""


class RetrySettings(BaseModel):
    """Settings with a `retry` table, which changes single values of the section's own policy."""

    retry: RetryPolicy = RetryPolicy()

    @field_validator("retry", mode="before")
    @classmethod
    def _changed(cls, value: Any) -> Any:
        default: RetryPolicy = cls.model_fields["retry"].default
        if isinstance(value, Mapping):
            return default.changed(cast("Mapping[str, Any]", value))
        return value


class LimitsSettings(RetrySettings):
    """`[limits]`: the limits of one run of the agent. Unset ones have the runtime's default."""

    model_config = ConfigDict(extra="forbid", strict=True)

    steps: int | None = Field(default=None, ge=1)
    tool_seconds: float | None = Field(default=None, ge=0)
    """0: no limit."""
    parallel_tools: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    sent_back: int | None = Field(default=None, ge=0)
    depth: int | None = Field(default=None, ge=0)
    subagents: int | None = Field(default=None, ge=1)
    tool_calls: int | None = Field(default=None, ge=1)
    argument_size: int | None = Field(default=None, ge=1)
    argument_depth: int | None = Field(default=None, ge=1, le=200)
    """The tape and the policies encode 254 levels, and a call is nested in their records."""
    retry: RetryPolicy = RetryPolicy(attempts=4)
    """How failed model calls are tried again."""

    def given(self) -> dict[str, Any]:
        """The limits that were set, as the runtime takes them."""
        found = {**self.model_dump(exclude_none=True), "retry": self.retry}
        if found.get("tool_seconds") == 0:
            found["tool_seconds"] = None
        return found


class PluginsSettings(BaseModel):
    """`[plugins]`: which ones are left out; every table in it is one plugin's own."""

    model_config = ConfigDict(extra="allow")

    disabled: list[str] = Field(default_factory=list)
    require_lock: bool = False
    """Whether a plugin that is not in `plugins.lock` is refused, instead of pinned when first seen."""
    unpinned: list[str] = Field(default_factory=list)
    """Plugins that are not compared with `plugins.lock`, such as those under development."""
    required: list[str] = Field(default_factory=list)
    """Plugins and hook files that nothing runs without."""
    order: dict[str, Annotated[int, Field(strict=True, ge=0, le=10000)]] = Field(default_factory=dict)
    """The places of plugins, instead of those in their manifests; lower loads first."""
    on_load_error: Literal["stop", "continue"] = "stop"
    """What happens if a plugin or a hook file cannot be loaded."""

    @model_validator(mode="after")
    def _others_are_tables(self) -> PluginsSettings:
        for name, value in (self.model_extra or {}).items():
            if not isinstance(value, dict):
                raise ValueError(
                    f"unknown key {name!r}: there are 'disabled', 'on_load_error', 'order', "
                    "'require_lock', 'required' and 'unpinned', and a table for each plugin"
                )
        return self


class ProvidersSettings(BaseModel):
    """`[providers.<name>]`: the settings of a provider of models, which checks them itself."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _all_are_tables(cls, values: Any) -> Any:
        for name, value in values.items():
            if not isinstance(value, dict):
                raise ValueError(f"{name!r} must be a table: [providers.{name}]")
        return values


class StreamingSettings(BaseModel):
    """`[streaming]`: how much of an answer is held back to be judged while it streams."""

    model_config = ConfigDict(extra="forbid", strict=True)

    segment: int = Field(default=0, ge=0)
    """0: the whole answer."""
    overlap: int = Field(default=0, ge=0)


class CompactionSettings(BaseModel):
    """`[compaction]`: when a context is summarised, and how much of it stays, in tokens."""

    model_config = ConfigDict(extra="forbid", strict=True)

    enabled: bool | None = None
    reserve: int | None = Field(default=None, ge=0)
    keep: int | None = Field(default=None, ge=0)
    window: int | None = Field(default=None, ge=256)


CORE: dict[str, type[BaseModel]] = {
    "compaction": CompactionSettings,
    "hooks": HooksSettings,
    "limits": LimitsSettings,
    "plugins": PluginsSettings,
    "providers": ProvidersSettings,
    "streaming": StreamingSettings,
}
