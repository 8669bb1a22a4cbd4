"""A tool call and its result, as hooks and events carry them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .parts import Content


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool. It is immutable: a rewrite makes a new one."""

    id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResultContent:
    """What a tool call came to, as the model sees it."""

    tool_call_id: str = ""
    name: str = ""
    content: Content = ""
    is_error: bool = False
