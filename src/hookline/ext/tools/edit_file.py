"""`edit_file`: text replaced exactly, all of the edits or none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from heapq import nlargest
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.output import is_binary
from hookline.tools.paths import regular_file, shown
from hookline.tools.tool import tool

from .replacement import LARGEST, LOCK, decoded, diff, encoded, replace_file
from .stamps import refuse_stale

_COMPARED = 200
"""Lines that are compared letter by letter."""
_LONGEST = 200
"""Characters of a line that are compared."""
_PLACES = 10


class Edit(BaseModel):
    """One replacement."""

    model_config = ConfigDict(extra="forbid")

    old: Annotated[str, Field(description="The text as it is in the file, to the last space.")]
    new: Annotated[str, Field(description="The text in its place.")]
    all: Annotated[bool, Field(description="Replace every occurrence, not the only one.")] = False


@tool(side_effects=SideEffects.write, registry=None)
def edit_file(
    path: str, edits: Annotated[list[Edit], Field(min_length=1)], context: ToolContext
) -> str:
    """Replace text in a file, and show what changed. If one edit does not fit, none is made.

    path: The file, relative to the workspace.
    edits: What to replace, in this order; each finds its text in what the ones before it left.

    """
    place = regular_file(path, context)
    with LOCK:
        before, after = _edited(place, path, edits, context)
        replace_file(place, path, encoded(after, path), context)
    return diff(before, after, shown(place, context))


@edit_file.preview
def would_edit(values: Mapping[str, Any], context: ToolContext) -> str:
    """A preview of the edits. Reading the file is not approved yet, so errors do not quote it."""
    place, path = regular_file(values["path"], context), values["path"]
    edited = _edited(place, path, values["edits"], context, quotes=False)
    return diff(*edited, shown(place, context))


def _edited(
    place: Path, path: str, edits: list[Edit], context: ToolContext, *, quotes: bool = True
) -> tuple[str, str]:
    """The file's text before and after all edits."""
    before = _text(place, path, context)
    windows = "\r\n" in before and "\n" not in before.replace("\r\n", "")
    after = before
    for number, edit in enumerate(edits, start=1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        after = _replaced(after, edit, windows, path, where, quotes=quotes)
    if after == before:
        raise ToolError(f"the edits leave {path} as it is")
    return before, after


def _text(place: Path, path: str, context: ToolContext) -> str:
    try:
        with place.open("rb") as file:
            about = place.stat()
            refuse_stale(place, path, about, context)
            if about.st_size > LARGEST:
                raise ToolError(f"{path} is too large to edit: {about.st_size:,} bytes")
            data = file.read()
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
    probe = data[:8192]
    if b"\0" in probe or is_binary(probe.decode("utf-8", errors="replace")[:-3]):
        raise ToolError(f"{path} is not text: {about.st_size:,} bytes of binary data")
    return decoded(data)


def _replaced(text: str, edit: Edit, windows: bool, path: str, where: str, *, quotes: bool) -> str:
    old, new = edit.old, edit.new
    if windows and "\r" not in old:  # a model sees no carriage returns and writes none
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    if not old:
        raise ToolError(f"{where}old is empty; write_file writes a whole file")
    if old == new:
        raise ToolError(f"{where}old and new are the same")
    count = text.count(old)
    if count == 0:
        nearest = _nearest(text, old) if quotes else "; read the file again"
        raise ToolError(f"{where}the text is not in {path}{nearest}")
    if count > 1 and not edit.all:
        places = f"{count} times, at lines {_lines(text, old)}" if quotes else "more than once"
        raise ToolError(
            f"{where}the text is in {path} {places}; take in more of what surrounds it, or say all=true"
        )
    return text.replace(old, new)


def _lines(text: str, old: str) -> str:
    numbers: list[str] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < _PLACES:
        numbers.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(numbers) + (" …" if at >= 0 else "")


def _nearest(text: str, old: str) -> str:
    """The line that is most like the first one looked for."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = text.splitlines()
    by_text = {line.strip(): number for number, line in reversed([*enumerate(lines, start=1)])}
    if wanted in by_text:
        number = by_text[wanted]
    else:
        near = _similar(wanted[:_LONGEST], {line[:_LONGEST]: line for line in by_text})
        if near is None:
            return "; read the file again"
        number = by_text[near]
    return f"; the nearest line is {number}: {lines[number - 1][:300]!r}"


def _similar(wanted: str, lines: dict[str, str]) -> str | None:
    """The line most similar to the wanted one, among the lines that share the most words with it."""
    words = set(wanted.split())
    among = nlargest(_COMPARED, lines, key=lambda line: len(words.intersection(line.split())))
    close = difflib.get_close_matches(wanted, among, n=1)
    return lines[close[0]] if close else None
