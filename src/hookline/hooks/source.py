"""The source of one dispatch, written line by line from its plan."""

from __future__ import annotations

import re

from .plan import UNROLL, Bound, Plan, Shape, check_of, layout, names_of
from .reducers import CAPTURE, DENY, RAISE, SKIP, Chain, Collect, First, Notify, Patch


class Writer:
    """Writes the source of one dispatch."""

    def __init__(self, plan: Plan, bounds: list[Bound]) -> None:
        self.plan = plan
        self.bounds = bounds
        self.reducer = plan.reducer
        self.check = check_of(plan)
        self.one_class = self.check == "class" and len(plan.spec.classes or ()) == 1
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
        if self.plan.watched is None:
            if self.plan.traced:
                self.add(1, "_notes = _t.notes")
            self.body(1)
        else:
            self.recorded()
        return "\n".join(self.lines) + "\n"

    def recorded(self) -> None:
        """The same with notes of its own, which are handed over on every way out."""
        self.add(1, f"_args = ({', '.join((*self.plan.passed, ''))})")  # names are bound anew below
        self.write(1, ["_notes = []", "_began = _clock()", "try:"])
        self.body(2)
        told = "    _told(_args, _began, _notes, None, _x)"
        self.write(1, ["except BaseException as _x:", told, "    raise"])

    def body(self, depth: int) -> None:
        """All calls, one after the other, and what becomes of their results."""
        self.write(depth, self.setup())
        if self.settling:
            self.add(depth, "_moved = -1")
        for suffix, group, looped in layout(self.bounds):
            if looped:
                self.add(depth, f"for {', '.join(names_of('', group[0]))} in _run{suffix}:")
                self.block(depth + 1, "", group[0])
            else:
                self.block(depth, suffix, group[0], guard=self.guard_number(suffix))
        if self.settling:
            self.ask_guards_again(depth)
        self.write(depth, self.end())

    def setup(self) -> list[str]:
        """What comes before the first call."""
        reducer = self.reducer
        lines = list(reducer.setup())
        if isinstance(reducer, Chain) and reducer.carrier not in (None, *self.plan.passed):
            lines.append(f"{reducer.carrier} = None")  # not passed: nothing to renew
        return lines

    def end(self) -> list[str]:
        """What comes after the last call."""
        return [f"return {self.reducer.end()}"]

    def guard_number(self, suffix: str) -> int | None:
        """Which guard it is, where several must come to rest together."""
        numbers = {own: n for n, (own, _) in enumerate(self.guards)} if self.settling else {}
        return numbers.get(suffix)

    def ask_guards_again(self, depth: int) -> None:
        """A guard that judged before a later one rewrote is asked once more."""
        for number, (suffix, bound) in enumerate(self.guards[:-1]):
            self.add(depth, f"if _moved > {number}:")
            self.block(depth + 1, suffix, bound, again=True)

    def block(
        self, depth: int, number: str, bound: Bound, *, guard: int | None = None, again: bool = False
    ) -> None:
        """One call with all that belongs to it."""
        if self.plan.traced:
            is_first = self.plan.watched is not None and number == "0" and not again
            self.add(depth, f"_s = {'_began' if is_first else '_clock()'}")
        self.add(depth, "try:")
        self.call(depth + 1, number, bound.shape, self.step(guard, again), again=again)
        self.failure(depth, f"_i{number}", bound)

    def call(
        self, depth: int, number: str, shape: Shape, step: list[str], *, again: bool = False
    ) -> None:
        """One call, if its filter lets it, and what becomes of its result."""
        if shape.when is not None:
            self.add(depth, f"if _w{number}({shape.when}):")
            depth += 1
        if shape.once:
            self.add(depth, f"if _o{number}():")
            depth += 1
        impl = f"_i{number}"
        call = f"{'await ' if shape.awaits else ''}_h{number}({shape.arguments})"
        if self.plan.emits or self.plan.traced or self.reducer.every:
            self.watched(depth, impl, shape, call, step, again=again)
        else:
            self.plain(depth, impl, shape, call, step)

    def plain(self, depth: int, impl: str, shape: Shape, call: str, step: list[str]) -> None:
        """Call and reduce, with nothing on the way of a result that is as it should be."""
        if shape.awaits and not step:
            self.add(depth, call)
            return
        value = f"(_r := {call})"
        if not step:
            self.add(depth, f"if {value} is not None and not ({self.good('_r')}):")
            self.add(depth + 1, self.settle(shape), impl)
            return
        closer = [self.settle(shape)]
        closer += step if shape.awaits else ["if _r is not None:", *(f"    {line}" for line in step)]
        if shape.awaits and self.check == "nothing":
            self.add(depth, f"if {value} is not None:")
            self.write(depth + 1, step, impl)
        elif self.reducer.stops or self.reducer.folds:  # mostly None: ask that first
            self.add(depth, f"if {value} is not None:")
            self.either(depth + 1, self.good("_r"), step, "else", closer, impl)
        elif isinstance(self.reducer, Chain):  # what was handed back as it came changes nothing
            self.add(depth, f"if {value} is not {self.reducer.parameter} and _r is not None:")
            self.either(depth + 1, self.good("_r"), step, "else", closer, impl)
        else:
            self.either(depth, self.good(value), step, "elif _r is not None", closer, impl)

    def either(
        self, depth: int, test: str, then: list[str], otherwise: str, closer: list[str], impl: str
    ) -> None:
        """Two branches."""
        self.add(depth, f"if {test}:")
        self.write(depth + 1, then, impl)
        self.add(depth, f"{otherwise}:")
        self.write(depth + 1, closer, impl)

    def good(self, value: str) -> str:
        """The quick test that passes most results; the rest are looked at closely."""
        if self.check == "class":
            return f"{value}.__class__ {'is _T' if self.one_class else 'in _types'}"
        return f"_fits({value})" if self.check == "value" else f"{value}.__class__ in _plain"

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
        traced = ["_notes.append((_i, _s, _clock(), _r, None, 0))"] if plan.traced else []
        if folds and plan.traced:
            traced = [f"if _r is None: {traced[0]}", "else: _ruled(_notes, _i, _s, _v)"]
        self.add(depth, f"_r = {call}")
        if self.check != "nothing" or not shape.awaits:
            same = f" and _r is not {self.reducer.parameter}" if isinstance(self.reducer, Chain) else ""
            self.add(depth, f"if _r is not None{same} and not ({self.good('_r')}):")
            self.add(depth + 1, self.settle(shape), impl)
        early = self.reducer.stops  # what ends the dispatch is listed before it does
        if not folds:
            self.write(depth, [*traced, *(listed if early else [])], impl)
        if step and not self.reducer.every:
            self.add(depth, "if _r is not None:")
            self.write(depth + 1, step, impl)
        else:
            self.write(depth, step, impl)
        self.write(depth, [*([] if early else listed), *(traced if folds else [])], impl)

    def step(self, guard: int | None, again: bool) -> list[str]:
        """The reducer's lines, with the watch on guards that rewrite."""
        lines = list(self.reducer.step())
        if guard is None and not again:
            return lines
        if self.reducer.folds:
            if again:
                return [
                    "if (_n := _v.apply(_r, _i)) is not event:",
                    "    event = _n",
                    "    raise _unsettled(_i)",
                ]
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
        trace = ["_failed(_notes, _i, _s, _e)"] if self.plan.traced else []
        if self.plan.sync and not denies and self.plan.errors is not CAPTURE:
            self.add(depth, "except _NotAwaited as _e:")
            self.write(depth + 1, trace or ["pass"], impl)
        if self.reducer.name == "gate" and not denies:
            # A handler that answered something unreadable may have meant to block.
            self.add(depth, "except _WrongResult as _e:")
            self.write(depth + 1, [*trace, *self.policy(True)], impl)
        self.add(depth, "except Exception as _e:")
        self.write(depth + 1, [*trace, *self.policy(denies)], impl)

    def subject(self) -> str | None:
        """What a failure was about, where the hook says and the caller passed it."""
        source = self.plan.spec.match_source
        return source if source and source.partition(".")[0] in self.plan.passed else None

    def policy(self, denies: bool) -> list[str]:
        """What an error comes to."""
        reducer = self.reducer
        about = f", {self.subject()}" if self.subject() else ""
        denying, skipping = f"_deny(_e, _i{about})", f"_skip(_e, _i{about})"
        denied = ["_results.append(_denied(_e, _i))"] if self.plan.emits else []
        if denies and reducer.name == "gate":
            return [denying, "_v.fail(_e, _i)", *denied]
        if denies and isinstance(reducer, Patch):
            return [denying, *denied, "_v.withhold(_e, _i, _field, _wrap)", "return _v"]
        if denies and isinstance(reducer, Chain):
            return [denying, *denied, "return _withheld(_e, _i)"]
        if denies and not isinstance(self.plan.spec.reducer, First):
            return [skipping]
        if denies and isinstance(reducer, First):
            return [denying, *denied, "return _denial"]
        if denies:
            return [denying, "_out.append(_denial)"]
        return {
            RAISE: ["_note(_e, _i)", "raise"],
            SKIP: [skipping],
            CAPTURE: ["_out.append(_Outcome(_i.name, False, None, _e))"],
        }[self.plan.errors]

    def write(self, depth: int, lines: list[str], impl: str = "") -> None:
        """Write several lines."""
        for line in lines:
            self.add(depth, line, impl)

    def add(self, depth: int, line: str, impl: str = "") -> None:
        """Write one line; `_i` in it becomes the implementation at hand."""
        if self.plan.watched is not None and line.startswith("return "):
            told = "_told(_args, _began, _notes, _x)"
            self.write(depth, [f"_x = {line.removeprefix('return ')}", told], impl)
            line = "return _x"
        self.lines.append("    " * depth + (re.sub(r"\b_i\b", impl, line) if impl else line))


class StraightWriter(Writer):
    """Writes all calls one after the other under a single `try`.

    Who failed is told by the line on which it did; those after it then run as a dispatch of their
    own. A `try` for each would cost two instructions on every call that does not fail.
    """

    def body(self, depth: int) -> None:
        self.write(depth, self.setup())
        self.add(depth, "try:")
        lines: list[int] = []
        for suffix, (bound, *_), _ in layout(self.bounds):
            lines.append(len(self.lines) + 1)
            self.call(depth + 1, suffix, bound.shape, list(self.reducer.step()))
        self.write(depth + 1, self.end())
        self.continued(depth, f"{(*lines,)}")

    def continued(self, depth: int, lines: str) -> None:
        """What comes after a failure."""
        plan = self.plan
        if plan.errors is SKIP or plan.sync:
            about = f", {self.subject()}" if self.subject() else ""
            self.add(depth, f"except {'Exception' if plan.errors is SKIP else '_NotAwaited'} as _e:")
            self.write(depth + 1, [*self.kept(lines), f"_rest = _tails.after(_e, {lines}{about})"])
        if plan.errors is RAISE:
            self.add(depth, "except Exception as _e:")
            self.write(depth + 1, [f"_tails.blame(_e, {lines})", "raise"])
        if plan.errors is SKIP or plan.sync:
            rest = f"{'' if plan.sync else 'await '}_rest({', '.join(plan.params)})"
            self.add(depth, f"return {self.joined(rest)}")

    def kept(self, lines: str) -> list[str]:
        """What keeps the results before the failure, where they are not in a parameter."""
        return []

    def joined(self, rest: str) -> str:
        """The expression for the results before a failure and those after it."""
        return rest


class ListWriter(StraightWriter):
    """Writes a `collect` that puts each result into a variable and makes the list in one go.

    A list that grows costs more than the calls of small handlers are worth. Where one class is asked
    for, the variable that holds it says too whether all results were of it: None once one was not.
    """

    def setup(self) -> list[str]:
        return ["_fit = _T" if self.one_class else "_gap = False"]

    def plain(self, depth: int, impl: str, shape: Shape, call: str, step: list[str]) -> None:
        value = slot(impl)
        if shape.awaits and self.check == "nothing":
            self.add(depth, f"if ({value} := {call}) is None:")
            self.add(depth + 1, "_gap = True")
            return
        odd = f"{value} is not None"
        if self.one_class:
            self.add(depth, f"if ({value} := {call}).__class__ is not _fit:")
            self.add(depth + 1, "_fit = None")
            odd += f" and {value}.__class__ is not _T"
        else:
            self.add(depth, f"if not ({self.good(f'({value} := {call})')}):")
            self.add(depth + 1, "_gap = True")
        self.add(depth + 1, f"if {odd}:")
        self.add(depth + 2, self.settle(shape).replace("_r", value), impl)

    def end(self) -> list[str]:
        results = ", ".join(slot(f"_i{suffix}") for suffix, _, _ in layout(self.bounds))
        gap = "_fit is None" if self.one_class else "_gap"
        return [
            f"if {gap}: return [_r for _r in ({results},) if _r is not None]",
            f"return [{results}]",
        ]

    def kept(self, lines: str) -> list[str]:
        return [f"_out = _tails.before({lines}, locals())"]

    def joined(self, rest: str) -> str:
        return f"[*_out, *{rest}]"


def slot(impl: str) -> str:
    """The variable that holds the result of one implementation."""
    return impl.replace("_i", "_r")


def writer(plan: Plan, bounds: list[Bound]) -> Writer:
    """The writer that suits a plan."""
    watched = plan.emits or plan.traced or plan.errors not in (SKIP, RAISE)
    if watched or not 0 < len(bounds) <= UNROLL or any(b.shape.guard for b in bounds):
        return Writer(plan, bounds)
    if isinstance(plan.reducer, Notify | First | Chain):
        return StraightWriter(plan, bounds)
    plain = all(b.shape.when is None and not b.shape.once for b in bounds)
    return (ListWriter if plain and plan.reducer == Collect() else Writer)(plan, bounds)
