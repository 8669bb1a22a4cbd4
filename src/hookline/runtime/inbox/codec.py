"""Envelopes as JSON, with what they carry beside text."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, cast

from hookline.agent.journal import field_names
from hookline.types import AudioPart, Envelope, FilePart, ImagePart, Part, TextPart, field_of

_MISSING = object()


def packed(envelope: Envelope) -> str:
    """An envelope as JSON; a field that JSON cannot hold is left out."""
    fields = {name: field_of(envelope, name) for name in field_names(envelope)}
    return json.dumps(plain(fields), separators=(",", ":"))


def unpacked(text: str) -> dict[str, Any]:
    """The envelope that was packed; its parts are parts again."""
    envelope: dict[str, Any] = json.loads(text)
    if isinstance(envelope.get("parts"), list):
        envelope["parts"] = [part_of(part) for part in envelope["parts"]]
    return envelope


def plain_part(part: Part) -> dict[str, Any]:
    """A part as JSON, whatever its size."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    said: dict[str, Any] = {
        "type": part.type,
        "mime_type": part.mime_type,
        "data": b64encode(part.data).decode(),
    }
    if isinstance(part, ImagePart | FilePart) and part.url:
        said["url"] = part.url
    if isinstance(part, FilePart) and part.name:
        said["name"] = part.name
    return said


def part_of(said: Any) -> Any:
    """The part that JSON stands for; what is none stays as it is."""
    if not isinstance(said, dict):
        return said
    fields = cast("dict[str, Any]", said)
    kind = fields.get("type")
    if kind == "text":
        return TextPart(fields["text"])
    if kind == "audio":
        return AudioPart(b64decode(fields["data"]), fields["mime_type"])
    if kind == "image":
        return ImagePart(b64decode(fields.get("data", "")), fields["mime_type"], fields.get("url"))
    if kind == "file":
        data = b64decode(fields.get("data", ""))
        return FilePart(data, fields["mime_type"], fields.get("name", ""), fields.get("url"))
    return fields


def plain(value: Any) -> Any:
    """A value as JSON holds it: parts become objects, and what JSON cannot hold is left out."""
    found = _plain(value)
    return None if found is _MISSING else found


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, TextPart | AudioPart | ImagePart | FilePart):
        return plain_part(value)
    if isinstance(value, Mapping):
        items = {str(k): _plain(v) for k, v in cast("Mapping[Any, Any]", value).items()}
        return {k: v for k, v in items.items() if v is not _MISSING}
    if isinstance(value, list | tuple):
        return [v for v in map(_plain, cast("list[Any]", value)) if v is not _MISSING]
    return _MISSING
