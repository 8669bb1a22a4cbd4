"""Paths: where a file tool may reach."""

from __future__ import annotations

import stat
from pathlib import Path

from hookline.errors import ToolError
from hookline.tools.context import ToolContext


def reach(path: str, context: ToolContext) -> Path:
    """The real place of a path that a model named, if it is in the workspace or an allowed place."""
    if "\0" in path:
        raise ToolError(f"{path!r} is not a path")
    workspace = context.workspace.resolve()
    try:
        real = (workspace / path).resolve()
    except (OSError, RuntimeError) as error:  # a loop of symlinks is a RuntimeError before 3.13
        raise ToolError(f"{path} cannot be followed: {error}") from error
    if not any(real.is_relative_to(place) for place in (workspace, *_allowed(context))):
        raise ToolError(f"{path} is outside the workspace {workspace}; only files in it can be used")
    return real


def shown(place: Path, context: ToolContext) -> str:
    """A path as the model names it: relative to the workspace if it is inside."""
    workspace = context.workspace.resolve()
    return place.relative_to(workspace).as_posix() if place.is_relative_to(workspace) else str(place)


def regular_file(path: str, context: ToolContext) -> Path:
    """The same for a file that can be read to its end: no folder, no pipe, no device."""
    place = reach(path, context)
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        raise ToolError(f"{path} does not exist{_nearest(place)}") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a folder; list_files shows what is in it")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is not a regular file")
    return place


def folder(path: str, context: ToolContext) -> Path:
    """The same for a folder."""
    place = reach(path, context)
    if not place.exists():
        raise ToolError(f"{path} does not exist{_nearest(place)}")
    if not place.is_dir():
        raise ToolError(f"{path} is not a folder")
    return place


def _allowed(context: ToolContext) -> list[Path]:
    return [place.resolve() for place in context.allowed]


def _nearest(place: Path) -> str:
    from hookline.hooks.errors import suggestion

    try:
        return suggestion(place.name, [child.name for child in place.parent.iterdir()])
    except OSError:
        return ""
