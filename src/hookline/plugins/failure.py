"""A plugin that could not take part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text

_OURS = f"{Path(__file__).parents[1]}/"


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """A plugin that was left out, and why."""

    plugin: str
    stage: str
    error: BaseException
    left_out: bool = True
    """Whether it takes no part now; a server that is down, say, takes nothing away."""

    def __str__(self) -> str:
        error = self.error
        text = str(error) if isinstance(error, HooklineError) else error_text(error)
        place = f" ({where(error)})" if where(error) else ""
        return f"{self.plugin}: {self.stage} failed: {text}{place}"


def where(error: BaseException) -> str:
    """The line of the plugin's own code that failed; nothing where Hookline itself refused it."""
    if isinstance(error, HooklineError):
        return ""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}" if error.filename else ""
    last = ""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        is_ours = name.startswith((_OURS, "<frozen")) or "/importlib/" in name or "/pydantic/" in name
        if not is_ours:
            last = f"{name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return last
