"""`ToolContext`: where a tool call happens, for the tool that asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def nobody_watches(value: Any) -> None:
    """Drop a report: nobody follows this call."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool gets in the parameter that it annotates with this class.

    The model neither sees that parameter nor can set it.
    """

    call_id: str = ""
    session_id: str = ""
    agent_id: str = ""
    depth: int = 0
    """0 for the agent a person talks to, 1 for its subagents, and so on."""
    workspace: Path = field(default_factory=Path.cwd)
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    report: Callable[[Any], None] = nobody_watches
    """Tell how far the work has come; may be called from any thread."""
    app: Any = None
    allowed: tuple[Path, ...] = ()
    """Places outside the workspace that file tools may reach too."""
