"""Globs that a model gives to a tool: `**`, `*`, `?`, `[abc]` and `{a,b}` over paths with `/`."""

from __future__ import annotations

from hookline.errors import ToolError
from hookline.text.errors import PatternError
from hookline.text.patterns import PathGlob


def file_glob(glob: str) -> PathGlob:
    """The glob over files below a folder. One without a slash matches names in every folder."""
    glob = glob.removeprefix("./")
    if "/" not in glob:
        glob = f"**/{glob}"
    try:
        return PathGlob(glob.lstrip("/"))
    except PatternError as error:
        raise ToolError(f"{glob[:200]!r} is not a glob: {error}") from error
