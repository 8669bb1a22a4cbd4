"""The section `[proxy]` of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ProxySettings(BaseModel):
    """How `hookline proxy` works."""

    model_config = ConfigDict(extra="forbid")

    port: int = Field(default=8767, ge=0, le=65535, description="The port on this machine.")
    token: str | None = Field(
        default=None, repr=False, description="What clients must send as their key."
    )
    chat: str = Field(default="openai", description="The provider behind chat completions.")
    forward_keys: bool = Field(
        default=False,
        description="Send the client's own key to the provider; the token is then in X-Hookline-Token.",
    )
    rounds: int = Field(
        default=8,
        ge=1,
        description="Model calls for one request, if calls are denied or answers sent back.",
    )
    keep_alive: float = Field(
        default=15.0, gt=0, description="Seconds of silence before a keep-alive is sent to the client."
    )
    max_body: int = Field(default=64 * 1024 * 1024, gt=0, description="Bytes of a request.")
    conversations: int = Field(default=1000, ge=1, description="Conversations that are remembered.")
