"""`search_files`: find lines that match a regular expression.

The search runs in its own process, so that a pattern that takes forever can be stopped and blocks
nothing else. In a git repository, git preselects the files that contain the literal text that every
match must contain.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

from pydantic import Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools import git
from hookline.tools.context import ToolContext
from hookline.tools.files import split
from hookline.tools.paths import folder, reach, shown
from hookline.tools.process import inside, running, sandbox_of
from hookline.tools.threads import in_thread
from hookline.tools.tool import tool

from .globs import file_glob
from .literals import required_literal

_SECONDS = 60.0
_WORKER = Path(__file__).with_name("search_worker.py")


@tool(side_effects=SideEffects.read, registry=None)
async def search_files(
    pattern: str,
    context: ToolContext,
    path: str = ".",
    glob: str = "**",
    ignore_case: bool = False,
    limit: Annotated[int, Field(ge=1, le=5000)] = 200,
) -> str:
    """Search files for a regular expression, and show matching lines as `path:line: text`.

    Files that git ignores, binary files and files above 10 MB are left out.

    pattern: A regular expression in Python's syntax; it is applied line by line.
    path: The folder or file to search, relative to the workspace.
    glob: Only files that match, such as `src/**/*.py`.
    ignore_case: Ignore the difference between upper and lower case.
    limit: The most lines to show.

    """
    place = reach(path, context)
    sandbox = sandbox_of(context)
    literal, same_case = required_literal(pattern, ignore_case=ignore_case)
    if place.is_file():
        place, names, count = place.parent, [place.name], 1
    else:
        folder(path, context)
        names, count = await _candidates(place, glob, literal, same_case, sandbox)
    found = await _search(
        {
            "pattern": pattern,
            "literal": "" if same_case else literal,
            "ignore_case": ignore_case,
            "limit": limit,
            "folder": str(place),
            "names": names,
        },
        sandbox,
    )
    if "error" in found:
        raise ToolError(f"{pattern!r} is not a regular expression: {found['error']}")
    lines = [f"{shown(place / name, context)}:{line}: {text}" for name, line, text in found["lines"]]
    if found["more"]:
        lines.append(f"[there are more than {limit} lines; narrow the pattern, the path or the glob]")
    if found["too_large"]:
        lines.append(f"[{found['too_large']} files above 10 MB were not searched]")
    return "\n".join(lines) or f"[nothing matches {pattern!r} in {count:,} files]"


async def _candidates(
    place: Path, glob: str, literal: str, ignore_case: bool, sandbox: Any
) -> tuple[list[str], int]:
    """The files that may have a match, and how many were asked for."""
    matches = file_glob(glob).matches
    if literal:
        (own, nested), chosen = await asyncio.gather(
            in_thread(lambda: split(place, sandbox)),
            in_thread(lambda: git.containing(place, literal, ignore_case=ignore_case, sandbox=sandbox)),
        )
    else:
        (own, nested), chosen = await in_thread(lambda: split(place, sandbox)), None
    if glob != "**":
        own, nested = [*filter(matches, own)], [*filter(matches, nested)]
    count = len(own) + len(nested)
    names = own if chosen is None else [name for name in own if name in chosen]
    return sorted((*names, *nested)), count


async def _search(order: dict[str, Any], sandbox: Any) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", "-W", "ignore", str(_WORKER)]
    options = inside(sandbox, "search", Path(order["folder"]))
    with TemporaryFile() as written:
        written.write(json.dumps(order).encode())
        written.seek(0)
        async with running(command, stdin=written, **options) as worker:
            try:
                async with asyncio.timeout(_SECONDS), aclosing(worker.chunks()) as chunks:
                    out = b"".join([chunk async for chunk in chunks])
            except TimeoutError:
                raise ToolError(
                    f"the search took longer than {_SECONDS:g} s; try a simpler pattern"
                ) from None
    if worker.process.returncode != 0:
        raise ToolError(f"the search failed: {out.decode(errors='replace').strip()[-500:]}")
    return json.loads(out)
