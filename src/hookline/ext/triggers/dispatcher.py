"""The dispatcher: the four hooks of triggers, each plugin on its own.

    for result in dispatch_trigger_lifecycle(pm, "trigger_init", deps={"emit": emit}):
        if not result.success:
            log.error("trigger %s failed: %s", result.plugin_name, result.error)

A plugin that fails never keeps another from its turn. `pm.hook.trigger_init(...)` would: it is
pluggy's own call, which ends at the first error and awaits nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias, get_args

from hookline.hooks import HookRegistry, Outcome
from hookline.hooks.errors import suggestion
from hookline.hooks.plugins import PluginManager
from hookline.hookspecs import Route, TriggerHooks

from .errors import TriggerError

DispatchResult = Outcome
"""The result of one plugin's implementation: `plugin_name`, `success`, `result`, `error`."""

Lifecycle: TypeAlias = Literal["trigger_init", "trigger_start", "trigger_stop"]


class TriggerHookSpec:
    """The four hooks as static methods: a typed reference, without markers."""

    @staticmethod
    def trigger_init(deps: dict[str, Any]) -> None:
        """Set up from what the server hands over."""

    @staticmethod
    def trigger_start(deps: dict[str, Any]) -> None:
        """Begin to emit trigger events."""

    @staticmethod
    def trigger_stop(deps: dict[str, Any]) -> None:
        """Stop, and wait for events in flight."""

    @staticmethod
    def trigger_routes() -> list[Route]:
        """Provide routes; a trigger that needs none returns an empty list."""
        return []


def dispatch_trigger_lifecycle(
    pm: PluginManager | HookRegistry, hook: Lifecycle, deps: dict[str, Any]
) -> list[DispatchResult]:
    """Call a hook of every trigger and collect the results.

    Async implementations are awaited. Inside a running event loop that is impossible, so they count as
    failed: servers await `dispatch_trigger_lifecycle_async`.
    """
    return _now(_hooks(pm), _checked(hook), deps=deps)


async def dispatch_trigger_lifecycle_async(
    pm: PluginManager | HookRegistry, hook: Lifecycle, deps: dict[str, Any]
) -> list[DispatchResult]:
    """The same, awaited."""
    return await _hooks(pm).call(_checked(hook), deps=deps)


def collect_trigger_routes(pm: PluginManager | HookRegistry) -> list[DispatchResult]:
    """Ask every trigger for its routes; each `result` is a list of them."""
    return _now(_hooks(pm), "trigger_routes")


async def collect_trigger_routes_async(pm: PluginManager | HookRegistry) -> list[DispatchResult]:
    """The same, awaited."""
    return await _hooks(pm).call("trigger_routes")


def _now(hooks: HookRegistry, hook: str, **arguments: Any) -> list[DispatchResult]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(hooks.call(hook, **arguments))
    return hooks.call_sync(hook, **arguments)


def _hooks(pm: PluginManager | HookRegistry) -> HookRegistry:
    return pm.kernel if isinstance(pm, PluginManager) else pm


def _checked(hook: str) -> str:
    known = get_args(Lifecycle)
    if hook in known:
        return hook
    if hook in vars(TriggerHooks):
        raise TriggerError(f"{hook!r} takes no deps: use collect_trigger_routes(pm)")
    raise TriggerError(f"{hook!r} is no hook of a trigger's life{suggestion(hook, known)}")
