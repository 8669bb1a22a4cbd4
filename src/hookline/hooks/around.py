"""Code around a dispatch: the middleware of an `around` hook, and pluggy's generator wrappers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from .dispatch import Fire, adapter, bind, check, forward, note, refusing, skip, wrong_result
from .errors import CallError, RegistrationError, WrongResult
from .implementation import Arguments, Implementation, awaited, finish
from .observers import Note, failed, returned
from .reducers import SKIP
from .source import Plan

UNCHANGED: Any = object()


class Middleware(NamedTuple):
    """One implementation of an `around` hook, with functions that take all parameters."""

    impl: Implementation
    call: Fire
    when: Fire | None

    def applies(self, args: tuple[Any, ...]) -> bool:
        """Return whether its filter matches and, if it runs only once, it has not run yet."""
        if self.when is not None and not self.when(*args):
            return False
        return self.impl.take is None or self.impl.take()


def middleware(plan: Plan) -> Fire:
    """Return the dispatch of an `around` hook: each implementation is given `call_next`, which calls
    the next one; the last `call_next` is the function that the caller passed.
    """
    levels = [_middleware(plan, impl) for impl in plan.implementations]
    at = plan.passed.index("call_next")
    parameter = plan.reducer.passing
    passing = plan.passed.index(parameter) if parameter in plan.passed else None

    def with_value(args: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        if value is UNCHANGED:
            return args
        if passing is None:
            raise CallError(f"call_next() of hook {plan.spec.name!r} takes no argument")
        return (*args[:passing], value, *args[passing + 1 :])

    async def run(*args: Any) -> Any:
        notes: list[Note] | None = args[-1] if plan.traced else None
        foreign: list[BaseException] = []  # raised further inside: not the fault of those around it

        async def step(number: int, args: tuple[Any, ...]) -> Any:
            if number == len(levels):
                try:
                    return await awaited(args[at](*(() if passing is None else (args[passing],))))
                except BaseException as error:
                    foreign.append(error)
                    raise
            current = levels[number]

            def call_next(value: Any = UNCHANGED, /) -> Any:
                return step(number + 1, with_value(args, value))

            started = perf_counter()
            try:
                if not current.applies(args):
                    return await step(number + 1, args)
                answer = current.call(*args[:at], call_next, *args[at + 1 :])
                value = check(await awaited(answer), current.impl)
            except Exception as error:
                if not any(error is other for other in foreign):
                    note(error, current.impl)
                    foreign.append(error)
                if notes is not None:
                    failed(notes, current.impl, started, error)
                raise
            if notes is not None:
                returned(notes, current.impl, started, value)
            return value

        return await step(0, args[:-1] if plan.traced else args)

    return run


def _middleware(plan: Plan, impl: Implementation) -> Middleware:
    bound = bind(plan, impl)
    when = adapter(bound.when, impl.when_arguments, plan.passed) if bound.when else None
    return Middleware(impl, forward(bound.call, plan.passed, bound.shape.arguments), when)


# --- wrappers -----------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A wrapper that has run up to its `yield`."""

    impl: Implementation
    generator: Generator[Any, Any, Any]
    started: float


def wrapped(core: Fire, plan: Plan, wrappers: Sequence[Implementation]) -> Fire:
    """Put generators around a dispatch, as pluggy does; the first in run order is the outermost."""
    starts = [(impl, _starter(impl, plan.passed)) for impl in wrappers]
    count = len(plan.passed)

    def open_all(args: tuple[Any, ...], opened: list[Opened]) -> None:
        for impl, start in starts:
            started = perf_counter()
            try:
                generator = start(*args[:count])
                if generator is not None:
                    _enter(impl, generator)
                    opened.append(Opened(impl, generator, started))
            except Exception as error:
                if plan.traced:
                    failed(args[-1], impl, started, error)
                if plan.errors is not SKIP:
                    note(error, impl)
                    raise
                skip(error, impl)

    async def run(*args: Any) -> Any:
        opened: list[Opened] = []
        value, error = None, None
        try:
            open_all(args, opened)
            value = core(*args)
            value = value if plan.sync else await value
        except BaseException as raised:
            error = raised
        return _close_all(opened, plan, args, value, error)

    return (lambda *args: finish(run(*args))) if plan.sync else run


def _starter(impl: Implementation, passed: tuple[str, ...]) -> Fire:
    """Return what starts a wrapper with the arguments; None comes back if its filter does not match."""

    def ready(function: Fire, arguments: Arguments) -> Fire:
        missing = arguments.missing(passed)
        return refusing(impl, missing) if missing else adapter(function, arguments, passed)

    start = ready(impl.function, impl.arguments)
    if impl.when is None:
        return start
    when = ready(impl.when, impl.when_arguments)
    return lambda *args: start(*args) if when(*args) else None


def _enter(impl: Implementation, generator: Generator[Any, Any, Any]) -> None:
    """Run a wrapper up to its `yield`."""
    try:
        next(generator)
    except StopIteration:
        raise RegistrationError(f"{impl.name} on hook {impl.spec.name!r} did not yield") from None


def _close_all(
    opened: list[Opened], plan: Plan, args: tuple[Any, ...], value: Any, error: BaseException | None
) -> Any:
    """Run the second halves of the wrappers, innermost first, and return what the last one returns."""
    original = error
    for impl, generator, started in reversed(opened):
        try:
            value, error = _finish(impl, generator, plan, value, error), None
            if plan.traced:
                returned(args[-1], impl, started, value)
        except BaseException as raised:
            if raised is error:
                continue
            if plan.traced:
                failed(args[-1], impl, started, raised)
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


def _finish(
    impl: Implementation,
    generator: Generator[Any, Any, Any],
    plan: Plan,
    value: Any,
    error: BaseException | None,
) -> Any:
    """Give a wrapper the reduced value or the error, and return what takes the value's place."""
    resume: Callable[[Any], Any] = generator.send if error is None else generator.throw
    try:
        resume(value if error is None else error)
    except StopIteration as stop:
        return _replacement(impl, plan, stop.value)
    generator.close()
    raise RegistrationError(f"{impl.name} on hook {impl.spec.name!r} yields more than once")


def _replacement(impl: Implementation, plan: Plan, value: Any) -> Any:
    """Check what a wrapper returned: it must be of the class of the reduced value."""
    reducer = plan.reducer
    if not reducer.checked or (value is None and reducer.firstresult):
        return None
    if reducer.reduced is None:
        if value is None or not impl.spec.accepts(value):
            raise wrong_result(value, impl)
    elif not isinstance(value, reducer.reduced):
        raise WrongResult(
            f"{impl.name} wraps hook {impl.spec.name!r} and returned {type(value).__name__}; "
            f"return the {reducer.reduced.__name__} that `yield` gave, or another"
        )
    return value
