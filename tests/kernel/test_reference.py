"""The compiled kernel and the naive interpreter agree on every valid kind of hook."""

import asyncio
import itertools
import logging
import re
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.hooks import (
    CAPTURE,
    DENY,
    NEWEST,
    OLDEST,
    RAISE,
    SKIP,
    Catalog,
    Decision,
    DeclarationError,
    Denied,
    Errors,
    Hooks,
    HookSpec,
    Order,
    Outcome,
    Reducer,
    Result,
    Ruling,
    Verdict,
    around,
    chain,
    collect,
    first,
    flatten,
    gate,
    hookimpl,
    hookspec,
    join,
    merge,
    notify,
    outcomes,
    patch,
)

from .reference import Dispatch, Impl, finish

EXAMPLES = 10
WRONG = 1j
"""Of no result type that is checked."""


# --- what hooks carry -----------------------------------------------------------------------


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
class Rules(Result):
    """A result that patches, supplies, decides, or cannot say what it means."""

    x: str | None = None
    y: str | None = None
    label: str | None = None
    decision: Decision = Decision.ALLOW
    reason: str | None = None
    broken: str = ""

    def verdict(self) -> Ruling:
        if self.broken == "raises":
            raise LookupError("no verdict")
        if self.broken == "wrong":
            return "allow"  # type: ignore[return-value]
        changes = self.set_fields("decision", "reason", "broken")
        return Ruling(self.decision, self.reason, changes)


class Boom(Exception):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        return ""


RAISES = (Boom("no"), Mute("x"), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1))


# --- every combination of reducer, errors, order and mode -------------------------------------

FORMS: dict[str, tuple[Reducer, ...]] = {
    "first": (first, first(deny="no")),
    "collect": (collect, collect(keep_none=True)),
    "flatten": (flatten, flatten(unique="key")),
    "merge": (merge, merge(deep=True), merge(into="x"), merge(deep=True, into="x")),
    "join": (join, join("+")),
    "chain": (chain("x"), chain("x", "box")),
    "patch": (patch("x"), patch("x", lambda text: [text])),
    "gate": (gate, gate("x")),
    "notify": (notify,),
    "outcomes": (outcomes,),
    "around": (around, around(passing="x")),
}
LEGAL = {
    "first": {RAISE, SKIP, DENY},
    "gate": {SKIP, DENY},
    "outcomes": {CAPTURE},
    "around": {RAISE},
}
COMBINATIONS = list(itertools.product(FORMS, Errors, Order, (False, True)))
VALID = [c for c in COMBINATIONS if c[1] in LEGAL.get(c[0], {RAISE, SKIP})]
ANNOTATIONS = {
    "flatten": (list, list[Any]),
    "merge": (dict, dict[str, Any]),
    "join": (str,),
    "patch": (Rules,),
    "gate": (Rules,),
    "notify": (None, Any, str),
}
PLAIN = (str, Any, object, float, int | str, Literal["v", "no", "s"], None)


def declare(
    reducer: Reducer, errors: Errors, order: Order, sync: bool, result: Any, as_event: bool = False
) -> HookSpec:
    """A hook with these properties, and the parameters that every kind needs."""
    if as_event:
        return HookSpec(
            "happened", ("event", "ctx"), reducer, order, errors, result, sync,
            scope="ctx.session_id", match="y", event=Happened,
        )  # fmt: skip

    def happen(self, x, y, box, key):
        """Something happens."""

    def happen_around(self, x, y, box, key, call_next):
        """Something happens."""

    function = happen_around if reducer.name == "around" else happen
    function.__name__ = "happen"
    function.__annotations__["return"] = result
    hookspec(reducer, order=order, errors=errors, sync=sync, scope="key", match="y")(function)
    return function.__hookspec__


def result_of(reducer: Reducer, errors: Errors) -> Any:
    """A result type that suits."""
    if reducer.name == "first" and reducer.deny is None and errors is DENY:
        return bool
    return ANNOTATIONS.get(reducer.name, (str,))[0]


@pytest.mark.parametrize(("kind", "errors", "order", "sync"), COMBINATIONS)
def test_a_combination_is_refused_when_declared_or_it_runs(kind, errors, order, sync):
    for reducer in FORMS[kind]:
        refused = (kind, errors, order, sync) not in VALID
        refused = refused or (getattr(reducer, "into", None) is not None and order is NEWEST)
        as_event = kind in ("gate", "patch")
        make = lambda: declare(reducer, errors, order, sync, result_of(reducer, errors), as_event)  # noqa: B023, E731
        if refused:
            with pytest.raises(DeclarationError):
                make()
            continue
        spec = make()
        hooks = Hooks(Catalog(spec))
        calls = []
        hooks.register(spec.name, lambda **given: calls.append(1))  # noqa: B023
        passed = {"event": Happened()} if as_event else {"x": {}, "call_next": lambda *_: None}
        passed = {name: value for name, value in passed.items() if name in spec.params}
        hooks.call_sync(spec.name, **passed)
        finish(hooks.call(spec.name, **passed))
        assert calls == [1, 1]


def test_deny_on_first_needs_a_value_that_denies():
    with pytest.raises(DeclarationError):
        declare(first, DENY, NEWEST, False, str)
    declare(first, DENY, NEWEST, False, bool)
    declare(first(deny="no"), DENY, NEWEST, False, str)


@pytest.mark.parametrize("kind", ["gate", "patch"])
def test_a_verdict_needs_an_event(kind):
    with pytest.raises(DeclarationError):
        declare(FORMS[kind][0], SKIP, OLDEST, False, Rules, as_event=False)


# --- what is attached, as data ------------------------------------------------------------------


@dataclass(frozen=True)
class Does:
    """One implementation: how it is registered, what it takes, and what it does."""

    style: str = "handler"
    key: str | None = None
    kind: str = "def"
    takes: tuple[tuple[str, str], ...] = ()
    rest: bool = False
    action: tuple[Any, ...] = ("return", None)
    effect: tuple[str, int] | None = None
    when: tuple[Any, ...] | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One dispatch."""

    face: str
    sync: bool
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
    fail_closed: bool

    @property
    def all(self) -> tuple[Does, ...]:
        return self.attached + self.spare


@st.composite
def taken(draw, spec: HookSpec, style: str, needs: str | None = None):
    """A subset of the hook's parameters, each in some form."""
    forms = ["plain", "default", "kwonly", "kwdefault"]
    subset = draw(st.lists(st.sampled_from(spec.params), unique=True, max_size=3))
    if needs and needs not in subset:
        subset.append(needs)
    takes = {p: draw(st.sampled_from(forms)) for p in subset}
    if "call_next" in takes:
        takes["call_next"] = draw(st.sampled_from(["plain", "kwonly"]))
    if spec.event and style != "plugin":
        by_position = takes.get("event") in ("plain", "default")
        if "ctx" in takes and not by_position:
            takes["ctx"] = takes["ctx"].replace("plain", "kwonly").replace("default", "kwdefault")
            takes["ctx"] = takes["ctx"].replace("kwkw", "kw")
        if by_position and takes.get("ctx") == "plain":
            takes["event"] = "plain"
    return tuple(takes.items())


def values_for(spec: HookSpec) -> st.SearchStrategy[Any]:
    """Results of the declared type, for the most part."""
    kind = spec.reducer.name
    if kind in ("gate", "patch"):
        text = st.sampled_from([None, None, "s", "t", "u"])
        decisions = st.sampled_from(Decision)
        return st.builds(
            Rules, text, st.sampled_from([None, None, "beta"]), text, decisions, text,
            st.sampled_from(["", "", "", "", "raises", "wrong"]),
        )  # fmt: skip
    if kind == "flatten":
        items = [Item(1), Item(2), Item(3)]
        if spec.reducer.unique:
            items += [Item([]), "no key"]
        return st.lists(st.sampled_from(items), max_size=3)
    if kind == "merge":
        inner = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=2)
        return st.dictionaries(st.sampled_from("abc"), st.integers(0, 3) | inner, max_size=3)
    if spec.event and kind == "chain":
        return st.builds(Happened, x=st.sampled_from("stu"), y=st.sampled_from(["alpha", "beta"]))
    if spec.result is bool:
        return st.booleans()
    return st.sampled_from(["v", "w", "", 1, 2.5, "s"] if spec.result is not str else ["v", "w", ""])


@st.composite
def filters(draw, spec: HookSpec, style: str):
    kind = draw(st.sampled_from([None, None, None, None, "glob", "regex", "predicate"]))
    if kind is None:
        return None
    if kind == "glob":
        return ("glob", draw(st.sampled_from(["alpha", "b*", "alpha|b?ta", "a", "*"])))
    if kind == "regex":
        return ("regex", draw(st.sampled_from(["alpha", "b.*", "alph", "alpha|beta"])))
    does = draw(st.sampled_from([True, False, "x", Boom("filter"), RAISES[2]]))
    return ("predicate", draw(taken(spec, style)), draw(st.booleans()), does)


@st.composite
def implementations(draw, spec: HookSpec, count: int, focus: str = ""):
    if focus == "guards" and draw(st.integers(0, 5)):
        return draw(rewriting_guards(spec))
    reducer = spec.reducer
    style = draw(st.sampled_from(["handler", "handler", "plugin", "plugin", "scope"]))
    wrapping = focus == "wrappers" and draw(st.booleans())
    style = "plugin" if wrapping else style
    key = draw(st.sampled_from(["k1", "k2"])) if style == "scope" else None
    kinds = ["def", "def", "def", "async", "async", "promise", "awaitable"]
    wrappable = reducer.name not in ("gate", "outcomes", "around") and spec.errors is not DENY
    if style == "plugin" and wrappable:
        kinds += ["wrapper", "wrapper"]
    kind = "wrapper" if wrapping else draw(st.sampled_from(kinds))
    needs = "call_next" if reducer.name == "around" else None
    rest = draw(st.sampled_from([False, False, True]))
    takes = draw(taken(spec, style, None if rest and draw(st.booleans()) else needs))
    value = st.tuples(st.just("return"), st.just(None) | values_for(spec) | values_for(spec))
    wrong = st.just(("return", WRONG))
    raising = st.tuples(
        st.just("raise"), st.sampled_from([*RAISES[:2], *RAISES[:2], *RAISES[:2], *RAISES])
    )
    tagging = st.just(("tag",))
    choices = [value] * 5 + [wrong, raising]
    if reducer.name == "chain" and not spec.event:
        choices += [tagging] * 4
    if reducer.name == "around":
        choices += [st.sampled_from([("on",), ("catch",), ("twice",)])] * 9
    if kind == "wrapper":
        plain = st.sampled_from(
            ["echo", "echo", "none", "before", "after", "unyielding", "again", "catch", "other"]
        ).map(lambda what: (what,))
        choices = [plain] * 4 + [st.tuples(st.just("replace"), replacements(spec))]
    action = draw(st.one_of(choices))
    options = []
    options += draw(st.sampled_from([[], [], [], ["tryfirst"], ["trylast"]]))
    if kind != "wrapper":
        options += ["once"] if style != "plugin" and draw(st.integers(0, 5)) == 0 else []
        guards = reducer.name in ("gate", "patch", "chain") or (
            reducer.name == "first" and (reducer.deny is not None or spec.result is bool)
        )
        options += ["guard"] if guards and draw(st.booleans()) else []
    effects = st.tuples(st.sampled_from(["remove", "add", "clear"]), st.integers(0, count + 1))
    effect = draw(st.sampled_from([None, None, None, None, ()]))
    effect = draw(effects) if effect is not None else None
    when = draw(filters(spec, style))
    return Does(style, key, kind, takes, rest, action, effect, when, tuple(options))


@st.composite
def rewriting_guards(draw, spec: HookSpec):
    """Guards that mostly run and mostly rewrite, so that others are asked once more."""
    if spec.reducer.name == "chain":
        result = st.sampled_from(["s", "t", "u", None])
    else:
        result = st.none() | st.builds(Rules, st.sampled_from(["s", "t", "u", None]))
        result |= st.builds(Rules, st.sampled_from("stu"), decision=st.sampled_from(Decision))
    action = ("return", draw(result))
    if draw(st.integers(0, 7)) == 0:
        action = draw(st.sampled_from([("raise", RAISES[0]), ("return", WRONG)]))
    kind = draw(st.sampled_from(["def", "def", "async"]))
    main = "event" if spec.event else "x"
    when = None
    if draw(st.integers(0, 4)) == 0:
        when = ("predicate", ((main, "plain"),), False, "x")
    once = ["once"] if draw(st.integers(0, 7)) == 0 else []
    place = draw(st.sampled_from([[], [], ["tryfirst"], ["trylast"]]))
    options = ("guard", *once, *place)
    return Does("handler", None, kind, ((main, "plain"),), False, action, None, when, options)


def replacements(spec: HookSpec) -> st.SearchStrategy[Any]:
    """What a wrapper may put in place of the reduced value, now and then of the wrong type."""
    kind = spec.reducer.name
    made = {
        "collect": st.just(["wrapped"]),
        "flatten": st.just([Item(9)]),
        "merge": st.just({"wrapped": 1}),
        "join": st.just("wrapped"),
        "patch": st.builds(lambda: Verdict(Happened("wrapped"))),
    }
    return st.one_of(made.get(kind, values_for(spec)), made.get(kind, values_for(spec)), st.just(WRONG))


@st.composite
def steps(draw, spec: HookSpec):
    kind = spec.reducer.name
    faces = ["call"] * 5 + ["first", "many", "run"]
    faces += ["emit"] * 3 if spec.event and not spec.sync else []
    face = draw(st.sampled_from(faces))
    sync = face == "run" or (face != "emit" and draw(st.booleans()))
    y = draw(st.sampled_from(["alpha", "beta"]))
    key = draw(st.sampled_from([None, "k1", "k2"]))
    if spec.event:
        ctx = draw(st.sampled_from([None, SimpleNamespace(session_id=key)]))
        arguments = {"event": Happened(draw(st.sampled_from("st")), y), "ctx": ctx}
        if face in ("first", "many", "run") and draw(st.booleans()):
            del arguments["ctx"]
        return Step(face, sync, arguments)
    x = draw(st.sampled_from(["s", "t"]))
    if kind == "merge" and spec.reducer.into:
        x = {"a": 1, "b": {"c": 1}}
    arguments = {"x": x, "y": y, "box": draw(st.sampled_from([Box(x), None])), "key": key}
    if kind == "around":
        arguments["call_next"] = draw(st.sampled_from(["ends", "ends", "raises"]))
    keep = {"x"} if getattr(spec.reducer, "passing", None) else set()
    for name in draw(st.sampled_from([[], [], [], ["x"], ["y"], ["key"], ["box"], list(arguments)])):
        if name not in keep:
            del arguments[name]
    return Step(face, sync, arguments)


@st.composite
def cases(draw, kind: str, errors: Errors, order: Order, sync: bool, focus: str = ""):
    forms = [r for r in FORMS[kind] if not (order is NEWEST and getattr(r, "into", None))]
    reducer = draw(st.sampled_from(forms))
    as_event = kind in ("gate", "patch") or (
        kind not in ("around", "chain")
        and getattr(reducer, "into", None) is None
        and draw(st.booleans())
    )
    results = ANNOTATIONS.get(kind, PLAIN)
    if kind == "first":
        results = [
            r
            for r in (*PLAIN, bool, bool)
            if reducer.deny is None or (r is not None and r is not float and r is not bool)
        ]
        if errors is DENY and reducer.deny is None:
            results = [bool]
    result = draw(st.sampled_from(results))
    result = str if kind == "chain" and focus == "guards" else result
    if kind == "chain" and not focus and draw(st.integers(0, 4)) == 0:
        as_event, reducer, result = True, chain("event"), Happened
    spec = declare(reducer, errors, order, sync, result, as_event)
    count = draw(st.integers(2 if focus else 0, 5))
    some = implementations(spec, count, focus)
    return Case(
        spec,
        tuple(draw(st.lists(some, min_size=count, max_size=count))),
        tuple(draw(st.lists(some, min_size=2, max_size=2))),
        tuple(draw(st.lists(steps(spec), min_size=1, max_size=3))),
        draw(st.sampled_from(["", "", "traced", "broken"])),
        tuple(draw(st.lists(st.sampled_from(["sees", "raises"]), max_size=2))) if as_event else (),
        draw(st.integers(0, 3)) == 0,
    )


# --- what is attached, as functions ---------------------------------------------------------------


@types.coroutine
def pause():
    yield


class Later:
    """An awaitable that is no coroutine."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __await__(self):
        yield from pause()
        return self.make()


@cache
def compiled(kind: str, method: bool, takes: tuple[tuple[str, str], ...], rest: bool) -> Any:
    """The source of a function with exactly this signature."""
    plain = [n for n, form in takes if form == "plain"]
    default = [f"{n}='default'" for n, form in takes if form == "default"]
    plain, default = sorted(plain, key="event".__ne__), sorted(default, key="event='default'".__ne__)
    only = [n for n, form in takes if form == "kwonly"]
    only += [f"{n}='default'" for n, form in takes if form == "kwdefault"]
    parts = ["self"] * method + plain + default + ["*"] * bool(only) + only + ["**rest"] * rest
    head = f"def made({', '.join(parts)}):\n    seen = locals()\n    "
    body = {
        "def": "return run(seen)",
        "async": "return await run(seen)",
        "promise": "return run(seen)",
        "awaitable": "return run(seen)",
        "wrapper": "return (yield from run(seen))",
    }[kind]
    return compile(("async " if kind == "async" else "") + head + body, "<made>", "exec")


def make(kind: str, method: bool, takes: Any, rest: bool, run: Callable[..., Any], name: str) -> Any:
    namespace: dict[str, Any] = {"run": run}
    exec(compiled(kind, method, takes, rest), namespace)
    function = namespace["made"]
    function.__module__, function.__qualname__ = "made", name
    return function


class World:
    """Something that implementations can be attached to, and that remembers what was called."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.spec = case.spec
        self.calls: list[Any] = []
        self.added: set[int] = set()
        for index in range(len(case.attached)):
            self.add(index)

    def add(self, index: int) -> None:
        if index in self.added or index >= len(self.case.all):
            return
        self.added.add(index)
        self.attach(index, self.case.all[index])

    def attach(self, index: int, does: Does) -> None: ...
    def remove(self, index: int) -> None: ...
    def clear(self) -> None: ...

    def note(self, what: str, seen: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in seen.items() if name != "self"}
        self.calls.append((what, {name: shown(value) for name, value in sorted(given.items())}))
        return {**given, **given.get("rest", {})}

    def function(self, index: int, does: Does) -> Any:
        """The callable that a description stands for."""
        name = f"h{index}"
        make_run = self.runs_around if self.spec.reducer.name == "around" else self.runs
        run = self.wraps(name, does) if does.kind == "wrapper" else make_run(name, does)
        return make(does.kind, does.style == "plugin", does.takes, does.rest, run, name)

    def when(self, index: int, does: Does) -> Any:
        if does.when is None:
            return None
        kind, *rest = does.when
        if kind != "predicate":
            return re.compile(rest[0]) if kind == "regex" else rest[0]
        takes, kwargs, answer = rest

        def run(seen):
            given = self.note(f"when h{index}", seen)
            if isinstance(answer, BaseException):
                raise answer.with_traceback(None)
            return (
                "s" in shown(given.get("x", given.get("event", ""))).__str__()
                if answer == "x"
                else answer
            )

        return make("def", False, takes, kwargs, run, f"when{index}")

    def effect(self, does: Does) -> None:
        if does.effect:
            what, index = does.effect
            if what == "clear":
                self.clear()
            elif what == "remove":
                self.remove(index)
            else:
                self.add(len(self.case.attached) + index % 2)

    def runs(self, name: str, does: Does) -> Callable[..., Any]:
        def act(given):
            self.effect(does)
            what, *value = does.action
            if what == "raise":
                raise value[0].with_traceback(None)
            return f"{given.get('x', '')}{name}" if what == "tag" else value[0]

        async def act_later(given):
            await pause()
            return act(given)

        async def run_async(seen):
            given = self.note(name, seen)
            await pause()
            return act(given)

        def run(seen):
            given = self.note(name, seen)
            if does.kind == "promise":
                return act_later(given)
            return Later(lambda: act(given)) if does.kind == "awaitable" else act(given)

        return run_async if does.kind == "async" else run

    def runs_around(self, name: str, does: Does) -> Callable[..., Any]:
        what, *value = does.action

        def call_on(given):
            passing = getattr(self.spec.reducer, "passing", None)
            return given["call_next"](*([f"{given.get('x', '')}>"] if passing else []))

        def act(given):
            self.effect(does)
            if what == "raise":
                raise value[0].with_traceback(None)
            if what == "return":
                return value[0]
            try:
                inner = call_on(given)
            except Exception as error:
                if what != "catch":
                    raise
                return f"caught {type(error).__name__}"
            if hasattr(inner, "__await__"):
                return inner
            return call_on(given) if what == "twice" else f"{inner}{name}" if what == "on" else inner

        async def act_later(given):
            await pause()
            try:
                inner = act(given)
                inner = await inner if hasattr(inner, "__await__") else inner
            except Exception as error:
                if what != "catch":
                    raise
                return f"caught {type(error).__name__}"
            return (
                await call_on(given) if what == "twice" else f"{inner}{name}" if what == "on" else inner
            )

        async def run_async(seen):
            return await act_later(self.note(name, seen))

        def run(seen):
            given = self.note(name, seen)
            return act_later(given) if does.kind in ("promise", "awaitable") else act(given)

        return run_async if does.kind == "async" else run

    def wraps(self, name: str, does: Does) -> Callable[..., Any]:
        what, *value = does.action

        def run(seen):
            self.note(name, seen)
            self.effect(does)
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
                    return self.caught()
                raise
            self.calls.append((name, "given", shown(inner)))
            if what == "after":
                raise Boom("after")
            if what == "again":
                yield
            return None if what == "none" else value[0] if what == "replace" else inner

        return run

    def caught(self) -> Any:
        """A value of the reduced type."""
        kinds = {"collect": ["c"], "flatten": ["c"], "merge": {"c": 1}, "join": "c", "first": None}
        if self.spec.reducer.name == "patch":
            return Verdict(Happened("caught"))
        return kinds.get(self.spec.reducer.name, Happened("caught") if self.spec.event else "s")

    def arguments(self, step: Step) -> dict[str, Any]:
        arguments = dict(step.arguments)
        how = arguments.get("call_next")
        sync = step.sync or self.spec.sync

        def ends(*values):
            self.calls.append(("end", values))
            if how == "raises":
                raise Boom("end")
            return "end"

        async def ends_later(*values):
            return ends(*values)

        if how:
            arguments["call_next"] = ends if sync else ends_later
        return arguments


class Compiled(World):
    """The kernel."""

    def __init__(self, case: Case) -> None:
        self.hooks = Hooks(Catalog(case.spec), fail_closed=case.fail_closed)
        self.offs: dict[int, Callable[[], Any]] = {}
        self.records: list[logging.LogRecord] = []
        if case.traced:
            self.hooks.trace(self.sink)
        for what in case.subscribers:
            self.hooks.subscribe(self.subscriber(what))
        super().__init__(case)

    def sink(self, record: Any) -> None:
        if self.case.traced == "broken":
            raise Boom("sink")

    def subscriber(self, what: str) -> Callable[..., Any]:
        def subscribe(event):
            self.calls.append(("subscriber", shown(event)))
            if what == "raises":
                raise Boom("subscriber")

        return subscribe

    def attach(self, index: int, does: Does) -> None:
        function, when = self.function(index, does), self.when(index, does)
        options: dict[str, Any] = dict.fromkeys(does.options, True)
        if when is not None:
            options["when"] = when
        name = self.spec.name
        if does.style == "plugin":
            mark = hookimpl(specname=name, wrapper=does.kind == "wrapper", **options)
            plugin = type("Plugin", (), {"implementation": mark(function)})()
            self.hooks.add(plugin, name=f"p{index}")
            self.offs[index] = lambda: (
                self.hooks.pm.has_plugin(f"p{index}") and self.hooks.remove(plugin)
            )
        elif does.style == "scope":
            off = self.hooks.scope(does.key).register(name, function, **options)
            by_identity = lambda: self.hooks.scope(does.key).unregister(name, function)  # noqa: E731
            self.offs[index] = off if index % 2 else by_identity
        else:
            off = self.hooks.register(name, function, **options)
            self.offs[index] = off if index % 2 else lambda: self.hooks.unregister(name, function)

    def remove(self, index: int) -> None:
        if index in self.offs:
            self.offs[index]()

    def clear(self) -> None:
        self.hooks.clear(self.spec.name)

    def dispatch(self, step: Step) -> Any:
        arguments = self.arguments(step)
        hooks, name = self.hooks, self.spec.name
        if step.face == "emit":
            return finish(hooks.emit(arguments["event"], arguments["ctx"]))
        if step.face == "run":
            return hooks.run(name, **arguments)
        if step.face == "call" and self.spec.event and len(self.calls) % 2:
            arguments = (arguments["event"], arguments["ctx"])
            return hooks.call_sync(*arguments) if step.sync else finish(hooks.call(*arguments))
        face = step.face if step.face == "call" else f"call_{step.face}"
        if step.sync:
            return getattr(hooks, f"{face}_sync")(name, **arguments)
        if face == "call" and len(arguments) == len(self.spec.params) and len(self.calls) % 3:
            value = hooks[name].fire(*(arguments[p] for p in self.spec.params))
            return value if self.spec.sync else finish(value)
        return finish(getattr(hooks, face)(name, **arguments))

    def logged(self) -> dict[str, list[str]]:
        messages = [record.getMessage() for record in self.records]
        return {
            "warnings": [m for m in messages if m.startswith("hook.async_not_supported")],
            "errors": [m for m in messages if m.startswith("hook.failed")],
        }


class Naive(World):
    """The reference interpreter."""

    def __init__(self, case: Case) -> None:
        self.impls: dict[int, Impl] = {}
        self.log: dict[str, list[str]] = {"warnings": [], "errors": []}
        super().__init__(case)

    def attach(self, index: int, does: Does) -> None:
        options: dict[str, Any] = dict.fromkeys(does.options, True)
        plugin = does.style == "plugin"
        function = self.function(index, does)
        self.impls[index] = Impl(
            types.MethodType(function, object()) if plugin else function,
            f"p{index}" if plugin else f"made.h{index}",
            seq=len(self.added),
            plugin=plugin,
            is_async=does.kind == "async",
            wrapper=does.kind == "wrapper",
            when=self.when(index, does),
            key=does.key,
            on_spent=lambda: self.remove(index),
            **options,
        )

    def remove(self, index: int) -> None:
        self.impls.pop(index, None)

    def clear(self) -> None:
        self.impls = {i: impl for i, impl in self.impls.items() if impl.plugin}

    def dispatch(self, step: Step) -> Any:
        arguments = self.arguments(step)
        run = Dispatch(
            self.spec, list(self.impls.values()), arguments, step.face, step.sync, self.case.fail_closed
        )
        try:
            value = finish(run.run())
        finally:
            name = self.spec.name
            self.log["warnings"] += [
                f"hook.async_not_supported hook={name} adapter={by}" for by in run.warnings
            ]
            self.log["errors"] += run.logged
        for _ in self.case.subscribers:
            self.calls.append(("subscriber", shown(run.arguments["event"])))
        return value

    def logged(self) -> dict[str, list[str]]:
        return self.log


# --- comparing --------------------------------------------------------------------------------------

OWN_ERRORS = re.compile(
    r"(failed: (?:MissingArgument|NotAwaited|WrongResult|Unsettled)): .*?(?=\]?$)", re.S
)


def shown(value: Any) -> Any:
    """A value as something to compare and to read; the wording of the kernel's errors left out."""
    if isinstance(value, str):
        return OWN_ERRORS.sub(r"\1", value)
    if isinstance(value, Verdict):
        trail = [(r.by, r.decision.name, shown(r.changes or {})) for r in value.trail]
        head = (value.decision.name, shown(value.reason), shown(value.event), shown(value.supplied))
        return ("verdict", *head, "withheld" if value.withheld else "", trail)
    if isinstance(value, Outcome):
        return ("outcome", value.plugin_name, value.success, value.result, type(value.error).__name__)
    if isinstance(value, Denied):
        return ("denied", shown(value.reason))
    if isinstance(value, Happened):
        return ("happened", shown(value.x), shown(value.y))
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [shown(v) for v in value]
    return "<callable>" if callable(value) else repr(value)


def outcome(world: World, step: Step) -> Any:
    try:
        return ("returned", shown(world.dispatch(step)))
    except BaseException as error:
        return ("raised", type(error).__name__)


class Capture(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.emit = records.append


def agree(case: Case) -> None:
    kernel, reference = Compiled(case), Naive(case)
    log = logging.getLogger("hookline.hooks")
    handler = Capture(kernel.records)
    log.addHandler(handler)
    propagate, log.propagate = log.propagate, False
    try:
        for step in case.steps:
            got, expected = outcome(kernel, step), outcome(reference, step)
            assert got == expected
            assert kernel.calls == reference.calls
            assert kernel.logged()["warnings"] == reference.logged()["warnings"]
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


def check_agreement(strategy: st.SearchStrategy[Case]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(strategy)
    def check(case):
        agree(case)

    check()


GUARDED = [c for c in VALID if c[0] in ("gate", "patch", "chain")]
WRAPPABLE = [c for c in VALID if c[0] not in ("gate", "outcomes", "around") and c[1] is not DENY]


@pytest.mark.parametrize(("kind", "errors", "order", "sync"), VALID)
def test_kernel_and_reference_agree(kind, errors, order, sync):
    check_agreement(cases(kind, errors, order, sync))


@pytest.mark.parametrize(("kind", "errors", "order", "sync"), GUARDED)
def test_they_agree_on_guards_that_rewrite_what_others_judged(kind, errors, order, sync):
    check_agreement(cases(kind, errors, order, sync, "guards"))


@pytest.mark.parametrize(("kind", "errors", "order", "sync"), WRAPPABLE)
def test_they_agree_on_wrappers_in_wrappers(kind, errors, order, sync):
    check_agreement(cases(kind, errors, order, sync, "wrappers"))
