"""`[trace]` and `[otel]`: what the trace records, and where spans are sent."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Level = Literal["off", "decisions", "full"]


class TraceSettings(BaseModel):
    """`[trace]`: how much is kept, and for how long; the oldest goes first."""

    model_config = ConfigDict(extra="forbid")

    level: Level = "decisions"
    session_records: int = Field(default=20_000, ge=1)
    session_bytes: int = Field(default=8_000_000, ge=1)
    records: int = Field(default=500_000, ge=1)
    bytes: int = Field(default=128_000_000, ge=1)
    payload: int = Field(default=4_000, ge=100)
    """The bytes that are kept of one payload."""


class OtelSettings(BaseModel):
    """`[otel]`: where OpenTelemetry spans are sent; nowhere unless there is an endpoint."""

    model_config = ConfigDict(extra="forbid")

    endpoint: str = ""
    service_name: str = "hookline"
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: float = Field(default=10.0, gt=0)

    @field_validator("endpoint")
    @classmethod
    def _is_an_address(cls, endpoint: str) -> str:
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ValueError("must be an address such as http://localhost:4318/v1/traces")
        return endpoint
