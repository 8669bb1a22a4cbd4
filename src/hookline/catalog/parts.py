"""Content parts: what a message is made of when it is more than text."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TextPart:
    """Written text."""

    text: str = ""
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class AudioPart:
    """Recorded or synthesised speech."""

    data: bytes = b""
    mime_type: str = "audio/wav"
    type: Literal["audio"] = field(default="audio", init=False)


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture: its bytes, or where they are."""

    data: bytes = b""
    mime_type: str = "image/png"
    url: str | None = None
    type: Literal["image"] = field(default="image", init=False)


Part: TypeAlias = TextPart | AudioPart | ImagePart
Content: TypeAlias = str | list[Part]
Prompt: TypeAlias = str | list[Any]
"""Text, or content parts: these, or dicts in the form that a model takes."""


def text_of(parts: Iterable[Part]) -> str:
    """The written text among the parts, a line for each."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))
