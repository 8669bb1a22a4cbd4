"""`list_files`: the names of files, by glob."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.files import files_in
from hookline.tools.paths import folder, shown
from hookline.tools.process import sandbox_of
from hookline.tools.tool import tool

from .globs import file_glob


@tool(side_effects=SideEffects.read, registry=None)
def list_files(
    context: ToolContext,
    pattern: str = "**",
    path: str = ".",
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000,
) -> str:
    """List files, one per line. Files that git ignores are left out.

    pattern: A glob such as `src/**/*.py`; one without a slash matches names in every folder.
    path: The folder to look in, relative to the workspace.
    limit: The most files to list.

    """
    place = folder(path, context)
    matches = file_glob(pattern).matches
    found = [name for name in files_in(place, sandbox_of(context)) if matches(name)]
    if not found:
        return f"[no file matches {pattern}]"
    lines = [shown(place / name, context) for name in found[:limit]]
    if len(found) > limit:
        lines.append(f"[{len(found) - limit:,} more of {len(found):,}; narrow the pattern]")
    return "\n".join(lines)
