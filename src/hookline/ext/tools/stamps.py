"""Stamps: how a file was when this session last read or wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hookline.errors import ToolError
from hookline.tools.context import ToolContext

KEY = "file_stamps"
"""Their key in the session's state: `{path: [modified, size]}`."""


def remember(place: Path, about: os.stat_result, context: ToolContext) -> None:
    """Note how a file was."""
    stamps: dict[str, Any] = context.state.setdefault(KEY, {})
    stamps[str(place)] = _stamp(about)


def refuse_stale(place: Path, path: str, about: os.stat_result, context: ToolContext) -> None:
    """Refuse a file that something else changed since; one that was never read is let through."""
    known = context.state.get(KEY, {}).get(str(place))
    if known is not None and list(known) != _stamp(about):
        raise ToolError(f"{path} changed on disk since it was last read; read it again first")


def _stamp(about: os.stat_result) -> list[int]:
    return [about.st_mtime_ns, about.st_size]
