"""`ToolContext`: where a tool call happens, for the tool that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline.types import NOBODY, Identity


def nobody_watches(value: Any) -> None:
    """Ignore a report: no one follows this call."""


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
    tape: Any = None
    """The tape on which the call is recorded; None if nothing is recorded."""
    allowed: tuple[Path, ...] = ()
    """Places outside the workspace that file tools may reach too."""
    tool: str = ""
    """The name of the tool that is called."""
    permissions: tuple[str, ...] = ()
    """What the tool was granted: the permissions of its spec, which `authorize_action` has seen."""
    identity: Identity = NOBODY
    """On whose behalf the tool was called; agents that it starts act for the same."""


_CALLING: ContextVar[ToolContext | None] = ContextVar("hookline_tool_call", default=None)


def calling() -> ToolContext | None:
    """The tool call that this code runs in, in whatever task or thread; None outside of one."""
    return _CALLING.get()


@contextmanager
def during(call: ToolContext | None) -> Generator[None]:
    """Let code run in a tool call, or with None in no call at all."""
    token = _CALLING.set(call)
    try:
        yield
    finally:
        _CALLING.reset(token)
