"""Compiled dispatch: one function per hook, written for exactly what is attached to it.

On the first call after a change a hook gets a function made from source: the calls unrolled, each
with the arguments it takes, the reducer's lines and the error policy's lines around it. What is
known when it is built (who is async, who has a filter, what a result must be) is never asked
during a call. Code objects are cached by shape; each function gets a copy of its own, because the
interpreter specialises code where it runs.

For two handlers on a `first` hook the source is, in essence:

    async def fire(message, session_id):
        try:
            if (_r := await _h0(message)) is not None:
                if _r.__class__ is not _T: _check(_r, _i0)
                return _r
            if (_r := _h1(session_id)) is not None:
                ...
            return None
        except Exception as _e:
            _rest = _tails.after(_e, (3, 6))
        return await _rest(message, session_id)

Which of them failed is told by the line on which it did (here 3 and 6 are where each begins); those
after it run as a dispatch of their own, made when first needed. Where more is to be kept from call to
call (verdicts, guards, a trace), each call has a `try` of its own.
"""

from __future__ import annotations

import builtins
import sys
from bisect import bisect
from collections.abc import Callable
from time import perf_counter
from typing import Any

from .code import defaults_of, instantiate, known, remember
from .errors import NotAwaited, WrongResult
from .failures import check, denied, deny, not_awaited, note, skip
from .implementation import Implementation, awaited, discard, is_awaitable
from .observers import failed, ruled
from .plan import Bound, Plan, bind, check_of, layout, names_of
from .reducers import First, Outcome, Patch
from .source import writer
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
    env["_tails"] = Tails(plan)
    if plan.watched is not None:
        env["_told"] = plan.watched.told
    if isinstance(reducer, Patch):
        env["_field"], env["_wrap"] = reducer.field, reducer.withheld
    env["_denial"] = spec.reducer.denial(spec) if isinstance(spec.reducer, First) else None
    return env


class Tails:
    """What goes on where one of several under a common `try` failed."""

    __slots__ = ("_made", "_plan")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: dict[int, Callable[..., Any]] = {}

    def after(
        self, error: Exception, lines: tuple[int, ...], subject: object = None
    ) -> Callable[..., Any]:
        """Tell of the error that is left out, and give the function that runs those after it."""
        plan, number = self._plan, failing(lines)
        if not isinstance(error, NotAwaited) or not plan.sync:
            skip(error, plan.implementations[number], subject)
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = compile_dispatch(plan.after(number))
        return made

    def blame(self, error: Exception, lines: tuple[int, ...]) -> None:
        """Name hook and plugin on the error that goes on to the caller."""
        note(error, self._plan.implementations[failing(lines)])

    def before(self, lines: tuple[int, ...], names: dict[str, Any]) -> list[Any]:
        """The results of those before the failure, from the variables that hold them."""
        results = (names[f"_r{number}"] for number in range(failing(lines)))
        return [result for result in results if result is not None]


def failing(lines: tuple[int, ...]) -> int:
    """Which call the error being handled came from, by the line it left the dispatch on."""
    traceback = sys.exc_info()[2]
    assert traceback is not None
    return bisect(lines, traceback.tb_lineno) - 1


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
    "_WrongResult": WrongResult,
    "_Verdict": Verdict, "_ruled": ruled, "_failed": failed,
}  # fmt: skip
