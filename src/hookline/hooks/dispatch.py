"""Compiled dispatch: one function per hook, written for exactly what is attached to it.

On the first call after a change a hook gets a function made from source: the calls unrolled, each
with the arguments it takes, the reducer's lines and the error policy's lines around it. What is
known when it is built (who is async, who has a filter, what a result must be) is never asked
during a call. Code objects are cached by shape; each function gets a copy of its own, because the
interpreter specialises code where it runs.

For two handlers on a `first` hook the source is, in essence:

    async def fire(message, session_id):
        try:
            _r = await _h0(message)
            if _r is not None:
                if _r.__class__ is not _T: _check(_r, _i0)
                return _r
        except Exception as _e:
            _skip(_e, _i0)
        try:
            _r = _h1(session_id)
            ...
        return None
"""

from __future__ import annotations

import builtins
import inspect
import linecache
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from types import CodeType, FunctionType, NoneType
from typing import Any

from .errors import CallError, MissingArgument, NotAwaited, WrongResult, error_text
from .implementation import Arguments, Implementation
from .limits import limited
from .reducers import CAPTURE, DENY, RAISE, SKIP, Chain, Errors, First, Merge, Outcome, Patch, Reducer
from .spec import HookSpec, has_literal, type_name
from .verdict import Denied, Verdict, same, unsettled, withheld_text

log = logging.getLogger("hookline.hooks")

UNROLL = 64
"""Handlers up to which every call is written out; beyond, equal shapes run in a loop."""

PLAIN = frozenset(
    {NoneType, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
)
"""Classes that are known not to be awaitable, so that most results need no closer look."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides how one function dispatches."""

    spec: HookSpec
    implementations: tuple[Implementation, ...]
    reducer: Reducer
    errors: Errors
    sync: bool
    passed: tuple[str, ...]
    """The parameters that the caller gives, in the hook's order."""
    emits: bool = False
    """Each result is also appended to a list that comes as the parameter `_results`."""
    traced: bool = False
    """Each call is also reported to a recorder that comes as the parameter `_t`."""

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters of the function, hidden ones last."""
        hidden = (("_results", self.emits), ("_t", self.traced))
        return (*self.passed, *(name for name, wanted in hidden if wanted))


@dataclass(frozen=True, slots=True)
class Shape:
    """What the source of one call depends on."""

    arguments: str
    awaits: bool
    when: str | None
    once: bool
    guard: bool


@dataclass(slots=True)
class Bound:
    """One implementation as the generated code sees it."""

    shape: Shape
    impl: Implementation
    call: Callable[..., Any]
    when: Callable[..., Any] | None


def compile_dispatch(plan: Plan) -> Callable[..., Any]:
    """Make the function that runs a plan."""
    bounds = [bind(plan, impl) for impl in plan.implementations]
    key = (
        plan.params, plan.sync, plan.emits, plan.traced, plan.reducer, plan.errors,
        check_of(plan), tuple(b.shape for b in bounds),
    )  # fmt: skip
    code = _codes.get(key)
    if code is None:
        code = _remember(key, Writer(plan, bounds).source())
    defaults = None if plan.emits or plan.traced else defaults_of(plan.spec)
    return instantiate(code, plan.spec, environment(plan, bounds), defaults)


def bind(plan: Plan, impl: Implementation) -> Bound:
    """Decide how an implementation is called: what it gets, and what stands in its place."""
    arguments, when = impl.arguments, impl.when
    missing = arguments.missing(plan.passed)
    if when is not None:
        missing = missing or impl.when_arguments.missing(plan.passed)
    awaits = impl.is_async and not plan.sync
    call = impl.function
    if missing:
        arguments, when, awaits, call = Arguments(), None, False, raising(missing_error(impl, missing))
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
    if not plan.reducer.checked or plan.spec.classes is None:
        return "nothing"
    return "value" if has_literal(plan.spec.result) else "class"


def defaults_of(spec: HookSpec) -> tuple[Any, ...] | None:
    """An event's context may be left out."""
    return (None,) if spec.event is not None else None


class Writer:
    """Writes the source of one dispatch."""

    def __init__(self, plan: Plan, bounds: list[Bound]) -> None:
        self.plan = plan
        self.bounds = bounds
        self.reducer = plan.reducer
        self.check = check_of(plan)
        self.lines: list[str] = []
        self.guards = [
            (suffix, group[0])
            for suffix, group, _ in layout(bounds)
            if group[0].impl.guard and plan.reducer.guarded
        ]
        self.settling = len(self.guards) > 1

    def source(self) -> str:
        """The whole function; what it refers to are the globals it will be given."""
        keyword = "def" if self.plan.sync else "async def"
        self.add(0, f"{keyword} fire({', '.join(self.plan.params)}):")
        for line in (*self.absent(), *self.reducer.setup()):
            self.add(1, line)
        if self.settling:
            self.add(1, "_moved = -1")
        for suffix, group, looped in layout(self.bounds):
            if looped:
                self.add(1, f"for {', '.join(names_of('', group[0]))} in _run{suffix}:")
                self.block(2, "", group[0])
            else:
                self.block(1, suffix, group[0], guard=self.guard_number(suffix))
        if self.settling:
            self.ask_guards_again()
        self.add(1, f"return {self.reducer.end()}")
        return "\n".join(self.lines) + "\n"

    def absent(self) -> Iterator[str]:
        """A carrier that the caller did not pass is nothing to renew."""
        reducer = self.reducer
        if isinstance(reducer, Chain) and reducer.carrier not in (None, *self.plan.passed):
            yield f"{reducer.carrier} = None"

    def guard_number(self, suffix: str) -> int | None:
        """Which guard it is, where several must come to rest together."""
        numbers = {own: n for n, (own, _) in enumerate(self.guards)} if self.settling else {}
        return numbers.get(suffix)

    def ask_guards_again(self) -> None:
        """A guard that judged before a later one rewrote is asked once more."""
        for number, (suffix, bound) in enumerate(self.guards[:-1]):
            self.add(1, f"if _moved > {number}:")
            self.block(2, suffix, bound, again=True)

    def block(
        self, depth: int, number: str, bound: Bound, *, guard: int | None = None, again: bool = False
    ) -> None:
        """One call with all that belongs to it."""
        shape = bound.shape
        impl = f"_i{number}"
        if self.plan.traced:
            self.add(depth, "_s = _clock()")
        self.add(depth, "try:")
        inner = depth + 1
        if shape.when is not None:
            self.add(inner, f"if _w{number}({shape.when}):")
            inner += 1
        if shape.once:
            self.add(inner, f"if _o{number}():")
            inner += 1
        call = f"{'await ' if shape.awaits else ''}_h{number}({shape.arguments})"
        step = self.step(guard, again)
        if self.plan.emits or self.plan.traced or self.reducer.every:
            self.watched(inner, impl, shape, call, step, again=again)
        else:
            self.plain(inner, impl, shape, call, step)
        self.failure(depth, impl, bound)

    def plain(self, depth: int, impl: str, shape: Shape, call: str, step: list[str]) -> None:
        """Call and reduce, with nothing on the way of a result that is as it should be."""
        good = self.good()
        if shape.awaits and not step:
            self.add(depth, call)
            return
        self.add(depth, f"_r = {call}")
        if not step:
            self.add(depth, f"if _r is not None and not ({good}):")
            self.add(depth + 1, self.settle(shape), impl)
            return
        closer = [self.settle(shape)]
        closer += step if shape.awaits else ["if _r is not None:", *(f"    {line}" for line in step)]
        if shape.awaits and self.check == "nothing":
            self.add(depth, "if _r is not None:")
            self.write(depth + 1, step, impl)
        elif self.reducer.stops or self.reducer.folds:  # mostly None: ask that first
            self.add(depth, "if _r is not None:")
            self.either(depth + 1, good, step, "else", closer, impl)
        else:
            self.either(depth, good, step, "elif _r is not None", closer, impl)

    def either(
        self, depth: int, test: str, then: list[str], otherwise: str, closer: list[str], impl: str
    ) -> None:
        """Two branches."""
        self.add(depth, f"if {test}:")
        self.write(depth + 1, then, impl)
        self.add(depth, f"{otherwise}:")
        self.write(depth + 1, closer, impl)

    def good(self) -> str:
        """The quick test that passes most results; the rest are looked at closely."""
        if self.check == "class":
            one = len(self.plan.spec.classes or ()) == 1
            return "_r.__class__ is _T" if one else "_r.__class__ in _types"
        return "_fits(_r)" if self.check == "value" else "_r.__class__ in _plain"

    def settle(self, shape: Shape) -> str:
        """The close look: await what must be awaited, refuse what is of the wrong type."""
        if shape.awaits:
            return "_check(_r, _i)"
        return f"_r = {'' if self.plan.sync else 'await '}_settle(_r, _i)"

    def watched(
        self, depth: int, impl: str, shape: Shape, call: str, step: list[str], *, again: bool
    ) -> None:
        """Call and reduce where every result counts: kept, listed or traced, None too."""
        plan, folds = self.plan, self.reducer.folds
        listed = ["_results.append(_r)"] if plan.emits else []
        if again:
            listed = [f"if _r is not None: {line}" for line in listed]
        traced = ["_t.returned(_i, _s, _r)"] if plan.traced else []
        if folds and plan.traced:
            traced = ["_t.ruled(_i, _s, _v) if _r is not None else _t.returned(_i, _s, _r)"]
        self.add(depth, f"_r = {call}")
        if self.check != "nothing" or not shape.awaits:
            self.add(depth, f"if _r is not None and not ({self.good()}):")
            self.add(depth + 1, self.settle(shape), impl)
        if not folds:
            self.write(depth, [*traced, *listed], impl)
        if step and not self.reducer.every:
            self.add(depth, "if _r is not None:")
            self.write(depth + 1, step, impl)
        else:
            self.write(depth, step, impl)
        if folds:
            self.write(depth, [*listed, *traced], impl)

    def step(self, guard: int | None, again: bool) -> list[str]:
        """The reducer's lines, with the watch on guards that rewrite."""
        lines = list(self.reducer.step())
        if guard is None and not again:
            return lines
        if self.reducer.folds:
            if again:
                return ["if _v.apply(_r, _i) is not event:", "    raise _unsettled(_i)"]
            return [
                "_n = _v.apply(_r, _i)",
                "if _n is not event:",
                "    event = _n",
                f"    _moved = {guard}",
            ]
        assert isinstance(self.reducer, Chain)
        changed = f"if not _same(_r, {self.reducer.parameter}):"
        if again:
            return [changed, "    raise _unsettled(_i)"]
        return [changed, f"    _moved = {guard}", *lines]

    def failure(self, depth: int, impl: str, bound: Bound) -> None:
        """The error policy's lines."""
        denies = bound.impl.guard or self.plan.errors is DENY
        trace = ["_t.failed(_i, _s, _e)"] if self.plan.traced else []
        if self.plan.sync and not denies and self.plan.errors is not CAPTURE:
            self.add(depth, "except _NotAwaited as _e:")
            for line in trace or ["pass"]:
                self.add(depth + 1, line, impl)
        self.add(depth, "except Exception as _e:")
        for line in (*trace, *self.policy(denies)):
            self.add(depth + 1, line, impl)

    def policy(self, denies: bool) -> list[str]:
        """What an error comes to."""
        reducer = self.reducer
        denied = ["_results.append(_denied(_e, _i))"] if self.plan.emits else []
        if denies and reducer.name == "gate":
            return ["_log_failed(_e, _i)", "_v.fail(_e, _i)", *denied]
        if denies and isinstance(reducer, Patch):
            return ["_log_failed(_e, _i)", *denied, "_v.withhold(_e, _i, _field, _wrap)", "return _v"]
        if denies and isinstance(reducer, Chain):
            return ["_log_failed(_e, _i)", *denied, "return _withheld(_e, _i)"]
        if denies and isinstance(reducer, First):
            return ["_log_failed(_e, _i)", *denied, "return _denial"]
        if denies and isinstance(self.plan.spec.reducer, First):
            return ["_log_failed(_e, _i)", "_out.append(_denial)"]
        if denies:
            return ["_skip(_e, _i)"]
        return {
            RAISE: ["_note(_e, _i)", "raise"],
            SKIP: ["_skip(_e, _i)"],
            CAPTURE: ["_out.append(_Outcome(_i.name, False, None, _e))"],
        }[self.plan.errors]

    def write(self, depth: int, lines: list[str], impl: str) -> None:
        """Write several lines."""
        for line in lines:
            self.add(depth, line, impl)

    def add(self, depth: int, line: str, impl: str = "") -> None:
        """Write one line; `_i` in it becomes the implementation at hand."""
        self.lines.append("    " * depth + (re.sub(r"\b_i\b", impl, line) if impl else line))


def layout(bounds: list[Bound]) -> list[tuple[str, list[Bound], bool]]:
    """Each piece of the source: the suffix of its names, whom it calls, and whether in a loop."""
    if len(bounds) <= UNROLL:
        return [(str(n), [bound], False) for n, bound in enumerate(bounds)]
    pieces: list[tuple[list[Bound], bool]] = []
    for shape, group in groupby(bounds, key=lambda b: b.shape):
        pieces += [([b], False) for b in group] if shape.guard else [(list(group), True)]
    return [(str(n), group, looped) for n, (group, looped) in enumerate(pieces)]


def environment(plan: Plan, bounds: list[Bound]) -> dict[str, Any]:
    """Every name that the generated source refers to."""
    spec, reducer = plan.spec, plan.reducer
    env: dict[str, Any] = {}
    for suffix, group, looped in layout(bounds):
        if looped:
            env[f"_run{suffix}"] = tuple(tuple(names_of("", b).values()) for b in group)
        else:
            env.update(names_of(suffix, group[0]))
    env.update(_COMMON)
    env.update(reducer.names(spec))
    classes = spec.classes or ()
    env["_T"] = classes[0] if len(classes) == 1 else None
    env["_types"] = frozenset(classes)
    env["_fits"] = spec.accepts
    env["_settle"] = settling(plan)
    if isinstance(reducer, Patch):
        env["_field"], env["_wrap"] = reducer.field, reducer.withheld
    env["_denial"] = spec.reducer.denial(spec) if isinstance(spec.reducer, First) else None
    return env


def names_of(suffix: str, bound: Bound) -> dict[str, Any]:
    """The names of one call; in a loop they are the loop's variables."""
    names: dict[str, Any] = {f"_h{suffix}": bound.call, f"_i{suffix}": bound.impl}
    if bound.when is not None:
        names[f"_w{suffix}"] = bound.when
    if bound.impl.take is not None:
        names[f"_o{suffix}"] = bound.impl.take
    return names


def settling(plan: Plan) -> Callable[[Any, Implementation], Any]:
    """What happens to a result that does not look right at once: it is awaited, or refused."""
    checked = check_of(plan) != "nothing"

    def usable(value: Any, impl: Implementation) -> Any:
        return check(value, impl) if checked else value

    async def settle(value: Any, impl: Implementation) -> Any:
        return usable(await value if isinstance(value, Awaitable) else value, impl)

    def settle_sync(value: Any, impl: Implementation) -> Any:
        if isinstance(value, Awaitable):
            if inspect.iscoroutine(value):  # pyright: ignore[reportUnknownArgumentType]
                value.close()
            raise not_awaited(impl)
        return usable(value, impl)

    return settle_sync if plan.sync else settle


def check(value: Any, impl: Implementation) -> Any:
    """Give a result back, or refuse it for its type."""
    if value is not None and not impl.spec.accepts(value):
        raise wrong_result(value, impl)
    return value


def wrong_result(value: Any, impl: Implementation) -> WrongResult:
    """The error for a result of the wrong type."""
    spec = impl.spec
    got = repr(value) if has_literal(spec.result) else type(value).__name__
    return WrongResult(
        f"{impl.name} returned {got} on hook {spec.name!r}, "
        f"which takes {type_name(spec.result)} or None ({impl.location})"
    )


def not_awaited(impl: Implementation) -> NotAwaited:
    """Warn of an awaitable that a synchronous call cannot use; the error carries the same text."""
    log.warning("hook.async_not_supported hook=%s adapter=%s", impl.spec.name, impl.name)
    return NotAwaited(f"hook.async_not_supported hook={impl.spec.name} adapter={impl.name}")


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


def missing_error(impl: Implementation, missing: list[str]) -> MissingArgument:
    """The error for arguments that the caller left out."""
    return MissingArgument(
        f"{impl.name} needs {', '.join(map(repr, missing))}, "
        f"which the call of hook {impl.spec.name!r} did not pass"
    )


def note(error: BaseException, impl: Implementation) -> None:
    """Name hook and plugin on an error that goes on to the caller."""
    error.add_note(f"in {impl.name} on hook {impl.spec.name!r} ({impl.location})")


def skip(error: Exception, impl: Implementation) -> None:
    """Log an error that is left out."""
    log.error(
        "hook.failed hook=%s adapter=%s: %s",
        impl.spec.name,
        impl.name,
        error_text(error),
        exc_info=error,
    )


def log_failed(error: Exception, impl: Implementation) -> None:
    """Log an error that counts as a deny."""
    log.error(
        "hook.denied hook=%s adapter=%s: %s",
        impl.spec.name,
        impl.name,
        error_text(error),
        exc_info=error,
    )


def denied(error: Exception, impl: Implementation) -> Denied:
    """What stands in a list of results for a guard that failed."""
    return Denied(f"{impl.name} failed: {error_text(error)}")


def require(plan: Plan) -> None:
    """A value that is rewritten from one to the next must be passed in."""
    reducer = plan.reducer
    carried = reducer.parameter if isinstance(reducer, Chain) else None
    carried = reducer.into if isinstance(reducer, Merge) else carried
    if carried is not None and carried not in plan.passed:
        raise CallError(f"hook {plan.spec.name!r} needs the argument {carried!r}, which it rewrites")


_COMMON: dict[str, Any] = {
    "__builtins__": builtins, "Exception": Exception,
    "_check": check, "_note": note, "_skip": skip, "_log_failed": log_failed,
    "_denied": denied, "_withheld": withheld_text, "_unsettled": unsettled, "_same": same,
    "_plain": PLAIN, "_clock": perf_counter, "_NotAwaited": NotAwaited, "_Outcome": Outcome,
    "_Verdict": Verdict,
}  # fmt: skip

_codes: dict[Any, CodeType] = {}
_CODES = 1024


def _remember(key: Any, source: str) -> CodeType:
    filename = f"<hookline dispatch {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    code = next(c for c in compile(source, filename, "exec").co_consts if isinstance(c, CodeType))
    if len(_codes) >= _CODES:
        _codes.clear()
    _codes[key] = code
    return code


def instantiate(
    code: CodeType, spec: HookSpec | None, env: dict[str, Any], defaults: tuple[Any, ...] | None
) -> Callable[..., Any]:
    """A function of its own from shared code. What it refers to are its globals: on 3.11 to 3.13
    a specialised global costs less than a closure's cell, which every call copies."""
    name = spec.name if spec else "adapter"
    return FunctionType(code.replace(co_name=name, co_qualname=name), env, name, defaults)


def adapter(
    function: Callable[..., Any], arguments: Arguments, params: tuple[str, ...]
) -> Callable[..., Any]:
    """A callable over all of a hook's parameters, by position, for one that takes some."""
    return forward(function, params, arguments.source(params))


def forward(
    function: Callable[..., Any],
    params: tuple[str, ...],
    arguments: str,
    spec: HookSpec | None = None,
    defaults: tuple[Any, ...] | None = None,
) -> Callable[..., Any]:
    """A function with these parameters that calls another with these arguments."""
    key = ("forward", params, arguments)
    code = _codes.get(key) or _remember(
        key,
        f"def fire({', '.join(params)}):\n    return _f({arguments})\n",
    )
    return instantiate(code, spec, {"_f": function}, defaults)


def by_scope(
    spec: HookSpec,
    passed: tuple[str, ...],
    base: Callable[..., Any],
    keys: Mapping[Any, Any],
    under: Callable[[Any], Callable[..., Any]],
) -> Callable[..., Any]:
    """Choose by the scope key of each call: the scope's own function, or the one for everybody."""
    parameter, _, attribute = (spec.scope or "").partition(".")
    scope_key = f'getattr({parameter}, "{attribute}", None)' if attribute else parameter
    arguments = ", ".join(passed)
    key = ("scope", passed, spec.scope)
    code = _codes.get(key) or _remember(
        key,
        f"def fire({arguments}):\n"
        f"    _k = {scope_key}\n"
        f"    if _k in _keys:\n"
        f"        return _under(_k)({arguments})\n"
        f"    return _base({arguments})\n",
    )
    env = {"_base": base, "_keys": keys, "_under": under, "getattr": getattr}
    return instantiate(code, spec, env, defaults_of(spec))
