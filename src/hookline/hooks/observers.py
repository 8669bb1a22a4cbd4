"""Observers: what `hooks.subscribe`, `hooks.trace` and `hooks.observe` see of each dispatch.

There is one mechanism. An `Observer` says which hooks it wants. When one of them is compiled, it is
asked for a function, and that function is called at the end of each dispatch with the arguments, the
notes on what each implementation did, and the value or error. Hooks without observers are compiled
exactly as if observers did not exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import HookTimeout, NotAwaited, error_text
from .implementation import discard, finish, is_awaitable
from .verdict import Decision, Ruling, Verdict, as_released, emptied

if TYPE_CHECKING:
    from .implementation import Implementation
    from .source import Plan
    from .spec import HookSpec

log = logging.getLogger("hookline.hooks")

Listener = Callable[..., Any]
"""Called at the end of a dispatch: `listener(args, started, notes, value=None, error=None)`."""
Note = tuple["Implementation", float, float, Any, Ruling | BaseException | None, int]
"""Who, from when to when, what it returned, its ruling or error, and the place of the ruling."""
Wants = Callable[["HookSpec", Sequence["Implementation"]], bool]
"""Whether to observe a hook that has these implementations; asked when the hook is compiled."""
Did = Literal["value", "none", "raised", "timed out", "denied", "asked", "rewrote", "skipped"]


class Observer(NamedTuple):
    """Something that observes dispatches. Neither function may raise."""

    observe: Callable[[Observed], Listener]
    """Called once for each dispatch function; returns what is called at the end of each dispatch."""
    wants: Wants
    notes: bool = True
    """Whether it needs to know what each implementation did."""
    waits: bool = False
    """Whether what it returns may have to be awaited."""


class Observed:
    """What all dispatches of one compiled function have in common."""

    __slots__ = ("key_of", "passed", "spec", "sync")

    def __init__(self, spec: HookSpec, passed: tuple[str, ...], sync: bool = False) -> None:
        self.spec = spec
        self.sync = sync
        self.passed = passed
        """The names of the arguments, in order."""
        self.key_of = scope_key(spec, passed)
        """Returns the scope key, given the arguments."""

    def argument(self, args: tuple[Any, ...], name: str) -> Any:
        """Return one of the arguments; None if it was not passed."""
        return args[self.passed.index(name)] if name in self.passed else None

    def released(self, value: Any) -> Any:
        """Return the reduced value as observers may see it."""
        if not self.spec.withholds or not isinstance(value, Verdict):
            return value
        return as_released(value, self.spec.withholds)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def arguments(self, args: tuple[Any, ...], value: Any) -> dict[str, Any]:
        """Return the arguments by name; of fields that were withheld, only what `value` released."""
        arguments = dict(zip(self.passed, args, strict=True))
        withheld = self.spec.withholds
        if withheld:
            judged = isinstance(value, Verdict)
            arguments["event"] = value.event if judged else emptied(arguments["event"], withheld)  # pyright: ignore[reportUnknownMemberType]
        return arguments

    def log_failure(self, sink: object) -> None:
        """Log that an observer raised; the dispatch goes on."""
        log.exception("hook.trace_failed hook=%s sink=%r", self.spec.name, sink)


def wants_events(spec: HookSpec, attached: Sequence[Implementation]) -> bool:
    """Observe events, and not function-shaped hooks."""
    return spec.event is not None


def wants_all(spec: HookSpec, attached: Sequence[Implementation]) -> bool:
    """Observe every hook, even one with nothing attached."""
    return True


def scope_key(spec: HookSpec, passed: tuple[str, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """Return what reads the scope key from the arguments."""
    parameter, attribute = spec.scope_source
    if parameter not in passed:
        return lambda args: None
    at = passed.index(parameter)
    return (lambda args: getattr(args[at], attribute, None)) if attribute else itemgetter(at)


# --- the layer around a dispatch ----------------------------------------------------------------


def listener_of(observers: Sequence[Observer], observed: Observed) -> Listener:
    """Return the function that tells all of these observers, none of which waits."""
    functions = [observer.observe(observed) for observer in observers]
    if len(functions) == 1:
        return functions[0]

    def listener(*what: Any) -> None:
        for function in functions:
            function(*what)

    return listener


def observed(core: Callable[..., Any], plan: Plan, observers: Sequence[Observer]) -> Callable[..., Any]:
    """Put the outermost layer around a dispatch: the list that `emit` returns, and the observers.

    It is built for `emit`, for observers that wait, and where wrappers or middleware take part.
    """
    common = Observed(plan.spec, plan.passed, plan.sync)
    waiting = [observer.observe(common) for observer in observers if observer.waits]
    tell = listener_of([observer for observer in observers if not observer.waits], common)

    async def run(*args: Any) -> Any:
        results: list[Any] = []
        notes: list[Note] = []
        started = perf_counter()
        hidden = (*([results] if plan.emits else ()), *([notes] if plan.traced else ()))
        try:
            value = core(*args, *hidden)
            value = value if plan.sync else await value
            for listener in waiting:
                answer = listener(args, started, notes, value)
                if answer is not None:
                    await answer
        except BaseException as error:
            tell(args, started, notes, None, error)
            raise
        tell(args, started, notes, value)
        return results if plan.emits else value

    return (lambda *args: finish(run(*args))) if plan.sync else run


def returned(notes: list[Note], impl: Implementation, started: float, value: Any) -> None:
    """Note that an implementation returned."""
    notes.append((impl, started, perf_counter(), value, None, 0))


def ruled(notes: list[Note], impl: Implementation, started: float, verdict: Verdict[Any]) -> None:
    """Note that the result of an implementation was folded into the verdict."""
    trail = verdict.trail
    notes.append((impl, started, perf_counter(), None, trail[-1], len(trail) - 1))


def failed(notes: list[Note], impl: Implementation, started: float, error: BaseException) -> None:
    """Note that an implementation raised, or that its result could not be used."""
    notes.append((impl, started, perf_counter(), None, error, 0))


# --- subscribers: every event, after its handlers -------------------------------------------------


def subscriber(name: str, call: Callable[..., Any]) -> Observer:
    """Return the observer that calls a function with every event and its context."""

    def observe(observed: Observed) -> Listener:
        spec = observed.spec

        def failed(error: Exception) -> None:
            text = error_text(error)
            log.error(
                "hook.subscriber_failed hook=%s adapter=%s: %s", spec.name, name, text, exc_info=error
            )

        async def waiting(answer: Any) -> None:
            try:
                await answer
            except Exception as error:
                failed(error)

        def listener(args: tuple[Any, ...], started: float, notes: list[Note], value: Any) -> Any:
            seen = observed.released(value)
            try:
                answer = call(seen.event if isinstance(seen, Verdict) else args[0], args[1])  # pyright: ignore[reportUnknownMemberType]
                if not is_awaitable(answer):
                    return None
                if not observed.sync:
                    return waiting(answer)
                discard(answer)
                log.warning("hook.async_not_supported hook=%s adapter=%s", spec.name, name)
            except Exception as error:
                failed(error)

        return listener

    return Observer(observe, wants_events, notes=False, waits=True)


# --- the trace: a record of every dispatch ----------------------------------------------------------


@dataclass(slots=True)
class HandlerCall:
    """One implementation's part in a dispatch."""

    by: str
    started: float
    duration: float
    did: Did
    fields: tuple[str, ...] = ()
    """The event's fields that it changed."""
    error: BaseException | None = None
    value: Any = None
    """What it returned, if that was not folded into a verdict."""
    ruling: int | None = None
    """The place of its ruling in the verdict's trail."""
    implementation: Implementation | None = field(default=None, repr=False)


@dataclass(slots=True)
class Dispatch:
    """One call of one hook; times are in seconds of `time.perf_counter`."""

    hook: str
    key: Any
    """The scope key it ran under."""
    arguments: dict[str, Any]
    started: float
    duration: float = 0.0
    calls: list[HandlerCall] = field(default_factory=list[HandlerCall])
    value: Any = None
    """The reduced value."""
    error: BaseException | None = None


def recorder(sink: Callable[[Dispatch], Any], wants: Wants | None = None) -> Observer:
    """Return the observer that calls a function with a `Dispatch` for each dispatch."""

    def observe(observed: Observed) -> Listener:
        spec = observed.spec

        def listener(
            args: tuple[Any, ...],
            started: float,
            notes: list[Note],
            value: Any = None,
            error: BaseException | None = None,
        ) -> None:
            try:
                duration = perf_counter() - started
                value = observed.released(value)
                calls = [call_of(note, spec.reducer.replaces) for note in notes]
                arguments, key = observed.arguments(args, value), observed.key_of(args)
                sink(Dispatch(spec.name, key, arguments, started, duration, calls, value, error))
            except Exception:
                observed.log_failure(sink)

        return listener

    return Observer(observe, wants or wants_all)


def call_of(note: Note, replaces: bool) -> HandlerCall:
    """Return the record of a note."""
    impl, started, ended, value, what, place = note
    call = HandlerCall(
        impl.name, started, ended - started, did_of(value, what, replaces), implementation=impl
    )
    if isinstance(what, Ruling):
        call.fields, call.ruling = tuple(what.changes or ()), place
    else:
        call.error, call.value = what, value
    return call


def did_of(value: Any, what: Ruling | BaseException | None, replaces: bool) -> Did:
    """Return what an implementation did, given what it returned and its ruling or error."""
    if what is None:
        return "none" if value is None else "rewrote" if replaces else "value"
    if isinstance(what, Ruling):
        if what.decision is not Decision.ALLOW:
            return "denied" if what.decision is Decision.DENY else "asked"
        return "rewrote" if what.changes else "value"
    if isinstance(what, HookTimeout):
        return "timed out"
    return "skipped" if isinstance(what, NotAwaited) else "raised"
