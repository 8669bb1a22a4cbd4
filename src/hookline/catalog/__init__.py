"""The catalogue: every hook and event that Hookline fires, declared once.

    hooks = Hooks()

    @hooks.on("tool_call", when="shell")
    def look(event):
        print(event.input)

`hookline.hooks` has the machinery and knows none of these names.
"""

import hookline.hooks
from hookline.hooks import Catalog

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
from .events import FAMILIES
from .plugin import PluginHooks
from .tool import ToolHooks
from .trigger import TriggerHooks
from .turn import TurnHooks

CATALOG = Catalog(TurnHooks, PluginHooks, ToolHooks, *FAMILIES, TriggerHooks)


class Hooks(hookline.hooks.Hooks):
    """The kernel's `Hooks`, with the shipped catalogue."""

    def __init__(self, catalog: Catalog = CATALOG, *, fail_closed: bool = False) -> None:
        super().__init__(catalog, fail_closed=fail_closed)


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
