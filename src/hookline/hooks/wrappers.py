"""Wrappers: generators around a whole dispatch, as pluggy has them, on async hooks too."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any

from .code import adapter
from .errors import RegistrationError, WrongResult
from .failures import missing_error, note, skip, wrong_result
from .implementation import Arguments, Implementation
from .plan import Plan
from .reducers import SKIP

Fire = Callable[..., Any]
Opened = list[tuple[Implementation, Generator[Any, Any, Any], float]]


def wrapped(core: Fire, plan: Plan, wrappers: tuple[Implementation, ...]) -> Fire:
    """Generators around the whole dispatch; the first in run order is the outermost."""
    starts = [(impl, starter(impl, plan.passed)) for impl in wrappers]
    count = len(plan.passed)
    skips = plan.errors is SKIP

    def open_all(args: tuple[Any, ...]) -> tuple[Opened, Exception | None]:
        """Run each wrapper up to its `yield`; where errors raise, the first one ends it."""
        opened: Opened = []
        for impl, start in starts:
            started = perf_counter()
            try:
                generator = start(*args[:count])
                if generator is not None:
                    enter(impl, generator)
                    opened.append((impl, generator, started))
            except Exception as error:
                if plan.traced:
                    args[-1].failed(impl, started, error)
                if not skips:
                    note(error, impl)
                    return opened, error
                skip(error, impl)
        return opened, None

    def run_sync(*args: Any) -> Any:
        opened, failure = open_all(args)
        if failure is not None:
            return close_all(opened, plan, args, None, failure)
        try:
            value = core(*args)
        except BaseException as error:
            return close_all(opened, plan, args, None, error)
        return close_all(opened, plan, args, value, None)

    async def run(*args: Any) -> Any:
        opened, failure = open_all(args)
        if failure is not None:
            return close_all(opened, plan, args, None, failure)
        try:
            value = await core(*args)
        except BaseException as error:
            return close_all(opened, plan, args, None, error)
        return close_all(opened, plan, args, value, None)

    return run_sync if plan.sync else run


def starter(impl: Implementation, passed: tuple[str, ...]) -> Fire:
    """Start a wrapper on the arguments, or give None where its filter does not match."""
    start = ready(impl, impl.function, impl.arguments, passed)
    if impl.when is None:
        return start
    when = ready(impl, impl.when, impl.when_arguments, passed)
    return lambda *args: start(*args) if when(*args) else None


def ready(impl: Implementation, function: Fire, arguments: Arguments, passed: tuple[str, ...]) -> Fire:
    """A callable over what is passed, which fails where something is missing."""
    missing = arguments.missing(passed)
    if not missing:
        return adapter(function, arguments, passed)

    def refuse(*args: Any) -> Any:
        raise missing_error(impl, missing)

    return refuse


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
