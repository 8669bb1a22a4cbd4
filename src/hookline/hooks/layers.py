"""What can stand around a compiled dispatch: wrappers, middleware, subscribers, trace, scopes.

Each layer is built only where something needs it; a hook without them runs its compiled function
and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from .dispatch import (
    Plan,
    adapter,
    bind,
    defaults_of,
    forward,
    missing_error,
    note,
    not_awaited,
    skip,
    wrong_result,
)
from .errors import CallError, RegistrationError, WrongResult, error_text
from .implementation import Implementation
from .reducers import SKIP, Around
from .spec import HookSpec
from .trace import Recorder, Sink
from .verdict import Verdict

log = logging.getLogger("hookline.hooks")

Fire = Callable[..., Any]
Opened = list[tuple[Implementation, Generator[Any, Any, Any], float]]
UNCHANGED: Any = object()


# --- wrappers -------------------------------------------------------------------------------


def wrapped(core: Fire, plan: Plan, wrappers: tuple[Implementation, ...]) -> Fire:
    """Generators around the whole dispatch; the first in run order is the outermost."""
    starts = [(impl, starter(impl, plan.passed)) for impl in wrappers]
    count = len(plan.passed)
    skips = plan.errors is SKIP

    def open_all(args: tuple[Any, ...]) -> Opened:
        opened: Opened = []
        for impl, start in starts:
            started = perf_counter()
            try:
                generator = start(*args[:count])
                if generator is not None:
                    enter(impl, generator)
                    opened.append((impl, generator, started))
            except Exception as error:
                record_failure(args, impl, started, error)
                if not skips:
                    note(error, impl)
                    close_all(opened, plan, args, None, error)
                    raise
                skip(error, impl)
        return opened

    def record_failure(args: Any, impl: Implementation, started: float, error: Exception) -> None:
        if plan.traced:
            args[-1].failed(impl, started, error)

    def run_sync(*args: Any) -> Any:
        opened = open_all(args)
        try:
            value = core(*args)
        except BaseException as error:
            return close_all(opened, plan, args, None, error)
        return close_all(opened, plan, args, value, None)

    async def run(*args: Any) -> Any:
        opened = open_all(args)
        try:
            value = await core(*args)
        except BaseException as error:
            return close_all(opened, plan, args, None, error)
        return close_all(opened, plan, args, value, None)

    return run_sync if plan.sync else run


def starter(impl: Implementation, passed: tuple[str, ...]) -> Fire:
    """Start a wrapper on the arguments, or give None where its filter does not match."""
    missing = impl.arguments.missing(passed)
    if impl.when is not None:
        missing = missing or impl.when_arguments.missing(passed)
    if missing:

        def refuse(*args: Any) -> Any:
            raise missing_error(impl, missing)

        return refuse
    start = adapter(impl.function, impl.arguments, passed)
    if impl.when is None:
        return start
    when = adapter(impl.when, impl.when_arguments, passed)
    return lambda *args: start(*args) if when(*args) else None


def enter(impl: Implementation, generator: Generator[Any, Any, Any]) -> None:
    """Run a wrapper up to its `yield`."""
    try:
        next(generator)
    except StopIteration:
        raise RegistrationError(f"{impl.name} on hook {impl.spec.name!r} did not yield") from None


def close_all(
    opened: Opened, plan: Plan, args: tuple[Any, ...], value: Any, error: BaseException | None
) -> Any:
    """Run the wrappers' second halves, innermost first, and give what is left in the end."""
    original = error
    for impl, generator, started in reversed(opened):
        try:
            value, error = finish(impl, generator, plan, value, error), None
            if plan.traced:
                args[-1].returned(impl, started, value)
        except BaseException as raised:
            if raised is error:
                continue
            if plan.traced:
                args[-1].failed(impl, started, raised)
            if error is None and plan.errors is SKIP and isinstance(raised, Exception):
                skip(raised, impl)
                continue
            note(raised, impl)
            error = raised
    if original is not None and not isinstance(original, Exception):
        raise original  # cancellation and exit always propagate
    if error is not None:
        raise error
    return value


def finish(
    impl: Implementation,
    generator: Generator[Any, Any, Any],
    plan: Plan,
    value: Any,
    error: BaseException | None,
) -> Any:
    """Give a wrapper the reduced value, or the error, and take what it returns."""
    try:
        if error is None:
            generator.send(value)
        else:
            generator.throw(error)
    except StopIteration as stop:
        return replacement(impl, plan, stop.value)
    generator.close()
    raise RegistrationError(f"{impl.name} on hook {impl.spec.name!r} yields more than once")


def replacement(impl: Implementation, plan: Plan, value: Any) -> Any:
    """Check what a wrapper returned: it takes the place of the reduced value."""
    reducer = plan.reducer
    if not reducer.checked:
        return None
    if value is None and reducer.name == "first":
        return None
    if reducer.reduced is not None:
        if not isinstance(value, reducer.reduced):
            raise WrongResult(
                f"{impl.name} wraps hook {impl.spec.name!r} and returned {type(value).__name__}; "
                f"return the {reducer.reduced.__name__} that `yield` gave, or another"
            )
    elif value is None or not impl.spec.accepts(value):
        raise wrong_result(value, impl)
    return value


# --- middleware -----------------------------------------------------------------------------


@dataclass(slots=True)
class Middleware:
    """One implementation of an `around` hook, ready to be called with all parameters."""

    impl: Implementation
    call: Fire
    when: Fire | None


def middleware(plan: Plan) -> Fire:
    """The implementations of an `around` hook, each around the next, the caller's own innermost."""
    spec, reducer = plan.spec, plan.reducer
    assert isinstance(reducer, Around)
    if "call_next" not in plan.passed:
        raise CallError(f"hook {spec.name!r} needs the argument 'call_next': what it runs around")
    levels = [level(plan, impl) for impl in plan.implementations]
    at = plan.passed.index("call_next")
    passing = plan.passed.index(reducer.passing) if reducer.passing in plan.passed else None

    def with_value(args: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        if value is UNCHANGED:
            return args
        if passing is None:
            raise CallError(f"call_next() of hook {spec.name!r} takes no argument")
        return (*args[:passing], value, *args[passing + 1 :])

    def innermost(args: tuple[Any, ...]) -> Any:
        return args[at]() if passing is None else args[at](args[passing])

    def with_next(args: tuple[Any, ...], call_next: Fire) -> tuple[Any, ...]:
        return (*args[:at], call_next, *args[at + 1 :])

    def run_sync(*args: Any) -> Any:
        args, recorder = split(plan, args)
        foreign: list[BaseException] = []

        def step(number: int, args: tuple[Any, ...]) -> Any:
            if number == len(levels):
                try:
                    return innermost(args)
                except BaseException as error:
                    foreign.append(error)
                    raise
            current = levels[number]
            started = perf_counter()
            try:
                if current.impl.is_async:
                    not_awaited(current.impl)
                    return step(number + 1, args)
                if not applies(current, args):
                    return step(number + 1, args)
                inner = with_next(args, lambda v=UNCHANGED: step(number + 1, with_value(args, v)))
                value = usable(current.impl, current.call(*inner), sync=True)
            except Exception as error:
                blame(error, current.impl, foreign, recorder, started)
                raise
            if recorder is not None:
                recorder.returned(current.impl, started, value)
            return value

        return step(0, args)

    async def run(*args: Any) -> Any:
        args, recorder = split(plan, args)
        foreign: list[BaseException] = []

        async def step(number: int, args: tuple[Any, ...]) -> Any:
            if number == len(levels):
                try:
                    value = innermost(args)
                    return await value if isinstance(value, Awaitable) else value
                except BaseException as error:
                    foreign.append(error)
                    raise
            current = levels[number]
            started = perf_counter()
            try:
                if not applies(current, args):
                    return await step(number + 1, args)
                inner = with_next(args, lambda v=UNCHANGED: step(number + 1, with_value(args, v)))
                value = current.call(*inner)
                value = await value if isinstance(value, Awaitable) else value
                value = usable(current.impl, value, sync=False)
            except Exception as error:
                blame(error, current.impl, foreign, recorder, started)
                raise
            if recorder is not None:
                recorder.returned(current.impl, started, value)
            return value

        return await step(0, args)

    return run_sync if plan.sync else run


def level(plan: Plan, impl: Implementation) -> Middleware:
    """Bind one implementation as the compiled dispatch would."""
    bound = bind(plan, impl)
    when = adapter(bound.when, impl.when_arguments, plan.passed) if bound.when else None
    return Middleware(impl, forward(bound.call, plan.passed, bound.shape.arguments), when)


def applies(current: Middleware, args: tuple[Any, ...]) -> bool:
    """Whether the filter matches and it has not run its once."""
    if current.when is not None and not current.when(*args):
        return False
    return current.impl.take is None or current.impl.take()


def usable(impl: Implementation, value: Any, *, sync: bool) -> Any:
    """Refuse a result of the wrong type, or an awaitable where nothing can await it."""
    if sync and isinstance(value, Awaitable):
        if hasattr(value, "close"):
            value.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        raise not_awaited(impl)
    if value is not None and not impl.spec.accepts(value):
        raise wrong_result(value, impl)
    return value  # pyright: ignore[reportUnknownVariableType]


def blame(
    error: Exception,
    impl: Implementation,
    foreign: list[BaseException],
    recorder: Recorder | None,
    started: float,
) -> None:
    """Name the implementation on its own error; one that came from inside is not its own."""
    if not any(error is other for other in foreign):
        note(error, impl)
        foreign.append(error)
    if recorder is not None:
        recorder.failed(impl, started, error)


def split(plan: Plan, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Recorder | None]:
    """Take the recorder off the arguments, where there is one."""
    return (args[:-1], args[-1]) if plan.traced else (args, None)


# --- subscribers and trace ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A catch-all observer of events."""

    name: str
    call: Fire


def observed(
    core: Fire, plan: Plan, subscribers: tuple[Subscriber, ...], sinks: tuple[Sink, ...]
) -> Fire:
    """The outermost layer: list of results, subscribers, and the record for the trace."""
    spec, emits = plan.spec, plan.emits
    key_of = scope_key(spec, plan.passed)

    def opening(args: tuple[Any, ...]) -> tuple[list[Any], Recorder | None, list[Any]]:
        results: list[Any] = []
        hidden: list[Any] = [results] if emits else []
        recorder = None
        if sinks:
            recorder = Recorder(spec, key_of(args), dict(zip(plan.passed, args, strict=True)), sinks)
            hidden.append(recorder)
        return results, recorder, hidden

    def run_sync(*args: Any) -> Any:
        results, recorder, hidden = opening(args)
        try:
            value = core(*args, *hidden)
            for subscriber in subscribers:
                tell_sync(subscriber, spec, final_event(value, args), args)
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
            for subscriber in subscribers:
                await tell(subscriber, spec, final_event(value, args), args)
        except BaseException as error:
            if recorder is not None:
                recorder.done(error=error)
            raise
        if recorder is not None:
            recorder.done(value)
        return results if emits else value

    return run_sync if plan.sync else run


def final_event(value: Any, args: tuple[Any, ...]) -> Any:
    """The event after all patches; subscribers see what handlers made of it."""
    return value.event if isinstance(value, Verdict) else args[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


async def tell(subscriber: Subscriber, spec: HookSpec, event: Any, args: tuple[Any, ...]) -> None:
    """Show an event to a subscriber; what it raises is logged."""
    try:
        answer = subscriber.call(event, args[1])
        if isinstance(answer, Awaitable):
            await answer
    except Exception as error:
        log_subscriber(subscriber, spec, error)


def tell_sync(subscriber: Subscriber, spec: HookSpec, event: Any, args: tuple[Any, ...]) -> None:
    """The same from a synchronous call, where an awaitable is skipped with a warning."""
    try:
        answer = subscriber.call(event, args[1])
        if isinstance(answer, Awaitable):
            if hasattr(answer, "close"):
                answer.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
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
        return lambda args: args[at]
    return lambda args: getattr(args[at], attribute, None)


def named(layered: Fire, plan: Plan) -> Fire:
    """Give a layered function the hook's own parameters, so that it can be called by name."""
    return forward(layered, plan.passed, ", ".join(plan.passed), plan.spec, defaults_of(plan.spec))
