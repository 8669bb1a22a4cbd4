"""Code around a dispatch: the middleware of an `around` hook, and wrappers as pluggy has them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any, NamedTuple

from .code import adapter, forward
from .errors import CallError, NotAwaited, RegistrationError, WrongResult
from .failures import check, missing_error, not_awaited, note, skip, wrong_result
from .implementation import Arguments, Implementation, discard, is_awaitable
from .observers import Recorder
from .plan import Plan, bind
from .reducers import SKIP, Around

Fire = Callable[..., Any]
UNCHANGED: Any = object()


class Middleware(NamedTuple):
    """One implementation of an `around` hook, ready to be called with all parameters."""

    impl: Implementation
    call: Fire
    when: Fire | None


def middleware(plan: Plan) -> Fire:
    """The implementations of an `around` hook, each around the next, the caller's own innermost."""
    spec, reducer = plan.spec, plan.reducer
    assert isinstance(reducer, Around)
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

    def next_step(step: Fire, number: int, args: tuple[Any, ...]) -> Fire:
        def call_next(value: Any = UNCHANGED, /) -> Any:
            return step(number + 1, with_value(args, value))

        return call_next

    def call_sync(
        current: Middleware, args: tuple[Any, ...], number: int, step: Fire
    ) -> tuple[Any, bool]:
        """Call one; where only awaiting would help it is passed over, and what is inside runs once."""
        inside = Inside(next_step(step, number, args))
        try:
            value = current.call(*with_next(args, inside))
            if not is_awaitable(value):
                return check(value, current.impl), False
            discard(value)
            not_awaited(current.impl)
        except NotAwaited:
            pass
        return (inside.outcome() if inside.called else step(number + 1, args)), True

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
                if not applies(current, args):
                    return step(number + 1, args)
                value, passed_over = call_sync(current, args, number, step)
                if passed_over:
                    return value
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
                    return await value if is_awaitable(value) else value
                except BaseException as error:
                    foreign.append(error)
                    raise
            current = levels[number]
            started = perf_counter()
            try:
                if not applies(current, args):
                    return await step(number + 1, args)
                inner = with_next(args, next_step(step, number, args))
                value = current.call(*inner)
                value = check(await value if is_awaitable(value) else value, current.impl)
            except Exception as error:
                blame(error, current.impl, foreign, recorder, started)
                raise
            if recorder is not None:
                recorder.returned(current.impl, started, value)
            return value

        return await step(0, args)

    return run_sync if plan.sync else run


class Inside:
    """`call_next` that remembers what came of it, for one that is passed over after calling on."""

    def __init__(self, go_on: Fire) -> None:
        self._go_on = go_on
        self.called = False
        self._value: Any = None
        self._error: BaseException | None = None

    def __call__(self, value: Any = UNCHANGED, /) -> Any:
        """Call on."""
        self.called = True
        try:
            self._value, self._error = self._go_on(value), None
        except BaseException as error:
            self._error = error
            raise
        return self._value

    def outcome(self) -> Any:
        """What the inner call came to."""
        if self._error is not None:
            raise self._error
        return self._value


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
