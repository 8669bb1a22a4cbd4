"""Triggers: what starts a turn with no person asking.

    [triggers.nightly]
    type = "cron"
    schedule = "0 3 * * *"
    message = "Write the report of {date}."

`Triggers` runs those of the settings (`cron`, `webhook`, `queue`, `watch`) and those of plugins, which
implement the same four hooks. Each event is recorded before its turn starts, and makes one turn.
"""

from typing import TYPE_CHECKING

from hookline.hookspecs import Route, TriggerEvent
from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .clock import Clock, SystemClock
    from .context import Receipt, ServeContext, Settled
    from .dispatcher import (
        DispatchResult,
        TriggerHookSpec,
        collect_trigger_routes,
        collect_trigger_routes_async,
        dispatch_trigger_lifecycle,
        dispatch_trigger_lifecycle_async,
    )
    from .errors import (
        MissingTriggerLibrary,
        TemplateError,
        TriggerError,
        TriggersStopping,
        UnknownTrigger,
    )
    from .ledger import EventRecord, TriggerLedger
    from .settings import TriggerSettings
    from .template import Template
    from .trigger import RunningTrigger, Trigger
    from .triggers import Triggers
else:
    __getattr__ = lazy_names(
        __name__, "clock context dispatcher errors ledger settings template trigger triggers"
    )

__all__ = [
    "Clock",
    "DispatchResult",
    "EventRecord",
    "MissingTriggerLibrary",
    "Receipt",
    "Route",
    "RunningTrigger",
    "ServeContext",
    "Settled",
    "SystemClock",
    "Template",
    "TemplateError",
    "Trigger",
    "TriggerError",
    "TriggerEvent",
    "TriggerHookSpec",
    "TriggerLedger",
    "TriggerSettings",
    "Triggers",
    "TriggersStopping",
    "UnknownTrigger",
    "collect_trigger_routes",
    "collect_trigger_routes_async",
    "dispatch_trigger_lifecycle",
    "dispatch_trigger_lifecycle_async",
]
