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
from collections.abc import Callable
from time import perf_counter
from typing import Any

from .awaiting import awaited, discard, is_awaitable
from .code import defaults_of, instantiate, known, remember
from .errors import NotAwaited
from .failures import check, denied, deny, not_awaited, note, skip
from .implementation import Implementation
from .plan import Bound, Plan, bind, check_of, layout, names_of
from .reducers import First, Outcome, Patch
from .source import writer
from .trace import failed, ruled
from .verdict import Verdict, same, unsettled, withheld_text

PLAIN = frozenset({bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset})
"""Classes that are known not to be awaitable, so that most results need no closer look."""


def compile_dispatch(plan: Plan) -> Callable[..., Any]:
    """Make the function that runs a plan."""
    bounds = [bind(plan, impl) for impl in plan.implementations]
    spec = plan.spec
    key = (  # everything that the writer looks at
        plan.params, plan.sync, plan.emits, plan.traced, plan.reducer, plan.errors, check_of(plan),
        spec.reducer, spec.match_source, len(spec.classes or ()) == 1, tuple(b.shape for b in bounds),
    )  # fmt: skip
    code = known(key)
    if code is None:
        code = remember(key, writer(plan, bounds).source())
    defaults = defaults_of(plan.spec) if plan.params == plan.passed else None
    return instantiate(code, plan.spec, environment(plan, bounds), defaults)


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
    if plan.watched is not None:
        env["_told"] = plan.watched.told
    if isinstance(reducer, Patch):
        env["_field"], env["_wrap"] = reducer.field, reducer.withheld
    env["_denial"] = spec.reducer.denial(spec) if isinstance(spec.reducer, First) else None
    return env


def settling(plan: Plan) -> Callable[[Any, Implementation], Any]:
    """What happens to a result that does not look right at once: it is awaited, or refused."""
    checked = check_of(plan) != "nothing"

    def usable(value: Any, impl: Implementation) -> Any:
        return check(value, impl) if checked else value

    async def settle(value: Any, impl: Implementation) -> Any:
        return usable(await awaited(value), impl)

    def settle_sync(value: Any, impl: Implementation) -> Any:
        if is_awaitable(value):
            discard(value)
            raise not_awaited(impl)
        return usable(value, impl)

    return settle_sync if plan.sync else settle


_COMMON: dict[str, Any] = {
    "__builtins__": builtins, "Exception": Exception,
    "_check": check, "_note": note, "_skip": skip, "_deny": deny,
    "_denied": denied, "_withheld": withheld_text, "_unsettled": unsettled, "_same": same,
    "_plain": PLAIN, "_clock": perf_counter, "_NotAwaited": NotAwaited, "_Outcome": Outcome,
    "_Verdict": Verdict, "_ruled": ruled, "_failed": failed,
}  # fmt: skip
