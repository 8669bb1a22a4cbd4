"""The compiled kernel and the naive interpreter agree on every valid kind of hook."""

import asyncio
import itertools
import logging
import re
import types
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hookline.hooks as hl
from hookline.hooks import DENY, NEWEST, OLDEST, RAISE, SKIP, Decision, HookSpec, Order, Verdict

from ..effort import EFFORT
from ..tables import each_row
from .reference import Dispatch, finish

pytestmark = pytest.mark.slow

WRONG = 1j
"""Of no result type that is checked."""


@dataclass(slots=True)
class Happened:
    type: Literal["happened"] = field(default="happened", init=False)
    x: Any = "s"
    y: str = "alpha"


@dataclass(frozen=True)
class Box:
    x: Any


@dataclass(frozen=True)
class Item:
    key: Any


@dataclass(frozen=True)
class Rules(hl.EventResult):
    """A result that patches, supplies, decides, or cannot say what it means."""

    x: str | None = None
    y: str | None = None
    label: str | None = None
    decision: Decision = Decision.ALLOW
    reason: str | None = None
    broken: str = ""

    def verdict(self) -> hl.Ruling:
        if self.broken == "raises":
            raise LookupError("no verdict")
        if self.broken == "wrong":
            return "allow"  # type: ignore[return-value]
        return hl.Ruling(self.decision, self.reason, self.set_fields("decision", "reason", "broken"))


class Boom(Exception):
    pass


ERRORS = (Boom("no"), Boom())
EXITS = (asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1))


# --- every combination of reducer, errors, order and mode -------------------------------------

FORMS = {
    "first": (hl.first, hl.first(deny="no")),
    "collect": (hl.collect, hl.collect(keep_none=True)),
    "flatten": (hl.flatten, hl.flatten(unique="key"), hl.flatten(single=True)),
    "merge": (hl.merge, hl.merge(deep=True), hl.merge(into="x"), hl.merge(deep=True, into="x")),
    "join": (hl.join, hl.join("+")),
    "chain": (hl.chain("x"), hl.chain("x", "box")),
    "patch": (hl.patch, hl.patch("x"), hl.patch("x", lambda text: [text])),
    "gate": (hl.gate, hl.gate("x")),
    "notify": (hl.notify,),
    "outcomes": (hl.outcomes,),
    "around": (hl.around, hl.around(passing="x")),
}
LEGAL = {
    "first": (RAISE, SKIP, DENY),
    "gate": (SKIP, DENY),
    "outcomes": (hl.CAPTURE,),
    "around": (RAISE,),
}
RESULTS = {
    "flatten": (list, list[Any]),
    "merge": (dict, dict[str, Any]),
    "join": (str,),
    "patch": (Rules,),
    "gate": (Rules,),
    "notify": (None, Any, str),
    "chain": (str, Any, int | str, Literal["v", "no", "s"], None),
}
PLAIN = (str, Any, float, int | str, Literal["v", "no", "s"], None)
VERDICTS = ("gate", "patch")


def declare(reducer, errors, order, sync, result, as_event=False) -> HookSpec:
    """A hook with these properties, and the parameters that every kind needs."""
    if as_event:
        return HookSpec(
            "happened", ("event", "ctx"), reducer, order, errors, result, sync,
            scope="ctx.session_id", match="y", event=Happened,
        )  # fmt: skip

    def happen(self, x, y, box, key): ...
    def happen_around(self, x, y, box, key, call_next): ...

    function = happen_around if reducer.name == "around" else happen
    function.__name__ = "happen"
    function.__annotations__["return"] = result
    hl.hookspec(reducer, order=order, errors=errors, sync=sync, scope="key", match="y")(function)
    return function.__hookspec__


def results_of(reducer, errors) -> tuple[Any, ...]:
    """The result types that suit."""
    if reducer.name != "first":
        return RESULTS.get(reducer.name, PLAIN)
    if reducer.deny is not None:
        return tuple(result for result in PLAIN if result is not float)
    return (bool,) if errors is DENY else (*PLAIN, bool, bool)


@each_row("kind, errors", itertools.product(FORMS, hl.Errors))
def test_a_combination_is_refused_when_declared_or_it_runs(kind, errors):
    for reducer, order, sync in itertools.product(FORMS[kind], Order, (False, True)):
        as_event = kind in VERDICTS
        result = results_of(reducer, errors)[0]
        late = getattr(reducer, "into", None) is not None and order is NEWEST
        if late or errors not in LEGAL.get(kind, (RAISE, SKIP)) or (sync and kind == "around"):
            with pytest.raises(hl.DeclarationError):
                declare(reducer, errors, order, sync, result, as_event)
            continue
        spec = declare(reducer, errors, order, sync, result, as_event)
        hooks = hl.HookRegistry(hl.Catalog(spec))
        calls = []
        hooks.register(spec.name, lambda *_, _seen=calls.append, **given: _seen(1))
        passed = {"event": Happened(), "x": {}, "call_next": lambda *_: None}
        passed = {name: value for name, value in passed.items() if name in spec.params}
        finish(hooks.call(spec.name, **passed))
        if kind == "around":
            with pytest.raises(hl.CallError, match="cannot be called synchronously"):
                hooks.call_sync(spec.name, **passed)
        else:
            hooks.call_sync(spec.name, **passed)
            assert calls == [1, 1]


def test_what_means_nothing_is_refused_when_declared():
    for refused in (
        lambda: declare(hl.first, DENY, NEWEST, False, str),
        lambda: declare(hl.gate, SKIP, OLDEST, False, Rules),
        lambda: declare(hl.patch("x"), SKIP, OLDEST, False, Rules),
        lambda: declare(hl.chain("event"), SKIP, OLDEST, False, Happened, as_event=True),
    ):
        with pytest.raises(hl.DeclarationError):
            refused()


@pytest.mark.parametrize(
    ("reducer", "options"), [(hl.gate, {"once": True}), (hl.patch("x"), {"once": True}), (hl.patch, {})]
)
def test_a_guard_that_could_not_guard_is_refused_when_registered(reducer, options):
    hooks = hl.HookRegistry(hl.Catalog(declare(reducer, SKIP, OLDEST, False, Rules, as_event=True)))
    with pytest.raises(hl.RegistrationError):
        hooks.register("happened", lambda event: None, guard=True, **options)


# --- what is attached, as data ------------------------------------------------------------------


@dataclass(frozen=True)
class Does:
    """One implementation: how it is registered, what it takes, and what it does."""

    style: str
    kind: str
    takes: str
    action: tuple[Any, ...]
    key: str | None = None
    effect: tuple[Any, ...] = ()
    when: tuple[Any, ...] | None = None
    options: tuple[str, ...] = ()
    order: float = 0


@dataclass(frozen=True)
class Step:
    """One dispatch."""

    face: str
    sync: bool
    direct: bool
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Case:
    spec: HookSpec
    attached: tuple[Does, ...]
    spare: tuple[Does, ...]
    """Registered only by an effect."""
    steps: tuple[Step, ...]
    traced: str
    subscribers: tuple[str, ...]
    denies: bool


TAKES = (
    "", "x", "x, y", "y", "key, x='d'", "box='d'", "*, y", "box, *, x='d'", "**rest", "x, **rest",
    "key='d', *, y, **rest",
)  # fmt: skip
TAKES_EVENT = (
    "", "event", "event, ctx", "event='d'", "*, ctx", "*, event='d'", "event, *, ctx='d'", "**rest",
    "event, **rest",
)  # fmt: skip
BY_POSITION, BY_NAME = ("thing", "thing, ctx", "thing='d', **rest"), ("ctx", "ctx, **rest")


def picker(draw):
    return lambda *options: draw(st.sampled_from(options))


def signatures(spec, style):
    if not spec.event:
        return st.sampled_from(TAKES)
    return st.sampled_from(TAKES_EVENT + (BY_NAME if style == "plugin" else BY_POSITION))


def with_call_next(takes):
    """The same signature with `call_next` in it, if it has no other way in."""
    if "rest" in takes:
        return takes
    return f"{takes}, call_next" if "*" in takes else f"call_next, {takes}"


def values_for(spec):
    """Results of the declared type, for the most part."""
    kind = spec.reducer.name
    if kind in VERDICTS:
        text = st.sampled_from([None, None, "s", "t", "u"])
        y = st.sampled_from([None, None, "beta"])
        broken = st.sampled_from([*[""] * 5, "raises", "wrong"])
        return st.builds(Rules, text, y, text, st.sampled_from(Decision), text, broken)
    if kind == "flatten":
        odd = [Item([]), "no key"] if spec.reducer.unique else []
        return st.lists(st.sampled_from([Item(1), Item(2), Item(3), *odd]), max_size=3)
    if kind == "merge":
        inner = st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2)
        return st.dictionaries(st.sampled_from("abc"), st.integers(0, 3) | inner, max_size=3)
    if spec.result is bool:
        return st.booleans()
    return st.sampled_from(["v", "w", ""] if spec.result is str else ["v", "", 1, 2.5, "s"])


def replacements(spec):
    """What a wrapper may put in place of the reduced value."""
    made = {"collect": ["c"], "flatten": [Item(9)], "merge": {"c": 1}, "join": "c", "notify": None}
    if spec.reducer.name == "patch":
        return st.builds(lambda: Verdict(Happened("c")))
    return st.just(made[spec.reducer.name]) if spec.reducer.name in made else values_for(spec)


@st.composite
def filters(draw, spec, style):
    kind = draw(st.sampled_from([*[None] * 8, "glob", "regex", "predicate", "predicate"]))
    if kind == "glob":
        return (kind, draw(st.sampled_from(["alpha", "b*", "alpha|b?ta", "a", "*"])))
    if kind == "regex":
        return (kind, draw(st.sampled_from(["alpha", "b.*", "alph", "alpha|beta"])))
    answer = st.sampled_from([True, True, False, "x", Boom("filter"), EXITS[0]])
    return kind and (kind, draw(signatures(spec, style)), draw(answer))


def wrappable(spec):
    return spec.reducer.name not in ("gate", "outcomes", "around") and spec.errors is not DENY


def can_guard(spec):
    reducer = spec.reducer
    denies = reducer.name == "first" and (reducer.deny is not None or spec.result is bool)
    return denies or reducer.name in ("gate", "chain") or (reducer.name == "patch" and reducer.field)


@st.composite
def implementations(draw, spec, focus=""):
    pick = picker(draw)
    if focus == "guards" and pick(*[True] * 5, False):
        return draw(rewriting_guards(spec))
    reducer = spec.reducer.name
    wraps = wrappable(spec) and (pick(True, False) if focus == "wrappers" else pick(*[False] * 6, True))
    style = "plugin" if wraps else pick("handler", "handler", "plugin", "plugin", "scope")
    kind = "wrapper" if wraps else pick("def", "def", "def", "async", "async", "promise", "awaitable")
    takes = draw(signatures(spec, style))
    value = st.tuples(st.just("return"), st.none() | values_for(spec) | values_for(spec))
    if wraps:
        plain = ["echo", "echo", "none", "before", "after", "unyielding", "again", "catch", "other"]
        named = st.sampled_from(plain).map(lambda what: (what,))
        instead = st.just(WRONG) | replacements(spec) | replacements(spec)
        action = draw(st.one_of(*[named] * 4, st.tuples(st.just("replace"), instead)))
        action = (*action, draw(replacements(spec))) if action == ("catch",) else action
    else:
        raising = [("raise", error) for error in ERRORS * 3 + EXITS]
        choices = [value] * 4 + [st.sampled_from([*raising, ("return", WRONG)])]
        choices += [st.just(("tag",))] * 3 * (reducer == "chain")
        on = st.sampled_from(["on", "catch", "twice", "late"]).map(lambda what: (what,))
        action = draw(st.one_of(*choices, *[on] * 9 * (reducer == "around")))
    if reducer == "around":
        takes = with_call_next(takes)
    options = pick((), (), (), ("tryfirst",), ("trylast",))
    if can_guard(spec) and not wraps and pick(True, False):
        options = ("guard", *options)
    elif style != "plugin" and pick(*[False] * 5, True):
        options = ("once", *options)
    effect = pick(*[()] * 6, ("clear",), ("remove", pick(0, 1, 2)), ("add", pick(0, 1)))
    key = pick("k1", "k2") if style == "scope" else None
    order = pick(0, 0, 0, 0, -1, 1, 0.5)
    return Does(style, kind, takes, action, key, effect, draw(filters(spec, style)), options, order)


@st.composite
def rewriting_guards(draw, spec):
    """Guards that mostly run and mostly rewrite, so that others are asked once more."""
    text = st.sampled_from(["s", "t", "u", None])
    ruled = st.none() | st.builds(Rules, text, decision=st.sampled_from(Decision))
    result = text if spec.reducer.name == "chain" else ruled | ruled
    action = draw(st.one_of(*[st.tuples(st.just("return"), result)] * 7, st.just(("raise", ERRORS[0]))))
    main = "event" if spec.event else "x"
    when = draw(st.sampled_from([None, None, None, ("predicate", main, "x")]))
    options = ("guard", *draw(st.sampled_from([(), (), ("tryfirst",), ("trylast",)])))
    kind = draw(st.sampled_from(["def", "def", "async"]))
    return Does("handler", kind, main, action, when=when, options=options)


@st.composite
def steps(draw, spec):
    pick = picker(draw)
    face = pick(*["call"] * 6, "first", "many", "run", *["emit"] * 3 * bool(spec.event))
    sync = face == "run" or (face != "emit" and pick(True, False))
    y, key = pick("alpha", "beta"), pick(None, "k1", "k2")
    if spec.event:
        ctx = pick(None, SimpleNamespace(session_id=key))
        arguments = {"event": Happened(pick("s", "t"), y), "ctx": ctx}
        left_out = () if face == "emit" else pick((), (), (), ("ctx",), ("event",))
    else:
        x = {"a": 1, "b": {"c": 1}} if getattr(spec.reducer, "into", None) else pick("s", "t")
        arguments = {"x": x, "y": y, "box": pick(Box(x), None), "key": key}
        left_out = pick((), (), (), (), ("x",), ("y",), ("key",), ("box",), tuple(arguments))
        if spec.reducer.name == "around":
            arguments["call_next"] = pick("ends", "ends", "raises")
            left_out = [name for name in left_out if name != spec.reducer.passing]
    kept = {name: value for name, value in arguments.items() if name not in left_out}
    return Step(face, sync, pick(True, False), kept)


@st.composite
def cases(draw, kind, focus=""):
    errors = draw(st.sampled_from(LEGAL.get(kind, (RAISE, SKIP))))
    if focus == "wrappers":
        errors = draw(st.sampled_from([RAISE, SKIP]))
    order, sync = draw(st.sampled_from(Order)), kind != "around" and draw(st.booleans())
    forms = [r for r in FORMS[kind] if order is OLDEST or not getattr(r, "into", None)]
    reducer = draw(st.sampled_from(forms[1:] if focus == "guards" and kind == "patch" else forms))
    function = kind in ("around", "chain") or getattr(reducer, "into", None)
    as_event = kind in VERDICTS or (not function and draw(st.booleans()))
    text_only = (focus, kind) == ("guards", "chain")
    result = str if text_only else draw(st.sampled_from(results_of(reducer, errors)))
    spec = declare(reducer, errors, order, sync, result, as_event)
    some = implementations(spec, focus)
    attached = draw(st.lists(some, min_size=2 if focus else 0, max_size=5))
    if focus == "many":
        attached = [does for does in attached for _ in range(70 // len(attached) + 1)]
    return Case(
        spec,
        tuple(attached),
        tuple(draw(st.lists(some, max_size=2))),
        tuple(draw(st.lists(steps(spec), min_size=1, max_size=3))),
        draw(st.sampled_from(["", "", "traced", "broken"])),
        tuple(draw(st.lists(st.sampled_from(["sees", "raises"]), max_size=2))) if as_event else (),
        draw(st.sampled_from([False, False, True])),
    )


# --- what is attached, as functions ---------------------------------------------------------------


@types.coroutine
def pause():
    yield


class Later:
    """An awaitable that is no coroutine."""

    def __init__(self, make):
        self.make = make

    def __await__(self):
        yield from pause()
        return self.make()


@cache
def compiled(kind, method, takes):
    """The code of a function with exactly this signature."""
    keyword = "async def" if kind == "async" else "def"
    result = {"async": "await run(seen)", "wrapper": "(yield from run(seen))"}.get(kind, "run(seen)")
    signature = f"self, {takes}" if method else takes
    source = f"{keyword} made({signature}):\n    seen = locals()\n    return {result}"
    return compile(source, "<made>", "exec")


def make(kind, method, takes, run, name):
    namespace = {"run": run}
    exec(compiled(kind, method, takes), namespace)
    function = namespace["made"]
    function.__module__, function.__qualname__ = "made", name
    return function


async def settled(value):
    return await value if hasattr(value, "__await__") else value


class World:
    """Something that implementations can be attached to, and that remembers what was called."""

    def __init__(self, case):
        self.case, self.spec, self.all = case, case.spec, case.attached + case.spare
        self.calls, self.added = [], set()
        for index in range(len(case.attached)):
            self.add(index)

    def add(self, index):
        if index not in self.added and index < len(self.all):
            self.added.add(index)
            self.attach(index, self.all[index], self.function(index, self.all[index]))

    def effect(self, what="", index=0):
        if what == "clear":
            self.clear()
        elif what == "remove":
            self.remove(index)
        elif what == "add":
            self.add(len(self.case.attached) + index)

    def note(self, what, seen):
        given = {name: value for name, value in seen.items() if name not in ("self", "rest")}
        given |= seen.get("rest", {})
        self.calls.append((what, {name: shown(value) for name, value in sorted(given.items())}))
        return given

    def predicate(self, index, does):
        _, takes, answer = does.when

        def run(seen):
            given = self.note(f"when h{index}", seen)
            if isinstance(answer, BaseException):
                raise answer.with_traceback(None)
            return "'s'" in repr(given) if answer == "x" else answer

        return make("def", False, takes, run, f"when{index}")

    def function(self, index, does):
        """The callable that a description stands for."""
        name = f"h{index}"
        around = self.spec.reducer.name == "around"
        made = self.wraps if does.kind == "wrapper" else self.calls_on if around else self.answers
        act = made(name, *does.action)

        async def later(given):
            await pause()
            return await settled(act(given))

        def run(seen):
            given = self.note(name, seen)
            self.effect(*does.effect)
            if does.kind in ("async", "promise") or (around and does.kind == "awaitable"):
                return later(given)
            return Later(lambda: act(given)) if does.kind == "awaitable" else act(given)

        return make(does.kind, does.style == "plugin", does.takes, run, name)

    def answers(self, name, what, value=None):
        def act(given):
            if what == "raise":
                raise value.with_traceback(None)
            return f"{given.get('x', '')}{name}" if what == "tag" else value

        return act

    def calls_on(self, name, what, value=None):
        """Middleware; where calling on gives an awaitable, so does this."""
        passing = self.spec.reducer.passing

        def call_on(given):
            return settled(given["call_next"](*([f"{given.get('x', '')}>"] if passing else [])))

        async def act(given):
            try:
                inner = await call_on(given)
                return await call_on(given) if what == "twice" else f"{inner}{name}"
            except Exception as error:
                if what != "catch":
                    raise
                return f"caught {type(error).__name__}"

        def run(given):
            if what in ("raise", "return"):
                return self.answers(name, what, value)(given)
            if what == "late":  # awaitable whatever it called on to
                return call_on(given)
            return finish(act(given)) if self.now_sync else act(given)

        return run

    def wraps(self, name, what, value=None):
        def act(given):
            if what == "before":
                raise Boom("before")
            if what == "unyielding":
                return None
            try:
                inner = yield
            except Exception as error:
                self.calls.append((name, "thrown", type(error).__name__))
                if what == "other":
                    raise LookupError("instead") from error
                if what == "catch":
                    return value
                raise
            self.calls.append((name, "given", shown(inner)))
            if what == "after":
                raise Boom("after")
            if what == "again":
                yield
            return {"none": None, "replace": value}.get(what, inner)

        return act

    def arguments(self, step):
        """What is passed; the innermost function of an `around` hook is made here."""
        self.now_sync = step.sync or self.spec.sync
        how = step.arguments.get("call_next")

        def ends(*values):
            self.calls.append(("end", values))
            if how == "raises":
                raise Boom("end")
            return "end"

        async def ends_later(*values):
            return ends(*values)

        made = {"call_next": ends if self.now_sync else ends_later} if how else {}
        return {**step.arguments, **made}


class Compiled(World):
    """The kernel."""

    def __init__(self, case):
        self.hooks = hl.HookRegistry(
            hl.Catalog(case.spec), on_gate_error="deny" if case.denies else "allow"
        )
        self.offs = {}
        self.records = []
        if case.traced:
            self.hooks.trace(lambda record: 1 / (case.traced != "broken"))
        for what in case.subscribers:
            self.hooks.subscribe(self.subscriber(what))
        super().__init__(case)

    def subscriber(self, what):
        def subscribe(event):
            self.calls.append(("subscriber", shown(event)))
            if what == "raises":
                raise Boom("subscriber")

        return subscribe

    def attach(self, index, does, function):
        options = {**dict.fromkeys(does.options, True), "order": does.order}
        if does.when:
            kind, pattern, *_ = does.when
            made = {"glob": str, "regex": re.compile}.get(kind)
            options["when"] = made(pattern) if made else self.predicate(index, does)
        name = self.spec.name
        if does.style == "plugin":
            mark = hl.hookimpl(specname=name, wrapper=does.kind == "wrapper", **options)
            plugin = type("Plugin", (), {"implementation": mark(function)})()
            self.hooks.add(plugin, name=f"p{index}")
            self.offs[index] = lambda: self.hooks.remove(plugin)
            return
        where = self.hooks.scope(does.key) if does.key else self.hooks
        off = where.register(name, function, **options)
        self.offs[index] = off if index % 2 else lambda: where.unregister(name, function)

    def remove(self, index):
        self.offs.pop(index, int)()

    def clear(self):
        self.hooks.clear(self.spec.name)

    def dispatch(self, step):
        hooks, name, arguments = self.hooks, self.spec.name, self.arguments(step)
        if step.face == "emit":
            return finish(hooks.emit(**arguments))
        if step.face == "run":
            return hooks.run(name, **arguments)
        face = "call" if step.face == "call" else f"call_{step.face}"
        positional = (name,)
        if face == "call" and step.direct and arguments.keys() == hooks[name].names:
            if not step.sync or self.spec.sync:
                value = hooks[name].fire(*(arguments[p] for p in self.spec.params))
                return value if self.spec.sync else finish(value)
            if self.spec.event:
                positional, arguments = (arguments["event"], arguments["ctx"]), {}
        if step.sync:
            return getattr(hooks, f"{face}_sync")(*positional, **arguments)
        return finish(getattr(hooks, face)(*positional, **arguments))

    def logged(self):
        lines = [LOGGED.match(record.getMessage()) for record in self.records]
        return [line.groups() for line in lines if line]


class Naive(World):
    """The reference interpreter."""

    def __init__(self, case):
        self.impls, self.log = {}, []
        super().__init__(case)

    def attach(self, index, does, function):
        plugin = does.style == "plugin"
        self.impls[index] = SimpleNamespace(
            function=types.MethodType(function, object()) if plugin else function,
            name=f"p{index}" if plugin else f"made.h{index}",
            seq=len(self.added), kind=does.kind, plugin=plugin, options=does.options, key=does.key,
            order=does.order, when=self.when(index, does), spent=False,
            detach=lambda: self.remove(index),
        )  # fmt: skip

    def when(self, index, does):
        """Its filter as a predicate; a pattern is matched with the hook's field."""
        kind, pattern, *_ = does.when or (None, None)
        if kind in (None, "predicate"):
            return kind and self.predicate(index, does)
        if kind == "regex":
            match = lambda y: re.fullmatch(pattern, y)  # noqa: E731
        else:
            match = lambda y: any(fnmatchcase(y, part) for part in pattern.split("|"))  # noqa: E731
        return (lambda event: match(event.y)) if self.spec.event else match

    def remove(self, index):
        self.impls.pop(index, None)

    def clear(self):
        self.impls = {i: impl for i, impl in self.impls.items() if impl.plugin}

    def dispatch(self, step):
        run = Dispatch(self.spec, self.arguments(step), step.face, step.sync, self.case.denies)
        try:
            value = finish(run.run(list(self.impls.values())))
        finally:
            self.log += run.logged
        self.calls += [("subscriber", shown(run.seen)) for _ in self.case.subscribers]
        return value

    def logged(self):
        return self.log


# --- comparing --------------------------------------------------------------------------------------

OWN_ERRORS = re.compile(r"(failed: (?:MissingArgument|NotAwaited|WrongResult|Unsettled)): .*?(?=\]?$)")
LOGGED = re.compile(r"hook\.(?:happen(?:ed)?_)?(failed|denied|async_not_supported) .*?adapter=([\w.]+)")


def shown(value):
    """A value as something to compare and to read; the wording of the kernel's errors left out."""
    if isinstance(value, str):
        return OWN_ERRORS.sub(r"\1", value)
    if isinstance(value, Verdict):
        trail = [(r.by, r.decision.name, shown(r.changes or {})) for r in value.trail]
        rest = (value.reason, value.event, value.supplied, value.withheld)
        return (value.decision.name, *map(shown, rest), trail)
    if isinstance(value, hl.Outcome):
        return (value.plugin_name, value.success, value.result, type(value.error).__name__)
    if isinstance(value, hl.Denied):
        return ("denied", shown(value.reason))
    if isinstance(value, Happened):
        return ("happened", shown(value.x), value.y)
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return "<callable>" if callable(value) else repr(value)


def outcome(world, step):
    try:
        return ("returned", shown(world.dispatch(step)))
    except BaseException as error:
        return ("raised", type(error).__name__)


def agree(case):
    kernel, reference = Compiled(case), Naive(case)
    log = logging.getLogger("hookline.hooks")
    handler = logging.Handler()
    handler.emit = kernel.records.append
    log.addHandler(handler)
    propagate, log.propagate = log.propagate, False
    try:
        for step in case.steps:
            assert outcome(kernel, step) == outcome(reference, step)
            assert kernel.calls == reference.calls
            assert kernel.logged() == reference.logged()
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


def check_agreement(strategy, examples):
    @settings(max_examples=examples * EFFORT, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def check(case):
        agree(case)

    check()


@pytest.mark.parametrize("kind", FORMS)
def test_kernel_and_reference_agree(kind):
    check_agreement(cases(kind), 25)


@pytest.mark.parametrize("kind", ["gate", "patch", "chain"])
def test_they_agree_on_guards_that_rewrite_what_others_judged(kind):
    check_agreement(cases(kind, "guards"), 25)


@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind not in ("gate", "outcomes", "around")])
def test_they_agree_on_wrappers_in_wrappers(kind):
    check_agreement(cases(kind, "wrappers"), 12)


@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind != "around"])
def test_they_agree_on_more_than_are_written_out_one_by_one(kind):
    check_agreement(cases(kind, "many"), 4)
