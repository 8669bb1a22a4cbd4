"""`[stt]` and `[tts]`: who listens, who speaks, and how much."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_ENGINE = "local"


class EngineSettings(BaseModel):
    """Which engine is used, and whether: `openai:whisper-1`, or the two halves as two settings."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(default=None, min_length=1)
    provider: str | None = Field(default=None, min_length=1)
    language: str | None = Field(default=None, min_length=2)
    """For example `en`. The engine chooses by default."""
    enabled: bool | None = None

    @property
    def engine(self) -> str:
        """The name of the engine: `provider:model`, or a provider alone."""
        if self.provider is None:
            return self.model or DEFAULT_ENGINE
        if self.model is None or self.model == self.provider:
            return self.provider
        return f"{self.provider}:{self.model.removeprefix(f'{self.provider}:')}"


class SpeechToTextSettings(EngineSettings):
    """`[stt]`. Unset, `enabled` means on."""

    max_seconds: float = Field(default=300.0, gt=0, le=7200)
    """How long a recording may be; a remote engine judges that itself."""
    max_bytes: int = Field(default=20_000_000, ge=1)
    """How large a recording may be, as it arrives."""


class TextToSpeechSettings(EngineSettings):
    """`[tts]`. If `enabled` is unset, only spoken messages get a spoken answer."""

    voice: str | None = Field(default=None, min_length=1)
    """For example `en-us+Michael` for the local engine, or `nova` for OpenAI's."""
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    """1 is the engine's usual speed."""
    format: Literal["wav", "ogg", "mp3"] = "wav"
    """`ogg` has Opus in it."""
    max_characters: int = Field(default=1500, ge=1, le=4096)
    """How much of an answer is spoken, up to the last whole sentence that fits."""
