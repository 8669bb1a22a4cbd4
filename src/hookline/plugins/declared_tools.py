"""The tools that the import of a plugin declares with `@tool`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookline.tools.tool import Tool


def declared_so_far() -> list[Tool]:
    """Every tool that `@tool` declared; none if nothing has imported it."""
    registry = sys.modules.get("hookline.tools.registry")
    return [*registry.REGISTRY.declared] if registry is not None else []


def note_declared(module: str, before: list[Tool]) -> None:
    """Remember the tools that the import of a plugin's module declared."""
    known = set(map(id, before))
    fresh = [tool for tool in declared_so_far() if id(tool) not in known]
    if fresh:
        sys.modules["hookline.tools.registry"].REGISTRY.note_import(module, fresh)
