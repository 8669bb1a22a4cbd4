"""Plans: everything that decides how one function dispatches, before a line of it is written."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple

from .errors import CallError
from .failures import missing_error, not_awaited
from .implementation import Arguments, Implementation
from .observers import Watched
from .reducers import Chain, Errors, Merge, Reducer
from .spec import HookSpec, has_literal
from .timeouts import limited

UNROLL = 64
"""Handlers up to which every call is written out; beyond, equal shapes run in a loop."""


class Plan:
    """Everything that decides how one function dispatches."""

    __slots__ = (
        "emits", "errors", "implementations", "passed", "reducer", "spec", "sync", "traced",
        "watched",
    )  # fmt: skip

    def __init__(
        self,
        spec: HookSpec,
        implementations: tuple[Implementation, ...],
        reducer: Reducer,
        errors: Errors,
        *,
        sync: bool,
        passed: tuple[str, ...],
        emits: bool = False,
        traced: bool = False,
        watched: Watched | None = None,
    ) -> None:
        self.spec = spec
        self.implementations = implementations
        self.reducer = reducer
        self.errors = errors
        self.sync = sync
        self.passed = passed
        """The parameters that the caller gives, in the hook's order."""
        self.emits = emits
        """Each result is also appended to a list that comes as the parameter `_results`."""
        self.traced = traced
        """Each call is also noted, for a recorder that comes as the parameter `_t`."""
        self.watched = watched
        """Whom the function tells of its notes itself; None where an outer layer has a recorder."""

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters of the function, hidden ones last."""
        hidden = (("_results", self.emits), ("_t", self.traced and self.watched is None))
        return (*self.passed, *(name for name, wanted in hidden if wanted))

    def after(self, number: int) -> Plan:
        """The same for the implementations after one of them, where nobody looks on."""
        rest = self.implementations[number + 1 :]
        return Plan(self.spec, rest, self.reducer, self.errors, sync=self.sync, passed=self.passed)


class Shape(NamedTuple):
    """What the source of one call depends on."""

    arguments: str
    awaits: bool
    when: str | None
    once: bool
    guard: bool


class Bound(NamedTuple):
    """One implementation as the generated code sees it."""

    shape: Shape
    impl: Implementation
    call: Callable[..., Any]
    when: Callable[..., Any] | None


def bind(plan: Plan, impl: Implementation) -> Bound:
    """Decide how an implementation is called: what it gets, and what stands in its place."""
    arguments, when = impl.arguments, impl.when
    missing = arguments.missing(plan.passed)
    if when is not None and (unknown := impl.when_arguments.missing(plan.passed)):
        missing, when = unknown, None  # whether it applies cannot be told: that is a failure too
    awaits = impl.is_async and not plan.sync
    call = impl.function
    if missing:
        arguments, awaits, call = Arguments(), False, raising(missing_error(impl, missing))
    elif impl.is_async and plan.sync:
        arguments, call = Arguments(), unawaitable(impl)
    elif impl.timeout is not None:
        call = limited(impl, sync=plan.sync)
        awaits = not plan.sync
    shape = Shape(
        arguments.source(plan.passed),
        awaits,
        impl.when_arguments.source(plan.passed) if when is not None else None,
        impl.take is not None,
        impl.guard,
    )
    return Bound(shape, impl, call, when)


def check_of(plan: Plan) -> str:
    """How a result is checked: by class, by value, or not at all."""
    looked_at = plan.reducer.checked and plan.spec.reducer.checked
    if not looked_at or plan.spec.classes is None:
        return "nothing"
    return "value" if has_literal(plan.spec.result) else "class"


def layout(bounds: list[Bound]) -> list[tuple[str, list[Bound], bool]]:
    """Each piece of the source: the suffix of its names, whom it calls, and whether in a loop."""
    if len(bounds) <= UNROLL:
        return [(str(n), [bound], False) for n, bound in enumerate(bounds)]
    pieces: list[tuple[list[Bound], bool]] = []
    for shape, group in groupby(bounds, key=lambda b: b.shape):
        alike = list(group)
        pieces += [([b], False) for b in alike] if shape.guard else [(alike, True)]
    return [(str(n), group, looped) for n, (group, looped) in enumerate(pieces)]


def names_of(suffix: str, bound: Bound) -> dict[str, Any]:
    """The names of one call; in a loop they are the loop's variables."""
    names: dict[str, Any] = {f"_h{suffix}": bound.call, f"_i{suffix}": bound.impl}
    if bound.when is not None:
        names[f"_w{suffix}"] = bound.when
    if bound.impl.take is not None:
        names[f"_o{suffix}"] = bound.impl.take
    return names


def require(plan: Plan) -> None:
    """Refuse a call without what the dispatch itself works on."""
    reducer, spec = plan.reducer, plan.spec
    needed = ["event"] if spec.event is not None else []
    if isinstance(reducer, Chain):
        needed.append(reducer.parameter)
    elif isinstance(reducer, Merge) and reducer.into:
        needed.append(reducer.into)
    elif reducer.name == "around":
        needed.append("call_next")
    for name in needed:
        if name not in plan.passed:
            raise CallError(f"a call of hook {spec.name!r} needs the argument {name!r}")


def unawaitable(impl: Implementation) -> Callable[[], Any]:
    """Stands in for an async implementation in a synchronous call."""

    def call() -> Any:
        raise not_awaited(impl)

    return call


def raising(error: Exception) -> Callable[[], Any]:
    """Stands in for an implementation that cannot be called."""

    def call() -> Any:
        raise error.with_traceback(None)

    return call
