"""The catalogue: every hook and event that Hookline fires, declared once.

    hooks = Hooks()

    @hooks.on("tool_call", when="shell")
    def look(event):
        print(event.input)

`hookline.hooks` has the machinery and knows none of these names.
"""

from typing import TYPE_CHECKING

import hookline.hooks
from hookline.hooks import Catalog
from hookline.hooks.registry import OnGateError

from .events import FAMILIES
from .plugin import PluginHooks
from .tool import ToolHooks
from .trigger import TriggerHooks
from .turn import TurnHooks

if TYPE_CHECKING:
    from .bases import (
        AgentEvents,
        GatewayEvents,
        MessageEvents,
        MiscEvents,
        ModelEvents,
        SessionEvents,
        SubagentEvents,
        ToolEvents,
    )
else:

    def __getattr__(name: str) -> object:
        """The typed bases, which only plugin authors load."""
        if name not in __all__:
            raise AttributeError(f"module 'hookline.catalog' has no attribute {name!r}")
        from . import bases

        return getattr(bases, name)


CATALOG = Catalog(TurnHooks, PluginHooks, ToolHooks, *FAMILIES, TriggerHooks)


class Hooks(hookline.hooks.Hooks):
    """The kernel's `Hooks`, with the shipped catalogue."""

    def __init__(self, catalog: Catalog = CATALOG, *, on_gate_error: OnGateError = "allow") -> None:
        super().__init__(catalog, on_gate_error=on_gate_error)


__all__ = [
    "CATALOG",
    "AgentEvents",
    "GatewayEvents",
    "Hooks",
    "MessageEvents",
    "MiscEvents",
    "ModelEvents",
    "PluginHooks",
    "SessionEvents",
    "SubagentEvents",
    "ToolEvents",
    "ToolHooks",
    "TriggerHooks",
    "TurnHooks",
]
