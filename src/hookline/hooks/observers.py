"""Observers: the outermost layer of a dispatch, built only where somebody looks on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from .awaiting import awaited, discard, is_awaitable
from .errors import error_text
from .plan import Plan
from .spec import HookSpec
from .trace import Recorder, Watch, Watched
from .verdict import Verdict, as_released

log = logging.getLogger("hookline.hooks")

Fire = Callable[..., Any]


class Subscriber(NamedTuple):
    """A catch-all observer of events."""

    name: str
    call: Fire


def observed(
    core: Fire, plan: Plan, subscribers: tuple[Subscriber, ...], sinks: tuple[Watch, ...]
) -> Fire:
    """The outermost layer: list of results, subscribers, and the record for the trace."""
    spec, emits = plan.spec, plan.emits
    watched = watching(spec, plan.passed, sinks)

    def opening(args: tuple[Any, ...]) -> tuple[list[Any], Recorder | None, list[Any]]:
        results: list[Any] = []
        hidden: list[Any] = [results] if emits else []
        recorder = None
        if sinks:
            recorder = Recorder(watched, args)
            hidden.append(recorder)
        return results, recorder, hidden

    def run_sync(*args: Any) -> Any:
        results, recorder, hidden = opening(args)
        try:
            value = core(*args, *hidden)
            seen = released(spec, value)
            for subscriber in subscribers:
                tell_sync(subscriber, spec, final_event(seen, args), args)
        except BaseException as error:
            if recorder is not None:
                recorder.done(error=error)
            raise
        if recorder is not None:
            recorder.done(value)
        return results if emits else value

    async def run(*args: Any) -> Any:
        results, recorder, hidden = opening(args)
        try:
            value = await core(*args, *hidden)
            seen = released(spec, value)
            for subscriber in subscribers:
                await tell(subscriber, spec, final_event(seen, args), args)
        except BaseException as error:
            if recorder is not None:
                recorder.done(error=error)
            raise
        if recorder is not None:
            recorder.done(value)
        return results if emits else value

    return run_sync if plan.sync else run


def watching(spec: HookSpec, passed: tuple[str, ...], sinks: tuple[Watch, ...]) -> Watched:
    """What dispatches of a hook that is called with these are recorded for."""
    return Watched(spec, passed, scope_key(spec, passed), sinks)


def released(spec: HookSpec, value: Any) -> Any:
    """What observers may see of the outcome."""
    if not spec.withholds or not isinstance(value, Verdict):
        return value
    return as_released(value, spec.withholds)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def final_event(value: Any, args: tuple[Any, ...]) -> Any:
    """The event after all patches; subscribers see what handlers made of it."""
    return value.event if isinstance(value, Verdict) else args[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


async def tell(subscriber: Subscriber, spec: HookSpec, event: Any, args: tuple[Any, ...]) -> None:
    """Show an event to a subscriber; what it raises is logged."""
    try:
        await awaited(subscriber.call(event, args[1]))
    except Exception as error:
        log_subscriber(subscriber, spec, error)


def tell_sync(subscriber: Subscriber, spec: HookSpec, event: Any, args: tuple[Any, ...]) -> None:
    """The same from a synchronous call, where an awaitable is skipped with a warning."""
    try:
        answer = subscriber.call(event, args[1])
        if is_awaitable(answer):
            discard(answer)
            log.warning("hook.async_not_supported hook=%s adapter=%s", spec.name, subscriber.name)
    except Exception as error:
        log_subscriber(subscriber, spec, error)


def log_subscriber(subscriber: Subscriber, spec: HookSpec, error: Exception) -> None:
    """A failing observer never reaches the dispatch."""
    log.error(
        "hook.subscriber_failed hook=%s adapter=%s: %s",
        spec.name,
        subscriber.name,
        error_text(error),
        exc_info=error,
    )


def scope_key(spec: HookSpec, passed: tuple[str, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """Read the scope key off the arguments, from where the spec says it is."""
    parameter, _, attribute = (spec.scope or "").partition(".")
    if parameter not in passed:
        return lambda args: None
    at = passed.index(parameter)
    if not attribute:
        return itemgetter(at)
    return lambda args: getattr(args[at], attribute, None)
