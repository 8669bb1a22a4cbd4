"""The state of a plugin, as `hookline plugins` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .packages import GROUP

if TYPE_CHECKING:
    from .candidate import Candidate


@dataclass(frozen=True, slots=True)
class PluginState:
    """One plugin, as `hookline plugins` shows it."""

    name: str
    version: str
    order: int | None
    """None for a plugin without an entry point."""
    provides: list[str]
    source: str
    state: str
    reason: str = ""

    @classmethod
    def of(cls, candidate: Candidate, state: str, reason: str = "") -> PluginState:
        """The state of a plugin with an entry point."""
        source = GROUP if candidate.own else str(candidate.entry)
        about = candidate.name, candidate.version, candidate.order, candidate.provides
        return cls(*about, source, state, reason)
