"""`write_file`: a file's whole content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.output import is_binary
from hookline.tools.paths import reach, regular_file, shown
from hookline.tools.tool import tool

from .replacement import LARGEST, LOCK, decoded, diff, encoded, replace_file
from .stamps import refuse_stale


@tool(side_effects=SideEffects.write, registry=None)
def write_file(path: str, content: str, context: ToolContext) -> str:
    """Create or overwrite a file and show what changed. Missing folders are created.

    path: The file, relative to the workspace.
    content: The whole text of the file.

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


@write_file.preview
def would_write(values: Mapping[str, Any], context: ToolContext) -> str:
    """The diff between the file and the new content."""
    path, content = values["path"], values["content"]
    place = reach(path, context)
    data = encoded(content, path)
    old = _present(path, context) if place.exists() else b""
    if old == data and place.exists():
        return f"[{path} is as it should be already]"
    before = decoded(old)
    if len(old) > LARGEST or is_binary(before[:8192]):
        return f"[{path} is replaced: {len(data):,} bytes in place of what is not text]"
    return diff(before, content, shown(place, context)) or f"[{path} is new and empty]"


def _present(path: str, context: ToolContext) -> bytes:
    place = regular_file(path, context)
    try:
        about = place.stat()
        refuse_stale(place, path, about, context)
        with place.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
