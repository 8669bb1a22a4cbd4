"""Files that a message names with an `@`: what they hold goes to the model with the message.

    parts = attachments("compare @src/app.py:10-40 with @sketch.png", workspace)
    await app.process({"content": text, "attachments": parts})

A mention is an `@` after a space or at the beginning of a line, and a path in the workspace:
`@notes.txt`, `@"my notes.txt"`, `@notes.txt:10-40` for some lines, `@src/` for the names in a folder.
Between backticks an `@` is just that. A word that looks like no path and names no file, such as
`@alice`, stays a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hookline.errors import BadInput
from hookline.types import Envelope, FilePart, ImagePart, Part, Prompt, TextPart, content_of, field_of

if TYPE_CHECKING:
    from hookline.tools.context import ToolContext

LARGEST_TEXT = 200_000
"""Bytes of text that are attached of one file, and of all files of a message together."""
LARGEST_IMAGE = 5_000_000
"""Bytes of a picture or a PDF; the tape keeps none that is larger."""
MOST = 20
"""Files of one message."""
_LONGEST = 4096
"""Characters of a path."""
_NAMES = 200
"""Names of a folder."""

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"`]+))(?::(\d+)(?:-(\d+))?)?(?=\W|$)')
_RANGE = re.compile(r"(.+?):(\d+)(?:-(\d+))?")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LIKE_A_PATH = re.compile(r"[\w./~-]*(?:/|\.[A-Za-z]\w{0,4}$)[\w./~-]*")
_AFTER = ".,;:!?)]}>'"


@dataclass(frozen=True, slots=True)
class Mention:
    """A path as it was written after an `@`, with the lines that are meant."""

    path: str
    start: int = 1
    end: int | None = None

    @property
    def written(self) -> str:
        """The mention as it is named in messages."""
        return f"@{self.path}"


def prompt_of(envelope: Envelope) -> Prompt:
    """The text of a message, followed by the parts in its field `attachments`."""
    parts = field_of(envelope, "attachments")
    text = content_of(envelope)
    return [TextPart(text), *parts] if parts else text


def attachments(text: str, workspace: Path) -> list[Part]:
    """The content of the files that a text mentions, each once, in their order.

    Raises `BadInput` for one that is missing, outside the workspace, binary or too large.
    """
    named = mentions(text, workspace)
    if not named:
        return []
    from hookline.errors import ToolError
    from hookline.tools.context import ToolContext

    context = ToolContext(workspace=workspace)
    found: dict[Mention, Part] = {}
    room = LARGEST_TEXT
    for mention in named:
        if mention in found:
            continue
        if len(found) == MOST:
            raise BadInput(f"a message takes {MOST} files; {mention.written} is one more")
        try:
            part = _read(mention, context)
        except ToolError as error:
            hint = "" if _exists(workspace, mention.path) else " (where no file is meant, write `@…`)"
            raise BadInput(f"{mention.written} cannot be attached: {error}{hint}") from None
        if isinstance(part, TextPart):
            room -= len(part.text)
            if room < 0 and found:
                raise BadInput(
                    f"the files of this message are too large together: {mention.written} is more "
                    f"than {LARGEST_TEXT:,} characters allow; name some of its lines, or send fewer"
                )
        found[mention] = part
    return list(found.values())


def mentions(text: str, workspace: Path) -> list[Mention]:
    """The files that a text mentions; words that merely begin with an `@` are left out."""
    plain = _CODE.sub(lambda code: "`" * len(code[0]), text)
    found: list[Mention] = []
    for match in _MENTION.finditer(plain):
        mention = _quoted(match) if match[1] else _bare(match[2], workspace)
        if mention is not None:
            found.append(mention)
    return found


def _quoted(match: re.Match[str]) -> Mention:
    return _lines(match[1], match[3], match[4])


def _bare(word: str, workspace: Path) -> Mention | None:
    """A path without quotes: what follows a sentence's end is not part of it."""
    if len(word) > _LONGEST:
        return None
    trimmed = word.rstrip(_AFTER)
    for path in dict.fromkeys((word, trimmed)):
        if _exists(workspace, path):
            return Mention(path)
    if not trimmed:
        return None
    ranged = _RANGE.fullmatch(trimmed)
    if ranged and (_exists(workspace, ranged[1]) or _LIKE_A_PATH.fullmatch(ranged[1])):
        return _lines(ranged[1], ranged[2], ranged[3])
    return Mention(trimmed) if _LIKE_A_PATH.fullmatch(trimmed) else None


def _lines(path: str, start: str | None, end: str | None) -> Mention:
    if start is None:
        return Mention(path)
    return Mention(path, int(start), int(end or start))


def _exists(workspace: Path, path: str) -> bool:
    try:
        return (workspace / path).exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _read(mention: Mention, context: ToolContext) -> Part:
    from hookline.errors import ToolError
    from hookline.tools.files import image_type
    from hookline.tools.paths import reach, regular_file, shown

    place = reach(mention.path, context)
    hidden = {part for part in Path(shown(place, context)).parts if part.startswith(".")}
    if hidden - {*Path(mention.path).parts}:  # a project could name a link to `.env` README.md
        raise ToolError(f"it is a link to {shown(place, context)}; name that file if you mean it")
    if place.is_dir():
        return _folder(mention, place)
    place = regular_file(mention.path, context)
    try:
        with place.open("rb") as file:
            data = file.read(max(LARGEST_IMAGE, LARGEST_TEXT) + 1)
        size = place.stat().st_size
    except OSError as error:
        raise ToolError(f"it cannot be read: {error.strerror}") from error
    if kind := image_type(data):
        if len(data) > LARGEST_IMAGE:
            raise ToolError(
                f"it is too large for a picture: {size:,} bytes, of {LARGEST_IMAGE:,} at most"
            )
        return ImagePart(data, kind)
    if data.startswith(b"%PDF-"):
        if len(data) > LARGEST_IMAGE:
            raise ToolError(f"it is too large: {size:,} bytes, of {LARGEST_IMAGE:,} at most")
        return FilePart(data, name=place.name)
    return TextPart(_fenced(shown(place, context), _text(mention, data, size), mention))


def _text(mention: Mention, data: bytes, size: int) -> str:
    from hookline.errors import ToolError
    from hookline.tools.output import is_binary

    sample = data[:8192].decode("utf-8", errors="replace")
    if b"\0" in data[:8192] or is_binary(sample[:-3]):
        raise ToolError(f"it is not text: {size:,} bytes of binary data")
    if mention.end is not None:
        data = _chosen(mention, data, size)
    if len(data) > LARGEST_TEXT:
        raise ToolError(
            f"it is too large: {size:,} bytes, of {LARGEST_TEXT:,} at most; "
            f"name some of its lines, as in {mention.written}:1-200, or let it be read by a tool"
        )
    return data.decode("utf-8-sig", errors="replace").replace("\0", "\ufffd")


def _chosen(mention: Mention, data: bytes, size: int) -> bytes:
    """The lines that were named."""
    from hookline.errors import ToolError

    lines = data.splitlines(keepends=True)
    end = mention.end or mention.start
    if mention.start < 1 or end < mention.start:
        raise ToolError(f"lines {mention.start} to {end} are none: count from 1, the smaller first")
    if len(data) < size and end >= len(lines):
        raise ToolError(f"its line {end:,} is too far down in {size:,} bytes; let it be read by a tool")
    if mention.start > len(lines):
        raise ToolError(f"it ends at line {len(lines):,}")
    return b"".join(lines[mention.start - 1 : end])


def _folder(mention: Mention, place: Path) -> TextPart:
    from hookline.tools.files import files_in

    names = files_in(place)
    more = [f"… and {len(names) - _NAMES:,} more"] if len(names) > _NAMES else []
    listed = "\n".join([*names[:_NAMES], *more]) or "(nothing)"
    return TextPart(_fenced(f"{mention.path.rstrip('/')}/", f"{listed}\n", mention))


def _fenced(name: str, text: str, mention: Mention) -> str:
    """A text under its name, between fences that do not occur in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    lines = "" if mention.end is None else f", lines {mention.start} to {mention.end}"
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{name}{lines}:\n{fence}\n{text}{end}{fence}"
