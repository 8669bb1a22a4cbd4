"""Code around a dispatch: the middleware of an `around` hook, and pluggy's generator wrappers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple

from .dispatch import Fire, adapter, bind, check, forward, note, skip, wrong_result
from .errors import CallError, RegistrationError, WrongResult
from .implementation import Implementation, awaitable, awaited, finish
from .observers import Note, failed, returned
from .reducers import RAISE, SKIP, Errors
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


def wrapped(core: Fire, plan: Plan, wrappers: Sequence[Implementation]) -> Fire:
    """Put generators around a dispatch, as pluggy does; the first in run order is the outermost."""
    fire = awaitable(core) if plan.sync else core
    for impl in reversed(wrappers):
        fire = _wrapped(fire, plan, impl)
    return (lambda *args: finish(fire(*args))) if plan.sync else fire


def _wrapped(inner: Fire, plan: Plan, impl: Implementation) -> Fire:
    """Put one generator around a dispatch."""
    level = _middleware(plan, impl)

    async def run(*args: Any) -> Any:
        notes: list[Note] = args[-1] if plan.traced else []
        started = perf_counter()

        @contextmanager
        def own(errors: Errors, inside: BaseException | None = None) -> Generator[None, None, None]:
            """Blame the wrapper for what it raises, unless it lets an error from inside through."""
            try:
                yield
            except BaseException as error:
                if error is inside:
                    raise
                failed(notes, impl, started, error)
                if errors is not SKIP or not isinstance(error, Exception):
                    note(error, impl)
                    raise
                skip(error, impl)

        generator = None
        with own(plan.errors):
            generator = _opened(level, args[: len(plan.passed)])
        if generator is None:
            return await inner(*args)
        try:
            value = await inner(*args)
        except Exception as error:
            with own(RAISE, error):
                value = _closed(impl, plan, generator, generator.throw, error)
                returned(notes, impl, started, value)
        except BaseException as error:  # cancellation and exit always propagate
            with suppress(BaseException), own(RAISE, error):
                generator.throw(error)
            raise
        else:
            with own(plan.errors):
                value = _closed(impl, plan, generator, generator.send, value)
                returned(notes, impl, started, value)
        return value

    return run


def _opened(level: Middleware, args: tuple[Any, ...]) -> Generator[Any, Any, Any] | None:
    """Run a wrapper up to its `yield`; None if its filter does not match."""
    if not level.applies(args):
        return None
    generator = level.call(*args)
    for _ in generator:
        return generator
    raise RegistrationError(f"{level.impl.name} on hook {level.impl.spec.name!r} did not yield")


def _closed(
    impl: Implementation, plan: Plan, generator: Generator[Any, Any, Any], resume: Fire, what: Any
) -> Any:
    """Give a wrapper the reduced value or the error, and return what it puts in its place."""
    reducer = plan.reducer
    try:
        resume(what)
    except StopIteration as stop:
        value = stop.value
    else:
        generator.close()
        raise RegistrationError(f"{impl.name} on hook {impl.spec.name!r} yields more than once")
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
