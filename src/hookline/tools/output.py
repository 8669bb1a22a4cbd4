"""Output: a tool's return value, as the model sees it and the tape stores it."""

from __future__ import annotations

import re
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from hookline.errors import ToolError
from hookline.hooks.errors import error_text
from hookline.types import AudioPart, Content, FilePart, ImagePart, Part, TextPart

LIMIT = 50_000
"""Characters of one result that the model sees by default."""

_GARBAGE = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f\ufffd\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_GARBAGE_SHARE = 0.1
_GARBAGE_AT_LEAST = 4  # a short name with one odd letter is a name
_PARTS = (TextPart, ImagePart, AudioPart, FilePart)


def model_content(value: Any) -> Content:
    """The form of a returned value that a model can read: text, or content parts.

    Raises `ToolError` for what has none.
    """
    if isinstance(value, str):
        return readable(value)
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        return readable_bytes(bytes(cast(bytes, value)))
    parts = _as_parts(value)
    return parts if parts is not None else readable(_as_json(value))


def readable(text: str) -> str:
    """Text as it is, or a note in its place where it is mostly not text.

    A few stray characters that cannot be stored are replaced, so that a name that is not
    UTF-8 does not hide a whole listing.
    """
    if is_binary(text):
        return f"[binary output, {len(text):,} characters, not shown]"
    return _UNSTORABLE.sub("\ufffd", text)


def readable_bytes(data: bytes) -> str:
    """Bytes as the text that they encode, or a note in their place."""
    text = data.decode("utf-8", errors="replace")
    if is_binary(text):
        return f"[binary output, {len(data):,} bytes, not shown]"
    return _UNSTORABLE.sub("\ufffd", text)


def is_binary(text: str) -> bool:
    """Whether so much of a text is control or undecodable characters that it is none."""
    if _GARBAGE.search(text) is None:
        return False
    return len(_GARBAGE.findall(text)) > max(len(text) * _GARBAGE_SHARE, _GARBAGE_AT_LEAST - 1)


def cut(text: str, limit: int = LIMIT) -> str:
    """Leave out the middle of a text that is longer than a limit, and say how much."""
    if len(text) <= limit:
        return text
    room = max(limit - len(_gap(len(text))), 0)
    head, tail = room - room // 2, room // 2
    return text[:head] + _gap(len(text) - room) + text[len(text) - tail :]


def cut_content(content: Content, limit: int = LIMIT) -> Content:
    """The same for text parts, each for itself; pictures and sound are left whole."""
    if isinstance(content, str):
        return cut(content, limit)
    return [TextPart(cut(part.text, limit)) if isinstance(part, TextPart) else part for part in content]


def _gap(left_out: int) -> str:
    return f"\n… {left_out:,} characters left out …\n"


def _as_parts(value: Any) -> list[Part] | None:
    """Content parts as a list; text among them becomes a part too."""
    if isinstance(value, _PARTS):
        return [_part(value)]
    if not isinstance(value, list | tuple):
        return None
    items = cast("list[Any]", value)
    if not any(isinstance(item, _PARTS) for item in items):
        return None
    if not all(isinstance(item, (*_PARTS, str)) for item in items):
        kinds = ", ".join(sorted({type(item).__name__ for item in items}))
        raise ToolError(f"the tool returned a list of {kinds}: content parts do not mix with data")
    return [_part(item) for item in items]


def _part(item: Part | str) -> Part:
    if isinstance(item, str):
        return TextPart(readable(item))
    return TextPart(readable(item.text)) if isinstance(item, TextPart) else item


def _as_json(value: Any) -> str:
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except PydanticSerializationError as error:
        if "surrogates" in str(error):  # names of files that are not UTF-8
            return _with_surrogates(value)
        raise _unusable(value, error) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise _unusable(value, error) from error


def _with_surrogates(value: Any) -> str:
    import json

    try:
        plain = to_jsonable_python(value, inf_nan_mode="strings")
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except (PydanticSerializationError, ValueError, TypeError) as error:
        raise _unusable(value, error) from error


def _unusable(value: object, error: Exception) -> ToolError:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return ToolError(
        f"the tool returned {name}, which is neither text nor JSON ({error_text(error)}); "
        "return text, plain data, a dataclass, a pydantic model or content parts"
    )
