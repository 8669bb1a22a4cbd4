"""Convert a server's results to our content types."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from hookline.errors import ToolError
from hookline.types import AudioPart, Content, FilePart, ImagePart, Part, TextPart

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock, EmbeddedResource


def content_of(result: CallToolResult) -> Content:
    """Text, or parts if there are pictures or sound. An error result raises.

    Servers send structured data next to a text with the same content, so it is used only if there is
    no text.
    """
    parts = [_part(block) for block in result.content]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if result.is_error:
        raise ToolError("\n".join(texts).strip() or "the tool failed, and its server does not say why")
    structured = result.structured_content
    if structured is not None and not any(text.strip() for text in texts):
        parts.append(TextPart(json.dumps(structured, ensure_ascii=False)))
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return parts


def _part(block: ContentBlock) -> Part:
    match block.type:
        case "text":
            return TextPart(block.text)
        case "image":
            return _binary(block.data, block.mime_type, "a picture")
        case "audio":
            return _binary(block.data, block.mime_type, "a recording")
        case "resource":
            return _embedded(block)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return TextPart(f"[resource {block.name}, {block.uri}{about}]")


def _embedded(block: EmbeddedResource) -> Part:
    resource: Any = block.resource
    if hasattr(resource, "text"):
        return TextPart(f"[{resource.uri}]\n{resource.text}")
    return _binary(resource.blob, resource.mime_type or "", f"the resource {resource.uri}")


def _binary(encoded: str, mime_type: str, what: str) -> Part:
    try:
        data = b64decode(encoded, validate=True)
    except ValueError:
        return TextPart(f"[{what} was sent, but not as base64]")
    if mime_type.startswith("image/"):
        return ImagePart(data, mime_type)
    if mime_type.startswith("audio/"):
        return AudioPart(data, mime_type)
    if mime_type == "application/pdf":
        return FilePart(data, mime_type)
    return TextPart(f"[{what}, {mime_type or 'of unknown type'}, {len(data):,} bytes, not shown]")
