"""`read_file`: text, by lines, whatever the size of the file; and pictures."""

from __future__ import annotations

import os
from io import BufferedReader
from typing import Annotated

from pydantic import Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.files import image_type
from hookline.tools.output import LIMIT, is_binary
from hookline.tools.paths import regular_file
from hookline.tools.spool import NOTE
from hookline.tools.tool import tool
from hookline.types import ImagePart

from .stamps import remember

_PAGE = LIMIT - NOTE  # with the note below it a page is within the limit of a result
_LARGEST_IMAGE = 10_000_000
_PROBE = 8192
_CHUNK = 1 << 20

LineNumber = Annotated[int, Field(ge=1)]


@tool(side_effects=SideEffects.read, registry=None)
def read_file(
    path: str, context: ToolContext, start: LineNumber = 1, end: LineNumber | None = None
) -> str | ImagePart:
    """Read a text file, or some lines of it, or look at a picture (PNG, JPEG, GIF, WebP).

    path: The file, relative to the workspace.
    start: The first line, counted from 1.
    end: The last line; without it as many as fit.

    """
    if end is not None and end < start:
        raise ToolError(f"end ({end}) comes before start ({start})")
    place = regular_file(path, context)
    try:
        with place.open("rb") as file:
            about = os.fstat(file.fileno())
            content = _read(file, path, start, end, about.st_size)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
    remember(place, about, context)
    return content


def _read(file: BufferedReader, path: str, start: int, end: int | None, size: int) -> str | ImagePart:
    probe = file.read(_PROBE)
    if kind := image_type(probe):
        if size > _LARGEST_IMAGE:
            raise ToolError(f"{path} is too large for a picture: {size:,} bytes")
        return ImagePart(probe + file.read(_LARGEST_IMAGE), kind)
    # a character cut in two at the end of the probe is no error
    if b"\0" in probe or is_binary(probe.decode("utf-8", errors="replace")[:-3]):
        raise ToolError(f"{path} is not text: {size:,} bytes of binary data")
    file.seek(3 if probe.startswith(b"\xef\xbb\xbf") else 0)
    passed = _skip_lines(file, start - 1)
    if passed < start - 1:
        raise ToolError(f"{path} has {passed:,} lines; start is {start:,}")
    return _take_lines(file, start, end)


def _skip_lines(file: BufferedReader, count: int) -> int:
    """Skip lines without keeping them; return how many there were."""
    passed = 0
    while passed < count:
        begin = file.tell()
        chunk = file.read(_CHUNK)
        if not chunk:
            return passed
        lines = chunk.count(b"\n")
        if passed + lines < count:
            passed += lines
            if not chunk.endswith(b"\n") and not file.peek(1):
                passed += 1
            continue
        at = -1
        for _ in range(count - passed):
            at = chunk.index(b"\n", at + 1)
        file.seek(begin + at + 1)
        return count
    return passed


def _take_lines(file: BufferedReader, start: int, end: int | None) -> str:
    taken: list[str] = []
    room = _PAGE
    number = start
    while end is None or number <= end:
        raw = file.readline(4 * _PAGE)  # a line may be as long as the file
        if not raw:
            break
        line = raw.decode("utf-8", errors="replace").replace("\0", "\ufffd")
        whole = raw.endswith(b"\n") or len(raw) < 4 * _PAGE
        if not whole or len(line) > _PAGE:
            if taken:
                return "".join(taken) + _more(number, f"line {number} is very long")
            _skip_lines(file, 0 if whole else 1)
            return f"{line[:_PAGE]}\n" + _more(
                number + 1, f"line {number} is longer than what is shown"
            )
        if len(line) > room:
            return "".join(taken) + _more(number, f"lines {start} to {number - 1} are shown")
        taken.append(line)
        room -= len(line)
        number += 1
    return "".join(taken)


def _more(next_line: int, why: str) -> str:
    return f"[{why}; there is more: go on with start={next_line}]"
