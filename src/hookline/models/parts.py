"""Content parts as every client reads them: text, media, or a dict in the provider's own form."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias, cast

from hookline.types import AudioPart, FilePart, ImagePart, TextPart

from .model import content_text

_TEXTS = ("application/json", "application/xml", "application/yaml", "application/toml")
_DEFAULTS = {"image": "image/png", "audio": "audio/wav", "file": "application/pdf"}


class Media(NamedTuple):
    """A picture, a recording or a file: its bytes in base 64, or its address."""

    kind: str
    mime_type: str
    data: str = ""
    url: str = ""
    name: str = ""

    @property
    def data_url(self) -> str:
        """The content as a URL."""
        return f"data:{self.mime_type};base64,{self.data}"

    def note(self, why: str = "this model takes none") -> str:
        """The text that stands for media that cannot be sent."""
        named = f" {self.name}" if self.name else ""
        where = f", {self.url}" if self.url else ""
        return f"[{self.kind}{named}, {self.mime_type}{where}: {why}]"


ReadPart: TypeAlias = str | Media | dict[str, Any]


def read_parts(content: object) -> list[ReadPart]:
    """The parts of a message's content; text alone is one part, and empty text is none."""
    if isinstance(content, str):
        return [content] if content else []
    if content is None:
        return []
    if not isinstance(content, Iterable):
        return [str(content)]
    return [read_part(part) for part in cast("Iterable[object]", content)]


def written_text(content: object) -> str:
    """The content for a model that reads only text: media are notes."""
    if isinstance(content, str):
        return content
    parts = (_written(part) for part in read_parts(content))
    return "\n".join(filter(None, parts))


def _written(part: ReadPart) -> str:
    if isinstance(part, Media):
        return part.note()
    return part if isinstance(part, str) else content_text([part])


def read_part(part: object) -> ReadPart:
    """One part, from its class or from the form that it has on the tape."""
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, ImagePart | AudioPart | FilePart):
        url, name = getattr(part, "url", None) or "", getattr(part, "name", "")
        data = "" if url else b64encode(part.data).decode()
        return _readable(Media(part.type, part.mime_type, data, url, name))
    if not isinstance(part, dict):
        return str(part)
    table = cast("dict[str, Any]", part)
    kind = table.get("type")
    if kind == "text" and table.keys() == {"type", "text"}:
        return str(table["text"])
    if kind not in _DEFAULTS or not ("data" in table or "url" in table):
        return table
    data: Any = table.get("data") or b""
    encoded = data if isinstance(data, str) else b64encode(data).decode()
    mime = str(table.get("mime_type") or _DEFAULTS[kind])
    url = str(table.get("url") or "")
    return _readable(Media(kind, mime, "" if url else encoded, url, str(table.get("name") or "")))


def _readable(media: Media) -> str | Media:
    """Files of text become text, which every model reads."""
    if media.kind != "file" or media.url or not media.mime_type.startswith(("text/", *_TEXTS)):
        return media
    try:
        text = b64decode(media.data).decode()
    except ValueError:
        return media
    return f"{media.name or 'file'}:\n\n{text}"
