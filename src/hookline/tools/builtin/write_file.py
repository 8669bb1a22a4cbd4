"""`write_file`: a file's whole content."""

from __future__ import annotations

import os

from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.errors import ToolError
from hookline.tools.output import is_binary
from hookline.tools.tool import tool

from .paths import reach, regular_file, shown
from .stamps import refuse_stale
from .writing import LARGEST, LOCK, decoded, diff, encoded, replace_file


@tool(side_effects=SideEffects.write, registry=None)
def write_file(path: str, content: str, context: ToolContext) -> str:
    """Write a file, new or in place of what it was, and show what changed. Folders are made.

    path: The file, relative to the workspace.
    content: All of its text.

    """
    place = reach(path, context)
    data = encoded(content, path)
    with LOCK:
        old = _present(path, context) if os.path.exists(place) else None  # noqa: PTH110  # also when it cannot be asked
        if old == data:
            return f"[{path} is as it should be already]"
        replace_file(place, path, data, context)
    size = f"{len(data):,} bytes, {len(content.splitlines()):,} lines"
    if old is None:
        return f"[{path} is new: {size}]"
    before = decoded(old)
    if len(old) > LARGEST or is_binary(before[:8192]):
        return f"[{path} is written: {size}]"
    return diff(before, content, shown(place, context)) or f"[{path} is written: {size}]"


def _present(path: str, context: ToolContext) -> bytes:
    place = regular_file(path, context)
    try:
        about = place.stat()
        refuse_stale(place, path, about, context)
        with place.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
