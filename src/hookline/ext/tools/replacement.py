"""Writing: a file replaced at once or not at all, and what changed in it as a diff."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from threading import RLock

from hookline.errors import ToolError
from hookline.text.line_diff import line_diff
from hookline.tools.context import ToolContext
from hookline.tools.paths import reach

from .stamps import remember

LARGEST = 20_000_000
"""Bytes of a file that is changed in memory."""

LOCK = RLock()
"""Held from reading a file to replacing it: calls of one answer run together."""

_DIFF_LINES = 20_000
_BYTES = "surrogateescape"  # bytes that are not UTF-8 are written back unchanged


def decoded(data: bytes) -> str:
    """Bytes as text that `encoded` turns into the same bytes again."""
    return data.decode("utf-8", errors=_BYTES)


def encoded(text: str, path: str) -> bytes:
    """Text as the bytes of a file."""
    try:
        return text.encode("utf-8", errors=_BYTES)
    except UnicodeEncodeError as error:
        raise ToolError(f"the text for {path} has a character that UTF-8 has not: {error}") from error


def replace_file(place: Path, path: str, data: bytes, context: ToolContext) -> None:
    """Put new content in a file's place, with its permissions, and note how it is now."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        reach(str(place), context)  # a folder on the way may have become a link out
        temporary = place.with_name(f".{place.name[:50]}.{secrets.token_hex(4)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                if place.exists():
                    os.fchmod(file.fileno(), stat.S_IMODE(place.stat().st_mode))
                os.fsync(file.fileno())
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        remember(place, place.stat(), context)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}") from error


def diff(old: str, new: str, name: str) -> str:
    """What changed, as a unified diff."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    lines = [*line_diff(before, after, (f"a/{name}", f"b/{name}"))]
    if len(lines) > _DIFF_LINES:
        return f"[{len(before):,} lines became {len(after):,}: too many for a diff]"
    return "".join(_ended(line) for line in lines).rstrip("\n")


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
