"""What listens and what speaks: the two interfaces that engines have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from hookline.types import AudioPart

from .formats import AudioFormat

SpokenFormat = Literal["wav", "ogg", "mp3"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording in a recognised format."""

    data: bytes
    format: AudioFormat
    language: str | None = None
    max_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text to speak, and how. The text is plain and of bounded length."""

    text: str
    voice: str | None = None
    speed: float = 1.0
    language: str | None = None
    format: SpokenFormat = "wav"


class Recognizer(Protocol):
    """Turns speech into text."""

    async def hear(self, recording: Recording) -> str:
        """The transcript. Raises an error that makes sense to the sender if nothing was recognised."""
        ...

    async def close(self) -> None:
        """Release resources. The engine opens them again on its next use."""
        ...


class Synthesizer(Protocol):
    """Turns text into speech."""

    async def say(self, utterance: Utterance) -> AudioPart:
        """The sound."""
        ...

    async def close(self) -> None:
        """Release resources. The engine opens them again on its next use."""
        ...


@dataclass(frozen=True, slots=True)
class VoiceProvider:
    """A source of engines. Each maker gets what follows the colon, and the provider's settings.

    Making an engine is cheap; it loads when it is first used.
    """

    name: str
    recognizer: Callable[[str, Mapping[str, Any]], Recognizer] | None = None
    synthesizer: Callable[[str, Mapping[str, Any]], Synthesizer] | None = None
