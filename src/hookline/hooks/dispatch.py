"""What generated dispatch functions run on: their code, their names, and what happens on a failure."""

from __future__ import annotations

import builtins
import linecache
import logging
import sys
from bisect import bisect
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

from .errors import HooklineError, MissingArgument, NotAwaited, WrongResult, error_text
from .implementation import Arguments, Implementation, awaited, discard, is_awaitable
from .observers import failed, ruled
from .reducers import HELPERS, lowest_first
from .source import UNROLL, Bound, CallShape, Plan, pieces_of, writer
from .spec import HookSpec, type_name
from .timeouts import limited
from .verdict import Denied, unsettled

log = logging.getLogger("hookline.hooks")

Fire = Callable[..., Any]

PLAIN = frozenset({bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset})
"""Classes that are not awaitable, so that most results need no closer look."""

_codes: dict[Any, CodeType] = {}
_CODES = 1024


def compile_dispatch(plan: Plan) -> Fire:
    """Return the function that runs a plan. Code is cached by shape: all that the writer looks at."""
    bounds = [bind(plan, impl) for impl in plan.implementations]
    spec = plan.spec
    key = (
        plan.params, plan.sync, plan.emits, plan.traced, plan.reducer, plan.errors, spec.check,
        spec.reducer, spec.match_source, len(spec.classes or ()) == 1, tuple(b.shape for b in bounds),
    )  # fmt: skip
    code = _codes.get(key) or _compile(key, writer(plan, bounds).source())
    return _function(code, spec, _names(plan, bounds), plan.params == plan.passed)


def readable_source(plan: Plan) -> str:
    """Return the source of the function that runs a plan, with the implementations named."""
    bounds = [bind(plan, impl) for impl in plan.implementations]
    name = "".join(c if c.isalnum() else "_" for c in plan.spec.name)
    return writer(plan, bounds, readable=True).source(name)


def bind(plan: Plan, impl: Implementation) -> Bound:
    """Decide how an implementation is called: with which arguments, or what stands in for it."""
    arguments, when, call = impl.arguments, impl.when, impl.function
    awaits = impl.is_async and not plan.sync
    missing = arguments.missing(plan.passed)
    if when is not None and (unknown := impl.when_arguments.missing(plan.passed)):
        missing, when = unknown, None  # whether it applies is unknown, which is a failure too
    if missing:
        arguments, awaits, call = Arguments(), False, refusing(impl, missing)
    elif impl.is_async and plan.sync:
        arguments, call = Arguments(), unawaitable(impl)
    elif impl.timeout is not None:
        call, awaits = limited(impl, sync=plan.sync), not plan.sync
    shape = CallShape(
        arguments.source(plan.passed),
        awaits,
        impl.when_arguments.source(plan.passed) if when is not None else None,
        impl.take is not None,
        impl.guard,
    )
    return Bound(shape, impl, call, when)


def _names(plan: Plan, bounds: list[Bound]) -> dict[str, Any]:
    """Every name that the generated source refers to."""
    spec, classes, resumption = plan.spec, plan.spec.classes or (), Resumption(plan)
    names: dict[str, Any] = {
        "__builtins__": _COMMON,
        "_T": classes[0] if len(classes) == 1 else None,
        "_types": frozenset(classes),
        "_fits": spec.accepts,
        "_settle": settle_sync if plan.sync else settle,
        "_denial": spec.reducer.denial(spec),
        "_lowest_first": lowest_first(spec),
        "_listener": plan.listener,
        "_resume": resumption.resume,
        "_blame": resumption.blame,
        **plan.reducer.names,
    }
    if len(bounds) > UNROLL:
        for piece in pieces_of(bounds):
            if piece.looped:
                names[f"_run{piece.suffix}"] = tuple(tuple(b.names().values()) for b in piece.bounds)
            else:
                names.update(piece.bounds[0].names(piece.suffix))
        return names
    for number, bound in enumerate(bounds):
        names[f"_h{number}"], names[f"_i{number}"] = bound.call, bound.impl
        if bound.shape.when is not None:
            names[f"_w{number}"] = bound.when
        if bound.shape.once:
            names[f"_o{number}"] = bound.impl.take
    return names


# --- code -------------------------------------------------------------------------------------


def _compile(key: Any, source: str) -> CodeType:
    """Compile the function in a source and keep its code."""
    filename = f"<hookline dispatch {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    code = next(c for c in compile(source, filename, "exec").co_consts if isinstance(c, CodeType))
    if len(_codes) >= _CODES:
        _codes.clear()
    _codes[key] = code
    return code


def _function(
    code: CodeType, spec: HookSpec | None, names: dict[str, Any], defaults: bool = False
) -> Fire:
    """Make a function from shared code; an event's context may be left out.

    Each function has a copy of the code, because the interpreter specialises code where it runs. The
    names are globals: on 3.11 to 3.13 a specialised global is faster than a closure's cell.
    """
    name = spec.name if spec else "adapter"
    default = (None,) if defaults and spec is not None and spec.event is not None else None
    return FunctionType(code.replace(co_name=name, co_qualname=name), names, name, default)


def forward(
    function: Fire, params: tuple[str, ...], arguments: str, spec: HookSpec | None = None
) -> Fire:
    """Return a function with these parameters that calls another with these arguments."""
    key = ("forward", params, arguments)
    source = f"def fire({', '.join(params)}):\n    return _f({arguments})\n"
    return _function(_codes.get(key) or _compile(key, source), spec, {"_f": function}, True)


def by_names(function: Fire, names: tuple[str, ...], arguments: str, other: Fire) -> Fire:
    """Return a function that takes a dict with these names; one with other names goes to `other`."""
    key = ("names", names, arguments)
    loads = "; ".join(f'{name} = _kw["{name}"]' for name in names)
    source = (
        f"def fire(_kw):\n"
        f"    try: {loads or 'pass'}\n"
        f"    except KeyError: return _other(_kw)\n"
        f"    return _f({arguments}) if len(_kw) == {len(names)} else _other(_kw)\n"
    )
    env = {"_f": function, "_other": other, "__builtins__": builtins}
    return _function(_codes.get(key) or _compile(key, source), None, env)


def adapter(function: Fire, arguments: Arguments, params: tuple[str, ...]) -> Fire:
    """Return a function with all of a hook's parameters for one that takes some of them."""
    return forward(function, params, arguments.source(params))


def by_scope(
    spec: HookSpec,
    passed: tuple[str, ...],
    base: Fire,
    keys: Mapping[Any, Any],
    nested: Mapping[Any, Any],
    under: Callable[[Any], Fire],
) -> Fire:
    """Return a function that uses the scope key of each call: `under(key)` in a scope, else `base`."""
    parameter, attribute = spec.scope_source
    scope_key = f'getattr({parameter}, "{attribute}", None)' if attribute else parameter
    arguments = ", ".join(passed)
    key = ("scope", passed, spec.scope)
    source = (
        f"def fire({arguments}):\n"
        f"    _k = {scope_key}\n"
        f"    if _k in _keys or _k in _nested:\n"
        f"        return _under(_k)({arguments})\n"
        f"    return _base({arguments})\n"
    )
    names = {"_base": base, "_keys": keys, "_nested": nested, "_under": under, "getattr": getattr}
    return _function(_codes.get(key) or _compile(key, source), spec, names, True)


# --- results ----------------------------------------------------------------------------------


async def settle(value: Any, impl: Implementation) -> Any:
    """Await a result if it must be awaited, and check it."""
    return check(await awaited(value), impl)


def settle_sync(value: Any, impl: Implementation) -> Any:
    """Check a result of a synchronous call, which cannot use an awaitable."""
    if is_awaitable(value):
        discard(value)
        raise not_awaited(impl)
    return check(value, impl)


def check(value: Any, impl: Implementation) -> Any:
    """Return a result, or raise if it is of the wrong type."""
    spec = impl.spec
    if value is not None and spec.reducer.checked and not spec.accepts(value):
        raise wrong_result(value, impl)
    return value


def wrong_result(value: Any, impl: Implementation) -> WrongResult:
    """Return the error for a result of the wrong type."""
    spec = impl.spec
    got = repr(value) if spec.check == "value" else type(value).__name__
    return WrongResult(
        f"{impl.name} returned {got} on hook {spec.name!r}, "
        f"which takes {type_name(spec.result)} or None ({impl.location})"
    )


# --- failures ---------------------------------------------------------------------------------


class Resumption:
    """How a dispatch with one `try` around all calls goes on after a failure."""

    __slots__ = ("_compiled", "_plan")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._compiled: dict[int, Fire] = {}

    def resume(self, error: Exception, places: tuple[int, ...], subject: object = None) -> Fire:
        """Log the error, and return the function that runs the implementations after the failed one."""
        plan, number = self._plan, failing(places)
        if not isinstance(error, NotAwaited) or not plan.sync:
            skip(error, plan.implementations[number], subject)
        rest = self._compiled.get(number)
        if rest is None:
            rest = self._compiled[number] = compile_dispatch(plan.after(number))
        return rest

    def blame(self, error: Exception, places: tuple[int, ...]) -> None:
        """Name the hook and the plugin on an error that the caller will see."""
        note(error, self._plan.implementations[failing(places)])


def results_before(places: tuple[int, ...], variables: dict[str, Any], every: bool) -> list[Any]:
    """Return the results of the calls before the failed one, which are in variables."""
    results = (variables[f"_r{number}"] for number in range(failing(places)))
    return [result for result in results if every or result is not None]


def failing(places: tuple[int, ...]) -> int:
    """Return which call raised, by the line on which the error left the dispatch function."""
    traceback = sys.exc_info()[2]
    assert traceback is not None
    return bisect(places, traceback.tb_lineno) - 1


def unawaitable(impl: Implementation) -> Fire:
    """Stand in for an async implementation in a synchronous call."""

    def call() -> Any:
        raise not_awaited(impl)

    return call


def refusing(impl: Implementation, missing: list[str]) -> Fire:
    """Stand in for an implementation that needs arguments which the caller did not pass."""

    def call(*args: Any) -> Any:
        raise MissingArgument(
            f"{impl.name} needs {', '.join(map(repr, missing))}, "
            f"which the call of hook {impl.spec.name!r} did not pass"
        )

    return call


def not_awaited(impl: Implementation) -> NotAwaited:
    """Log that a synchronous call cannot use an awaitable, and return the error that says so."""
    text = f"hook.async_not_supported hook={impl.spec.name} adapter={impl.name}"
    log.warning("%s", text)
    return NotAwaited(text)


def note(error: BaseException, impl: Implementation) -> None:
    """Name the hook and the plugin on an error that the caller will see."""
    error.add_note(f"in {impl.name} on hook {impl.spec.name!r} ({impl.location})")
    if isinstance(error, HooklineError) and error.hook is None:
        error.hook, error.plugin = impl.spec.name, impl.name


def log_failure(what: str, error: Exception, impl: Implementation, subject: object = None) -> None:
    """Log the error of an implementation: `hook.tool_call_failed tool_name=shell adapter=acme: ...`."""
    about = f" {impl.spec.match}={subject}" if subject is not None else ""
    name, text = impl.spec.name, error_text(error)
    log.error("hook.%s_%s%s adapter=%s: %s", name, what, about, impl.name, text, exc_info=error)


skip = partial(log_failure, "failed")
deny = partial(log_failure, "denied")


def denied(error: Exception, impl: Implementation) -> Denied:
    """Return the entry in a list of results for a guard that failed."""
    return Denied(f"{impl.name} failed: {error_text(error)}")


_COMMON: dict[str, Any] = {
    **vars(builtins), **HELPERS,
    "_check": check, "_note": note, "_skip": skip, "_deny": deny, "_denied": denied,
    "_unsettled": unsettled, "_plain": PLAIN,
    "_clock": perf_counter, "_NotAwaited": NotAwaited, "_WrongResult": WrongResult,
    "_ruled": ruled, "_failed": failed, "_results_before": results_before,
}  # fmt: skip
"""What every generated function refers to; it takes the place of the builtins in their globals."""
