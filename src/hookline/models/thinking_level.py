"""How long a model thinks before it answers: one vocabulary, whatever a provider's own words are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hookline.errors import BadSetting
from hookline.hooks.errors import suggestion

from .model import ModelRequest

THINKING: Final = "thinking"
"""The option's name: `Hookline(options={"thinking": "high"})`."""

LEVELS: Final = ("off", "low", "medium", "high")

_NONE: Mapping[str, Any] = {}


def check_thinking(level: object, where: str = "thinking") -> str:
    """A level, or an error that says which ones there are."""
    if isinstance(level, str) and level in LEVELS:
        return level
    near = suggestion(level, LEVELS) if isinstance(level, str) else ""
    raise BadSetting(f"{where} must be one of {', '.join(LEVELS)}, got {level!r}{near}")


def thinking_of(request: ModelRequest, defaults: Mapping[str, Any] = _NONE) -> str:
    """The level that a request asks for, or else the settings; empty if neither does."""
    if request.thinking is not None:
        return check_thinking(request.thinking)
    level = request.options.get(THINKING, defaults.get(THINKING))
    return "" if level is None else check_thinking(level, "the option 'thinking'")
