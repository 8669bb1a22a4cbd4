"""The section `[hook]` of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class HookSettings(BaseModel):
    """How `hookline hook` works."""

    model_config = ConfigDict(extra="forbid")

    idle: float = Field(default=1800, gt=0, description="Seconds without an event until a server ends.")
