"""The code generator: writes the function that dispatches one hook.

On the first call after a change, a hook gets a function generated for exactly what is attached to it:
the calls written out, each with the arguments its implementation takes, with the reducer's lines and
the error policy's lines around it. Everything known at that point (which implementations are async,
which have a filter, what class a result must have) is never tested during a call. `hookline hooks NAME
--source` prints it. For two handlers on a `first` hook:

    async def resolve_session(message):
        try:
            # acme.route (acme/plugin.py:12)
            if (_r := await _h0(message)) is not None:
                if _r.__class__ is not _T: _check(_r, _i0)
                return _r
            # builtin (hookline/runtime/builtin.py:54)
            if (_r := _h1(message)) is not None:
                ...
            return None
        except Exception as _e:
            _rest = _resume(_e, (3, 6))
        return await _rest(message)

There are three layouts. A `try` around each call is the general one. A `try` costs two instructions, so
when nothing but parameters has to survive a failure, one `try` is written around all calls: the line
number of the error tells which call failed, and the calls after it run as a dispatch of their own,
compiled when first needed. The third does the same for `collect`, with a variable for each result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from .reducers import CAPTURE, DENY, RAISE, SKIP, Errors, Reducer

if TYPE_CHECKING:
    from .implementation import Implementation
    from .observers import Listener
    from .spec import HookSpec

UNROLL = 64
"""The number of calls that are written out; with more, calls of equal shape run in a loop."""

Lines = list[str]


class Plan(NamedTuple):
    """What decides how one dispatch function works."""

    spec: HookSpec
    implementations: tuple[Implementation, ...]
    reducer: Reducer
    errors: Errors
    sync: bool
    passed: tuple[str, ...]
    """The parameters that the caller passes, in the hook's order."""
    emits: bool = False
    """Each result is also appended to the list passed as `_results`."""
    traced: bool = False
    """Each call is also noted in the list `_notes`."""
    listener: Listener | None = None
    """Called with the notes at the end; if None, `_notes` is a parameter, for an outer layer."""

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters of the function, hidden ones last."""
        hidden = (("_results", self.emits), ("_notes", self.traced and self.listener is None))
        return (*self.passed, *(name for name, wanted in hidden if wanted))

    @property
    def quiet(self) -> bool:
        """Whether most results are None, so that this is tested first."""
        return any(r.stops or r.folds or not r.checked for r in (self.reducer, self.spec.reducer))

    @property
    def subject(self) -> str | None:
        """The expression for what a failure was about, if it is declared and passed."""
        source = self.spec.match_source
        return source if source and source.partition(".")[0] in self.passed else None

    def denies(self, guard: bool) -> bool:
        """Whether a failure counts as a deny. Called in another way, there may be nothing to deny."""
        if not guard and self.errors is not DENY:
            return False
        own = self.reducer is self.spec.reducer
        return own or self.spec.reducer.denial(self.spec) is not None

    def after(self, number: int) -> Plan:
        """The same plan for the implementations after one of them."""
        return self._replace(implementations=self.implementations[number + 1 :])


class CallShape(NamedTuple):
    """What the source of one call depends on."""

    arguments: str
    awaits: bool
    when: str | None
    once: bool
    guard: bool


class Bound(NamedTuple):
    """One implementation as the generated code sees it."""

    shape: CallShape
    impl: Implementation
    call: Callable[..., Any]
    when: Callable[..., Any] | None

    def names(self, suffix: str = "") -> dict[str, Any]:
        """The names of this call in the generated source; in a loop they are the loop's variables."""
        names: dict[str, Any] = {f"_h{suffix}": self.call, f"_i{suffix}": self.impl}
        if self.when is not None:
            names[f"_w{suffix}"] = self.when
        if self.impl.take is not None:
            names[f"_o{suffix}"] = self.impl.take
        return names


class Piece(NamedTuple):
    """A part of the source: one call, or a loop over calls of the same shape."""

    suffix: str
    bounds: list[Bound]
    looped: bool


def pieces_of(bounds: Sequence[Bound]) -> list[Piece]:
    """Divide the calls into the parts of the source."""
    if len(bounds) <= UNROLL:
        return [Piece(str(n), [bound], False) for n, bound in enumerate(bounds)]
    groups: list[tuple[list[Bound], bool]] = []
    for shape, group in groupby(bounds, key=lambda b: b.shape):
        alike = list(group)
        groups += [([b], False) for b in alike] if shape.guard else [(alike, True)]
    return [Piece(str(n), group, looped) for n, (group, looped) in enumerate(groups)]


class Writer:
    """Writes a dispatch function with a `try` around each call.

    In the lines of a call, `§` stands for the number of the implementation.
    """

    result = "_r"
    """The variable that holds a result."""

    def __init__(self, plan: Plan, bounds: Sequence[Bound], *, readable: bool = False) -> None:
        self.plan = plan
        self.reducer = plan.reducer
        self.start, self.add, self.fail = (
            re.sub(r"\b_i\b", "_i§", lines).splitlines()
            for lines in (plan.reducer.start, plan.reducer.add, plan.reducer.fail)
        )
        self.check, self.quiet = plan.spec.check, plan.quiet
        self.one_class = self.check == "class" and len(plan.spec.classes or ()) == 1
        self.noting = plan.emits or plan.traced or plan.reducer.every
        self.pieces = pieces_of(bounds)
        self.readable = readable
        guards = [piece for piece in self.pieces if piece.bounds[0].impl.guard]
        self.guards = guards if plan.reducer.guarded and len(guards) > 1 else []
        """Guards that are asked again if a later one rewrites what they judged."""

    def source(self, name: str = "fire") -> str:
        """Return the function; the names it refers to are the globals it will be given."""
        if self.reducer.renews not in (None, *self.plan.passed):
            self.start.append(f"{self.reducer.renews} = None")
        body = self.body()
        if self.plan.listener is not None:
            body = self.recorded(body)
        keyword = "def" if self.plan.sync else "async def"
        head = f"{keyword} {name}({', '.join(self.plan.params)}):"
        return "\n".join([head, *indented(body)]) + "\n"

    def body(self) -> Lines:
        """All calls, one after the other."""
        lines = [*self.start, *(["_moved = -1"] if self.guards else [])]
        for piece in self.pieces:
            if piece.looped:
                names = ", ".join(piece.bounds[0].names())
                lines += [f"for {names} in _run{piece.suffix}:", *indented(self.attempt(piece))]
            else:
                lines += self.attempt(piece)
        for number, piece in enumerate(self.guards[:-1]):
            lines += [f"if _moved > {number}:", *indented(self.attempt(piece, again=True))]
        return [*lines, f"return {self.reducer.end}"]

    def attempt(self, piece: Piece, *, again: bool = False) -> Lines:
        """One call with its `try`."""
        shape = piece.bounds[0].shape
        lines = ["try:", *indented(self.call(shape, self.step(piece, again), again))]
        lines += self.failure(shape.guard)
        if self.plan.traced:
            starts = self.plan.listener is not None and piece is self.pieces[0] and not again
            lines.insert(0, f"_s = {'_began' if starts else '_clock()'}")
        return [*self.comment(piece), *numbered(lines, "" if piece.looped else piece.suffix)]

    def comment(self, piece: Piece) -> Lines:
        """Who is called, where people read the source."""
        return [f"# {bound.impl.place}" for bound in piece.bounds] if self.readable else []

    def step(self, piece: Piece, again: bool) -> Lines:
        """The reducer's lines for one result, and for a guard, whether it rewrote what is judged."""
        if piece not in self.guards:
            return self.add
        then = "raise _unsettled(_i§)" if again else f"_moved = {self.guards.index(piece)}"
        before = f"_before = {self.reducer.carries}"
        return [before, *self.add, f"if {self.reducer.rewritten}: {then}"]

    def call(self, shape: CallShape, step: Lines, again: bool = False) -> Lines:
        """One call, if its filter matches, and the reducer's lines for its result."""
        call = f"{'await ' if shape.awaits else ''}_h§({shape.arguments})"
        lines = self.noted(shape, call, step, again) if self.noting else self.plain(shape, call, step)
        if shape.once:
            lines = ["if _o§():", *indented(lines)]
        if shape.when is not None:
            lines = [f"if _w§({shape.when}):", *indented(lines)]
        return lines

    def plain(self, shape: CallShape, call: str, step: Lines) -> Lines:
        """Call and reduce; a result of the expected class takes the shortest way."""
        value = f"(_r := {call})"
        if not step:
            odd = f"if {value} is not None and not ({self.expected('_r')}):"
            return [call] if shape.awaits else [odd, f"    {self.settle(shape)}"]
        if shape.awaits and not self.check:
            return [f"if {value} is not None:", *indented(step)]
        unsure = [self.settle(shape)]
        unsure += step if shape.awaits else ["if _r is not None:", *indented(step)]
        if self.quiet:
            some = f"if {value} is not None:"
        elif self.reducer.replaces:  # most results are the value that was passed
            some = f"if {value} is not {self.reducer.carries} and _r is not None:"
        else:
            return either(self.expected(value), step, "elif _r is not None:", unsure)
        return [some, *indented(either(self.expected("_r"), step, "else:", unsure))]

    def noted(self, shape: CallShape, call: str, step: Lines, again: bool) -> Lines:
        """Call and reduce where every result counts, None too: kept, listed or traced."""
        plan, reducer = self.plan, self.reducer
        listed = ["_results.append(_r)"] if plan.emits else []
        if again:
            listed = [f"if _r is not None: {line}" for line in listed]
        note = ["_notes.append((_i§, _s, _clock(), _r, None, 0))"] if plan.traced else []
        lines = [f"_r = {call}"]
        if self.check or not shape.awaits:
            same = f" and _r is not {reducer.carries}" if reducer.replaces else ""
            odd = f"if _r is not None{same} and not ({self.expected('_r')}):"
            lines += [odd, f"    {self.settle(shape)}"]
        if step and not reducer.every:
            step = ["if _r is not None:", *indented(step)]
        if reducer.folds and note:
            note = [f"if _r is None: {note[0]}", "else: _ruled(_notes, _i§, _s, _v)"]
            return [*lines, *step, *listed, *note]
        return [*lines, *note, *listed, *step] if reducer.stops else [*lines, *note, *step, *listed]

    def expected(self, value: str) -> str:
        """The quick test that most results pass; `settle` handles the others."""
        if self.check == "class":
            return f"{value}.__class__ {'is _T' if self.one_class else 'in _types'}"
        return f"_fits({value})" if self.check else f"{value}.__class__ in _plain"

    def settle(self, shape: CallShape) -> str:
        """Await what must be awaited, and refuse a result of the wrong type."""
        if shape.awaits:
            return f"_check({self.result}, _i§)"
        return f"{self.result} = {'' if self.plan.sync else 'await '}_settle({self.result}, _i§)"

    def failure(self, guard: bool) -> Lines:
        """What happens when the call raises: the error policy's lines."""
        plan, lines = self.plan, list[str]()
        noted = ["_failed(_notes, _i§, _s, _e)"] if plan.traced else []
        strict = guard or plan.errors is DENY
        if plan.sync and not strict and plan.errors is not CAPTURE:
            lines += ["except _NotAwaited as _e:", *indented(noted or ["pass"])]
        if self.reducer.decides and not strict:  # the handler may have meant to block
            lines += ["except _WrongResult as _e:", *indented([*noted, *self.deny()])]
        policy = self.policy(guard)
        return [*lines, "except Exception as _e:", *indented([*noted, *policy])]

    def policy(self, guard: bool) -> Lines:
        """What an exception leads to."""
        errors = self.plan.errors
        if self.plan.denies(guard):
            return self.deny()
        if guard or errors in (SKIP, DENY):
            return [f"_skip(_e, _i§{self.about()})"]
        return ["_note(_e, _i§)", "raise"] if errors is RAISE else self.fail

    def deny(self) -> Lines:
        """The lines for a failure that counts as a deny."""
        listed = ["_results.append(_denied(_e, _i§))"] if self.plan.emits else []
        return [f"_deny(_e, _i§{self.about()})", *listed, *self.fail]

    def about(self) -> str:
        """The further argument that says what a failure was about."""
        return f", {self.plan.subject}" if self.plan.subject else ""

    def recorded(self, body: Lines) -> Lines:
        """The same with notes of its own, which are handed over on every way out."""
        return [
            f"_args = ({', '.join((*self.plan.passed, ''))})",  # parameters are assigned to below
            *("_notes = []", "_began = _clock()", "try:"),
            *indented(way for line in body for way in reporting(line)),
            "except BaseException as _x:",
            *indented(["_listener(_args, _began, _notes, None, _x)", "raise"]),
        ]


class StraightWriter(Writer):
    """Writes one `try` around all calls; a failure resumes after the call that failed."""

    listed = False
    """Whether results are in variables, so that those before a failure must be kept."""

    def body(self) -> Lines:
        lines = [*self.start, "try:"]
        places: list[int] = []
        for piece in self.pieces:
            places.append(len(lines) + 2)  # the head is line 1
            call = numbered(self.call(piece.bounds[0].shape, self.add), piece.suffix)
            lines += indented([*self.comment(piece), *call])
        return [*lines, *indented(self.finish()), *self.resumed((*places,))]

    def finish(self) -> Lines:
        """The lines after the last call."""
        return [f"return {self.reducer.end}"]

    def resumed(self, places: tuple[int, ...]) -> Lines:
        """The lines after a failure: the places are the lines where each call begins."""
        plan, lines = self.plan, list[str]()
        resumes = plan.errors is SKIP or plan.sync
        if resumes:
            kept = f"_out = _results_before({places}, locals(), {self.reducer.every})"
            rest = f"_rest = _resume(_e, {places}{self.about()})"
            caught = "Exception" if plan.errors is SKIP else "_NotAwaited"
            lines += [f"except {caught} as _e:", *indented([kept, rest] if self.listed else [rest])]
        if plan.errors is RAISE:
            lines += ["except Exception as _e:", f"    _blame(_e, {places})", "    raise"]
        if resumes:
            rest = f"{'' if plan.sync else 'await '}_rest({', '.join(plan.params)})"
            lines.append(f"return [*_out, *{rest}]" if self.listed else f"return {rest}")
        return lines


class ListWriter(StraightWriter):
    """Writes a `collect` with a variable for each result; the list is made at the end.

    Appending to a list costs more than a small handler. If results must be of one class, `_fit` holds
    that class, and None as soon as a result is not of it; otherwise `_gap` says so.
    """

    listed = True
    result = "_r§"

    def __init__(self, plan: Plan, bounds: Sequence[Bound], *, readable: bool = False) -> None:
        super().__init__(plan, bounds, readable=readable)
        self.start = ["_fit = _T" if self.one_class else "_gap = False"]
        self.noting = False

    def plain(self, shape: CallShape, call: str, step: Lines) -> Lines:
        result, value, settle = self.result, f"({self.result} := {call})", self.settle(shape)
        if shape.awaits and not self.check:
            return [f"if {value} is None:", "    _gap = True"]
        if self.reducer.every:
            return [f"if {value} is not None and not ({self.expected(result)}):", f"    {settle}"]
        if self.one_class:
            wrong = f"{result} is not None and {result}.__class__ is not _T"
            lines = [f"if {value}.__class__ is not _fit:", "    _fit = None"]
        else:
            wrong = f"{result} is not None"
            lines = [f"if not ({self.expected(value)}):", "    _gap = True"]
        return [*lines, f"    if {wrong}:", f"        {settle}"]

    def finish(self) -> Lines:
        results = ", ".join(f"_r{piece.suffix}" for piece in self.pieces)
        gap = "_fit is None" if self.one_class else "_gap"
        some = f"if {gap}: return [_r for _r in ({results},) if _r is not None]"
        return [*([] if self.reducer.every else [some]), f"return [{results}]"]


def writer(plan: Plan, bounds: Sequence[Bound], *, readable: bool = False) -> Writer:
    """Return the writer of the layout that suits a plan."""
    noted = plan.emits or plan.traced or plan.errors not in (SKIP, RAISE)
    layout, shapes = Writer, [bound.shape for bound in bounds]
    if not noted and 0 < len(shapes) <= UNROLL and not any(shape.guard for shape in shapes):
        if plan.reducer.state == "parameters":
            layout = StraightWriter
        elif plan.reducer.state == "list" and all(s.when is None and not s.once for s in shapes):
            layout = ListWriter if plan.reducer.every or not plan.quiet else Writer
    return layout(plan, bounds, readable=readable)


def indented(lines: Iterable[str]) -> Lines:
    """The lines one level deeper."""
    return [f"    {line}" for line in lines]


def either(test: str, then: Lines, otherwise: str, unsure: Lines) -> Lines:
    """Two branches."""
    return [f"if {test}:", *indented(then), otherwise, *indented(unsure)]


def numbered(lines: Lines, suffix: str) -> Lines:
    """The lines of one call: `_h§`, its implementation, becomes `_h3`."""
    return [line.replace("§", suffix) for line in lines]


def reporting(line: str) -> Lines:
    """The line, or if it returns, the lines that tell the observers before it does."""
    code = line.lstrip()
    if not code.startswith("return "):
        return [line]
    value, listener = code.removeprefix("return "), "_listener(_args, _began, _notes, _x)"
    return [line.replace(code, each) for each in (f"_x = {value}", listener, "return _x")]
