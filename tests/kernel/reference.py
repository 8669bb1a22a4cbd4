"""The dispatch semantics written naively: no compilation, no cleverness, one page to read.

The kernel compiles each hook to a specialised function; this interpreter decides everything
anew for every call. `test_reference.py` holds the two against each other.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, Union, get_args, get_origin

from hookline.hooks import (
    DENY,
    NEWEST,
    RAISE,
    SKIP,
    CallError,
    Decision,
    Denied,
    HookSpec,
    MissingArgument,
    NotAwaited,
    Outcome,
    RegistrationError,
    Ruling,
    Unsettled,
    Verdict,
    WrongResult,
)

ABSENT = object()


@dataclass(eq=False)
class Impl:
    """One attached callable, as registered."""

    function: Callable[..., Any]
    name: str
    seq: int
    plugin: bool = False
    is_async: bool = False
    wrapper: bool = False
    guard: bool = False
    tryfirst: bool = False
    trylast: bool = False
    once: bool = False
    when: Any = None
    key: Any = None
    """The scope it was registered under."""
    on_spent: Callable[[], None] = lambda: None
    spent: bool = False


@dataclass
class Dispatch:
    """One call of one hook: `finish(Dispatch(...).run())`, or awaited, gives its result."""

    spec: HookSpec
    attached: list[Impl]
    arguments: dict[str, Any]
    face: str = "call"
    sync: bool = False
    fail_closed: bool = False
    warnings: list[str] = field(default_factory=list)
    """Who was skipped because nothing can be awaited."""
    logged: list[str] = field(default_factory=list)
    """Who failed and was left out."""
    raw: list[Any] = field(default_factory=list)
    """What each handler returned, for `emit`."""

    def __post_init__(self) -> None:
        gate = self.spec.reducer.name == "gate"
        self.sync = self.sync or self.spec.sync
        self.errors = DENY if gate and self.fail_closed else self.spec.errors
        self.how = self.spec.reducer.name
        if self.face in ("first", "many", "run") and (self.face, self.how) != ("run", "chain"):
            if self.how in ("gate", "patch", "around"):
                raise CallError("the verdict would be lost")
            self.how = {"first": "first", "many": "everything", "run": "collect"}[self.face]
            self.errors = SKIP if self.spec.reducer.name == "outcomes" else self.errors
        needed = {"chain": "parameter", "merge": "into"}.get(self.how)
        name = getattr(self.spec.reducer, needed) if needed else None
        if self.how in ("gate", "patch", "around"):
            name = "call_next" if self.how == "around" else "event"
        if name is not None and name not in self.arguments:
            raise CallError(f"{name} must be passed")
        self.values: list[Any] = []
        self.seen: set[Any] = set()
        self.stopped = False
        self.verdict = Verdict(self.arguments.get("event"))
        everyone = run_order(self.spec, [i for i in self.attached if self.in_scope(i)])
        self.order = [i for i in everyone if not i.wrapper]
        self.wrappers = [i for i in everyone if i.wrapper and self.face in ("call", "emit")]

    def in_scope(self, impl: Impl) -> bool:
        if impl.key is None:
            return True
        parameter, _, attribute = (self.spec.scope or "").partition(".")
        key = self.arguments.get(parameter)
        return impl.key == (getattr(key, attribute, None) if attribute else key)

    async def run(self) -> Any:
        value = await self.within(self.wrappers)
        if isinstance(value, Verdict):
            self.set("event", value.event)
        return self.raw if self.face == "emit" else value

    # --- wrappers: the first in run order is the outermost ------------------------------------

    async def within(self, wrappers: list[Impl]) -> Any:
        if not wrappers:
            return await self.core()
        outermost, inner = wrappers[0], wrappers[1:]
        try:
            generator = self.begin(outermost)
        except Exception:
            if self.errors is RAISE:
                raise
            self.logged.append(outermost.name)
            generator = ABSENT
        if generator is ABSENT:
            return await self.within(inner)
        value = error = None
        try:
            value = await self.within(inner)
        except BaseException as raised:
            error = raised
        try:
            return self.resume(generator, value, error)
        except Exception:
            if self.errors is RAISE or error is not None:
                raise
            self.logged.append(outermost.name)
            return value

    def begin(self, impl: Impl) -> Any:
        given = bind(self.spec, impl.function, impl.plugin, self.arguments)
        if not self.holds(impl, self.arguments):
            return ABSENT
        generator = impl.function(**given)
        try:
            next(generator)
        except StopIteration:
            raise RegistrationError("did not yield") from None
        return generator

    def resume(self, generator: Any, value: Any, error: BaseException | None) -> Any:
        try:
            generator.throw(error) if error is not None else generator.send(value)
        except StopIteration as stop:
            replaced = stop.value
        else:
            generator.close()
            raise RegistrationError("yielded twice")
        if self.how == "notify":
            return None
        if replaced is None and self.how == "first":
            return None
        classes = {"collect": list, "flatten": list, "merge": dict, "join": str, "patch": Verdict}
        if replaced is None or not fits(replaced, classes.get(self.how, self.spec.result)):
            raise WrongResult("a wrapper must return the reduced type")
        return replaced

    # --- the implementations ------------------------------------------------------------------

    async def core(self) -> Any:
        if self.how == "around":
            return await self.inner(self.order, self.arguments)
        guarded = self.how in ("gate", "patch", "chain")
        guards = [i for i in self.order if i.guard and guarded]
        for impl in self.order:
            if impl not in guards and not self.stopped:
                await self.step(impl)
        last_change = 0
        for index, guard in enumerate(guards):
            before = self.current()
            if not self.stopped:
                await self.step(guard)
            if self.current() != before:
                last_change = index
        for guard in guards[:last_change]:
            if not self.stopped:
                await self.step(guard, again=True)
        return self.reduced()

    async def inner(self, order: list[Impl], arguments: dict[str, Any]) -> Any:
        """What the rest of a middleware chain returns."""
        passing = self.spec.reducer.passing
        if not order:
            value = arguments["call_next"](*([arguments[passing]] if passing else []))
            return value if self.sync else await value

        def call_next(*values: Any) -> Any:
            changed = {**arguments, **({passing: values[0]} if passing else {})}
            rest = self.inner(order[1:], changed)
            return finish(rest) if self.sync else rest

        given = {**arguments, "call_next": call_next}
        try:
            value = await self.ask(order[0], given)
        except NotAwaited:
            self.warnings.append(order[0].name)
            value = ABSENT
        return await self.inner(order[1:], arguments) if value is ABSENT else value

    async def step(self, impl: Impl, again: bool = False) -> None:
        """Run one implementation and fold its result, or its failure, in."""
        before = self.current()
        try:
            value = await self.ask(impl, self.arguments)
            if value is ABSENT:
                return
            self.fold(impl, value)
            if again and self.current() != before:
                raise Unsettled("a guard rewrote again")
            if not again or value is not None:
                self.raw.append(value)
        except Exception as error:
            self.failed(impl, error)

    async def ask(self, impl: Impl, arguments: dict[str, Any]) -> Any:
        """What one implementation returns; ABSENT when it does not take part."""
        try:
            given = bind(self.spec, impl.function, impl.plugin, arguments)
            if not self.holds(impl, arguments):
                return ABSENT
        except MissingArgument:
            if self.used_up(impl):
                return ABSENT
            raise
        if self.used_up(impl):
            return ABSENT
        if impl.is_async and self.sync:
            raise NotAwaited("is async")
        value = impl.function(**given)
        if hasattr(value, "__await__"):
            if self.sync:
                getattr(value, "close", lambda: None)()
                raise NotAwaited("returned an awaitable")
            value = await value
        if (
            value is not None
            and self.spec.reducer.name != "notify"
            and not fits(value, self.spec.result)
        ):
            raise WrongResult("is not of the hook's result type")
        return value

    def used_up(self, impl: Impl) -> bool:
        """Whether it was to run once, and did; if not, this is that once."""
        used_up = impl.once and impl.spent
        if impl.once and not impl.spent:
            impl.spent = True
            impl.on_spent()
        return used_up

    def holds(self, impl: Impl, arguments: dict[str, Any]) -> bool:
        """Whether its filter lets it run."""
        when, match = impl.when, self.spec.match
        if when is None:
            return True
        if callable(when):
            return bool(when(**bind(self.spec, when, impl.plugin, arguments)))
        source = "event" if self.spec.event else match
        if source not in arguments:
            raise MissingArgument(source)
        text = str(getattr(arguments["event"], match) if self.spec.event else arguments[match])
        if isinstance(when, re.Pattern):
            return when.fullmatch(text) is not None
        return any(fnmatchcase(text, part) for part in when.split("|"))

    # --- results ------------------------------------------------------------------------------

    def fold(self, impl: Impl, value: Any) -> None:
        reducer = self.spec.reducer
        if self.how == "outcomes":
            self.values.append(Outcome(impl.name, True, value))
        elif self.how == "everything" or (value is None and getattr(reducer, "keep_none", False)):
            self.values += (
                [value] if self.how in ("everything", "collect") and self.face != "run" else []
            )
        elif value is None or self.how == "notify":
            pass
        elif self.how == "first":
            self.values, self.stopped = [value], True
        elif self.how == "flatten":
            fresh = []
            seen = set(self.seen)
            for item in value:
                key = getattr(item, reducer.unique) if reducer.unique else object()
                fresh += [item] if key not in seen else []
                seen.add(key)
            self.values += fresh
            self.seen = seen
        elif self.how == "merge" and reducer.into:
            into = self.arguments[reducer.into]
            self.set(reducer.into, merged(into, value, reducer.deep))
        elif self.how == "chain":
            self.replace(value)
        elif self.how in ("gate", "patch"):
            ruling = value.verdict()
            if not isinstance(ruling, Ruling):
                raise WrongResult("verdict() must return a Ruling")
            self.rule(impl, ruling.decision, ruling.reason, ruling.changes)
        else:
            self.values.append(value)

    def failed(self, impl: Impl, error: Exception) -> None:
        text = f"{impl.name} failed: {type(error).__name__}{f': {error}' if str(error) else ''}"
        if isinstance(error, NotAwaited):
            self.warnings.append(impl.name)
        if self.how == "outcomes":
            self.values.append(Outcome(impl.name, False, None, error))
        elif impl.guard or self.errors is DENY:
            self.denied(impl, text)
        elif self.errors is RAISE and not isinstance(error, NotAwaited):
            raise error
        elif not isinstance(error, NotAwaited):
            self.logged.append(impl.name)

    def denied(self, impl: Impl, text: str) -> None:
        """A guard failed, or anybody where errors deny."""
        reducer = self.spec.reducer
        self.raw.append(Denied(text))
        if self.how == "gate":
            self.rule(impl, Decision.DENY, text, None)
        elif self.how == "patch":
            text = f"[withheld: {text}]"
            value = reducer.withheld(text) if reducer.withheld else text
            self.rule(impl, Decision.ALLOW, text, {reducer.field: value})
            self.verdict.withheld = self.stopped = True
        elif self.how == "chain":
            self.replace(f"[withheld: {text}]")
            self.stopped = True
        elif reducer.name == "first":
            self.values.append(False if reducer.deny is None else reducer.deny)
            self.stopped = self.how == "first"

    def rule(self, impl: Impl, decision: Decision, reason: str | None, changes: Any) -> None:
        for name, value in (changes or {}).items():
            if not hasattr(self.verdict.event, name):
                self.verdict.supplied[name] = value
            elif getattr(self.verdict.event, name) != value:
                self.verdict.event = replace(self.verdict.event, **{name: value})
        self.set("event", self.verdict.event)
        if decision > self.verdict.decision:
            self.verdict.decision, self.verdict.reason = decision, reason
        self.verdict.trail.append(Ruling(decision, reason, changes, impl.name))

    def replace(self, value: Any) -> None:
        """Give the next one of a chain this value, and the same in the record that carries it."""
        parameter, carrier = self.spec.reducer.parameter, self.spec.reducer.carrier
        self.set(parameter, value)
        if carrier and self.arguments.get(carrier) is not None:
            self.set(carrier, replace(self.arguments[carrier], **{parameter: value}))

    def set(self, parameter: str, value: Any) -> None:
        self.arguments = {**self.arguments, parameter: value}

    def current(self) -> Any:
        """What guards judge."""
        return (
            self.arguments[self.spec.reducer.parameter] if self.how == "chain" else self.verdict.event
        )

    def reduced(self) -> Any:
        reducer = self.spec.reducer
        lowest_first = self.values[::-1] if self.spec.order is NEWEST else self.values
        match self.how:
            case "first":
                return self.values[0] if self.values else None
            case "collect" | "flatten" | "outcomes" | "everything":
                return self.values
            case "merge" if reducer.into:
                return self.arguments[reducer.into]
            case "merge":
                value: dict[str, Any] = {}
                for fragment in lowest_first:
                    value = merged(value, fragment, reducer.deep)
                return value
            case "join":
                return reducer.separator.join(v for v in lowest_first if v)
            case "chain":
                return self.arguments[reducer.parameter]
            case "gate" | "patch":
                return self.verdict
        return None


def run_order(spec: HookSpec, attached: list[Impl]) -> list[Impl]:
    """tryfirst before and trylast after the rest; guards after all others where they judge."""
    oldest = sorted(attached, key=lambda impl: impl.seq)
    newest = oldest[::-1]
    rest = newest if spec.order is NEWEST else oldest
    order = [i for i in newest if i.tryfirst]
    order += [i for i in rest if not i.tryfirst and not i.trylast]
    order += [i for i in oldest if i.trylast]
    if spec.reducer.name in ("gate", "patch", "chain"):
        order = [i for i in order if not i.guard] + [i for i in order if i.guard]
    return order


def bind(
    spec: HookSpec, function: Callable[..., Any], plugin: bool, arguments: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of one call, by the callable's own names."""
    given: dict[str, Any] = {}
    left = dict(arguments)
    event_first = spec.event is not None and not plugin
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_KEYWORD:
            given.update(left)
            continue
        source = "event" if event_first and p.kind is p.POSITIONAL_OR_KEYWORD else p.name
        event_first = event_first and p.kind is not p.POSITIONAL_OR_KEYWORD
        if source in left:
            given[p.name] = left.pop(source)
        elif p.default is p.empty:
            raise MissingArgument(source)
    return given


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value has the annotation's outer class."""
    if annotation is Any or annotation is object:
        return True
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if isinstance(annotation, type(int | str)) or get_origin(annotation) is Union:
        return any(fits(value, part) for part in get_args(annotation))
    if annotation is float:
        return isinstance(value, float | int)
    return annotation is not None and isinstance(value, get_origin(annotation) or annotation)


def merged(below: dict[str, Any], above: dict[str, Any], deep: bool) -> dict[str, Any]:
    """Two dicts in one; what stands above overwrites."""
    out = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value, deep) if deep and both else value
    return out


def finish(coroutine: Any) -> Any:
    """Run a coroutine that waits for nothing from outside."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
