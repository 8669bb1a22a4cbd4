"""Firing a hook at a plugin alone, without an app."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import fields as fields_of
from typing import Any, cast

from hookline.hooks import Event, EventResult, HooklineError
from hookline.hookspecs import Hooks
from hookline.types import HookContext


class Fire:
    """Fires hooks, by event or by name, at a plugin, several, or the `hooks` of a hook file.

    verdict = fire(ToolCallEvent(tool_name="shell"), at=MyPlugin())
    session = fire("resolve_session", message={"content": "hi"}, at=MyPlugin())
    """

    def __call__(self, hook: Any, *, at: object, ctx: Any = None, **arguments: Any) -> Any:
        """Fire, wait for the end, and give the verdict, or the value of a hook that has none."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.call(hook, at=at, ctx=ctx, **arguments))
        raise HooklineError("in an async test write `await fire.call(…)` in place of `fire(…)`")

    async def call(self, hook: Any, *, at: object, ctx: Any = None, **arguments: Any) -> Any:
        """The same, to be awaited in an async test."""
        hooks = hooks_with(at)
        event = self.event(hooks, hook, arguments)
        if event is None:
            return await hooks.call(hook, **arguments)
        context = ctx or HookContext(session_id="test", agent_id="main")
        return await hooks.call(cast("Event[EventResult]", event), context)

    @staticmethod
    def event(hooks: Hooks, hook: Any, arguments: Mapping[str, Any]) -> Any:
        """The event that is fired; None for a hook of another shape."""
        if not isinstance(hook, str):
            return hook
        event: Any = hooks[hook].spec.event
        if event is None:
            return None
        fields = [field.name for field in fields_of(event) if field.name != "type"]
        wrong = [name for name in arguments if name not in fields]
        if wrong:
            from hookline.hooks.errors import suggestion

            raise HooklineError(
                f"event {hook!r} has no field {wrong[0]!r}{suggestion(wrong[0], fields)}"
            )
        return event(**arguments)


def hooks_with(at: object) -> Hooks:
    """The shipped hooks with nothing attached but the code under test."""
    hooks = Hooks()
    if isinstance(at, Mapping):
        raise HooklineError(f"at= takes a plugin, or a list of them or of (hook, handler), not {at!r}")
    given = cast("Iterable[Any]", at) if isinstance(at, list | tuple) else [at]
    for each in given:
        if isinstance(each, tuple):
            event, handler, *rest = cast("tuple[Any, ...]", each)
            options: Any = rest[0] if rest else {}
            hooks.register(event, handler, **options)
        else:
            hooks.add(each)
    return hooks
