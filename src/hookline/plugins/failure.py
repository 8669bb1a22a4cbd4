"""A plugin that could not take part."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.hooks.errors import error_text


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """A plugin that was left out, and why."""

    plugin: str
    stage: str
    error: BaseException

    def __str__(self) -> str:
        return f"{self.plugin}: {self.stage} failed: {error_text(self.error)}"
