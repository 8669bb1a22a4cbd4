"""`Hook`: one declared hook with what is attached to it, compiled for each way it is called."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from .annotations import type_name
from .around import middleware, wrapped
from .calls import METHODS, reducer_for
from .dispatch import Fire, by_names, by_scope, compile_dispatch, forward, readable_source
from .errors import CallError, suggestion
from .implementation import Implementation, awaitable, finish
from .observers import Observed, listener_of, observed
from .source import Plan
from .spec import HookSpec
from .verdict import Collected, Verdict

if TYPE_CHECKING:
    from .registry import HookRegistry

_left_out: ContextVar[dict[HookBase, frozenset[int]]] = ContextVar("hookline_left_out", default={})  # noqa: B039
"""The plugins that calls in progress leave out, so that two that call the rest do not recurse."""

E = TypeVar("E")
R = TypeVar("R")
C = TypeVar("C", bound=Collected)


sort_key = attrgetter("sort_key")


class Selection(NamedTuple):
    """Some of a hook's implementations."""

    only: frozenset[int] | None = None
    """The ids of the implementations; None for all."""
    without: frozenset[int] = frozenset()
    """The ids of plugins whose implementations are left out."""

    def keeps(self, impl: Implementation) -> bool:
        """Return whether an implementation is one of them."""
        return id(impl.plugin) not in self.without and (self.only is None or id(impl) in self.only)


ALL = Selection()


class Way(NamedTuple):
    """One way of calling a hook; each has a function of its own."""

    meaning: str
    """How results are reduced: `call`, `emit`, `run`, `first` or `many`."""
    sync: bool
    passed: tuple[str, ...]
    selection: Selection = ALL


class HookBase:
    """One declared hook and what is attached to it, for call sites.

    Keep the `Hook`, test `hook.live` before building what you would pass, and call
    `hook.fire(...)` with every parameter, by position. `fire` changes when something is
    attached or removed: read it from the hook each time.
    """

    __slots__ = (
        "_by_names", "_functions", "_hooks", "_scopes", "_way", "emit", "fire", "implementations",
        "live", "named", "names", "spec",
    )  # fmt: skip

    fire: Fire
    emit: Fire
    """Dispatches an event and returns what each handler returned."""

    def __init__(self, hooks: HookRegistry, spec: HookSpec) -> None:
        self._hooks = hooks
        self.spec = spec
        self.implementations: list[Implementation] = []
        self._scopes: dict[Any, list[Implementation]] = {}
        self._functions: dict[Any, dict[Way, Fire]] = {}
        """The compiled functions, by scope key."""
        self.named: dict[str, Fire] = {}
        """The functions for calls by name, by method of `HookRegistry`."""
        self._by_names: dict[tuple[str, tuple[str, ...]], Fire] = {}
        self.names = frozenset(spec.params)
        self._way = Way("call", spec.sync, spec.params)
        self.live = False
        self.changed()

    # --- what is attached -----------------------------------------------------------------------

    def run_order(self, key: Any = None) -> list[Implementation]:
        """Return everything attached, wrappers first, in the order in which it runs."""
        attached = [*self.implementations]
        for scope in self._hooks.line_of(key):
            attached += self._scopes.get(scope, ())
        return sorted(attached, key=sort_key)

    def count(self) -> int:
        """Return how many implementations are attached, including scoped ones."""
        return len(self.implementations) + sum(map(len, self._scopes.values()))

    def scoped(self, key: Any) -> list[Implementation]:
        """Return what is attached under one scope key."""
        return self._scopes.get(key, [])

    def scope_keys(self) -> list[Any]:
        """Return the scopes that have a handler here."""
        return list(self._scopes)

    def attach(self, impl: Implementation, key: Any = None) -> None:
        """Add an implementation, for all dispatches or those under one scope key."""
        if key is None:
            self.implementations.append(impl)
            self.changed()
            return
        first_scope = not self._scopes
        self._scopes.setdefault(key, []).append(impl)
        self._changed_under(key, everywhere=first_scope)

    def detach(self, keep: Callable[[Implementation], bool], key: Any = None) -> int:
        """Remove the implementations that `keep` rejects, and return how many there were."""
        attached = self.implementations if key is None else self._scopes.get(key, [])
        kept = [impl for impl in attached if keep(impl)]
        removed = len(attached) - len(kept)
        if not removed:
            return 0
        if key is None:
            self.implementations = kept
            self.changed()
            return removed
        self._scopes[key] = kept
        if not kept:
            del self._scopes[key]
        self._changed_under(key, everywhere=not self._scopes)
        return removed

    def exchange(self, old: Iterable[Implementation], new: Iterable[Implementation]) -> None:
        """Replace implementations atomically."""
        gone = set(map(id, old))
        self.implementations = [*(i for i in self.implementations if id(i) not in gone), *new]
        self.changed()

    def changed(self) -> None:
        """Forget the compiled functions; the next call compiles what it needs."""
        self._functions = {}
        self.named, self._by_names = {}, {}
        observers = self._hooks.observers
        observed = any(observer.wants(self.spec, ()) for observer in observers) if observers else False
        self.live = bool(self.implementations or self._scopes or observed)
        self.fire = self._first_fire
        self.emit = self._first_emit

    def forget(self, key: Any) -> None:
        """Drop what was compiled under a scope key that is no longer used."""
        self._functions.pop(key, None)

    def _changed_under(self, key: Any, *, everywhere: bool) -> None:
        if everywhere:
            self.changed()
            return
        for known in list(self._functions):
            if key in self._hooks.line_of(known):
                del self._functions[known]

    # --- calling --------------------------------------------------------------------------------

    def without(self, plugins: Iterable[object]) -> HookCaller:
        """Return a caller that leaves out these plugins."""
        return HookCaller(self, Selection(without=frozenset(map(id, plugins))))

    def only(self, implementations: Iterable[Implementation]) -> HookCaller:
        """Return a caller for these of its implementations."""
        return HookCaller(self, Selection(only=frozenset(map(id, implementations))))

    def by_name(self, method: str, names: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
        """Return the function for a call by name, which takes the arguments as a dict.

        The first set of names that a method is called with gets the short way: `named[method]`.
        """
        found = self._by_names.get((method, names))
        if found is None:
            meaning, sync = METHODS[method]
            with self._hooks.lock:
                passed = self.passed(names)
                fire = self.function(Way(meaning, sync or self.spec.sync, passed))
                if self.spec.sync and not sync:
                    fire = awaitable(fire)
                arguments = ", ".join(p if p in names else "None" for p in passed)
                other = partial(self._call_by_name, method)
                found = self._by_names[method, names] = by_names(fire, names, arguments, other)
                self.named.setdefault(method, found)
        return found

    def _call_by_name(self, method: str, arguments: dict[str, Any]) -> Any:
        return self.by_name(method, tuple(arguments))(arguments)

    def passed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the parameters with these names, in the hook's order; another name is an error."""
        params = self.spec.params
        given = set(names)
        for name in given.difference(params):
            takes = ", ".join(params) or "no arguments"
            raise CallError(
                f"hook {self.spec.name!r} takes {takes}, not {name!r}{suggestion(name, params)}"
            )
        if self.spec.event is not None:
            given.add("ctx")  # which has a default
        return tuple(p for p in params if p in given)

    def function(self, way: Way | None = None, key: Any = None) -> Fire:
        """Return the compiled function for one way of calling this hook, under a scope key."""
        way = way or self._way
        found = self._functions.get(key, {}).get(way)
        if found is None:
            with self._hooks.lock:
                found = self._compile(way, key)
                self._functions.setdefault(key, {})[way] = found
                if key is None and way == self._way:
                    self.fire = found
        return found

    def source(self) -> str:
        """Return the generated code that dispatches this hook now, for people to read."""
        with self._hooks.lock:
            plan, wrappers, observers = self._plan(self._way)
            spec = self.spec
            about = [f"{spec.reducer}, {spec.order.value} first, errors: {plan.errors.value}"]
            if spec.check == "class" and len(spec.classes or ()) == 1:
                about.append(f"_T is {type_name(spec.result)}, the class of a result")
            about += [f"wrapped by {impl.place}" for impl in wrappers]
            if observers:
                about.append(f"observers: {len(observers)}")
            if self._scopes:
                about.append(f"scopes with handlers of their own: {len(self._scopes)}")
            if spec.reducer.nested:
                about += ["each implementation calls the next one through call_next:"]
                about += [impl.place for impl in plan.implementations] or ["(nothing is attached)"]
            code = "" if spec.reducer.nested else readable_source(plan)
            return "".join(f"# {line}\n" for line in about) + code

    def _first_fire(self, *args: Any, **kwargs: Any) -> Any:
        return self.function()(*args, **kwargs)

    def _first_emit(self, *args: Any) -> Any:
        with self._hooks.lock:
            emit = self.emit = self.function(self._way._replace(meaning="emit"))
        return emit(*args)

    def _plan(self, way: Way, key: Any = None) -> tuple[Plan, list[Implementation], list[Any]]:
        """Return what decides the function for a way, the wrappers around it and the observers."""
        spec, reducer, errors = (
            self.spec,
            *reducer_for(self.spec, way.meaning, self._hooks.on_gate_error),
        )
        if way.sync and reducer.nested:
            raise CallError(f"hook {spec.name!r} cannot be called synchronously; use hooks.call")
        for name in ("event" if spec.event else None, reducer.carries, reducer.nested and "call_next"):
            if name and name not in way.passed:
                raise CallError(f"a call of hook {spec.name!r} needs the argument {name!r}")
        chosen = self.run_order(key)
        if way.selection is not ALL:
            chosen = [impl for impl in chosen if way.selection.keeps(impl)]
        emits = way.meaning == "emit"
        wrappers = [impl for impl in chosen if impl.wrapper]
        if wrappers:
            chosen = chosen[len(wrappers) :]
            wrappers = wrappers if emits or way.meaning == "call" else []
        observers = [each for each in self._hooks.observers if each.wants(spec, [*wrappers, *chosen])]
        traced = any(each.notes for each in observers)
        listener = None
        if traced and not (wrappers or emits or reducer.nested or any(o.waits for o in observers)):
            listener = listener_of(observers, Observed(spec, way.passed))
        plan = Plan(spec, tuple(chosen), reducer, errors, way.sync, way.passed, emits, traced, listener)
        return plan, wrappers, observers

    def _compile(self, way: Way, key: Any) -> Fire:
        plan, wrappers, observers = self._plan(way, key)
        core = middleware(plan) if plan.reducer.nested else compile_dispatch(plan)
        fire = wrapped(core, plan, wrappers) if wrappers else core
        if plan.emits or (observers and plan.listener is None):
            fire = observed(fire, plan, observers)
        if fire is not core or plan.reducer.nested:  # it takes any arguments: name the parameters
            fire = forward(fire, way.passed, ", ".join(way.passed), self.spec)
        if key is not None or not self._scopes or self.spec.scope_source[0] not in way.passed:
            return fire
        under = partial(self.function, way)
        return by_scope(self.spec, way.passed, fire, self._scopes, self._hooks.nested, under)

    def __repr__(self) -> str:
        return f"<Hook {self.spec.name}: {self.count()} attached>"


class Hook(HookBase, Generic[E, R]):
    """A hook whose types are known: the event that it takes, and what its handlers return.

    `hooks[ToolCallEvent]` is a `Hook[ToolCallEvent, ToolCallEventResult]`, and to fire it gives a
    `Verdict[ToolCallEvent]`. `hooks["tool_call"]` is the same object, without the types.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        fire: EventFire[E, R]  # pyright: ignore[reportIncompatibleMethodOverride]


class EventFire(Generic[E, R]):
    """The function that dispatches an event, for type checkers."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self: EventFire[E, None], event: E, ctx: Any = None, /
        ) -> Coroutine[Any, Any, None]: ...
        @overload
        def __call__(
            self: EventFire[E, C], event: E, ctx: Any = None, /
        ) -> Coroutine[Any, Any, list[C]]: ...
        @overload
        def __call__(self, event: E, ctx: Any = None, /) -> Coroutine[Any, Any, Verdict[E]]: ...
        def __call__(self, event: Any, ctx: Any = None, /) -> Any:
            """Dispatch an event."""


class HookCaller:
    """Calls one hook with some of its implementations, by name or by position."""

    def __init__(self, hook: HookBase, selection: Selection) -> None:
        self._hook = hook
        self._selection = selection

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the hook's reduced value; awaitable on async hooks."""
        spec = self._hook.spec
        if args:
            kwargs = {**dict(zip(spec.params, args, strict=False)), **kwargs}
        outer, selection = _left_out.get(), self._selection
        if selection.without:
            without = selection.without | outer.get(self._hook, frozenset())
            selection = selection._replace(without=without)
        way = Way("call", spec.sync, self._hook.passed(kwargs), selection)
        fire = partial(self._hook.function(way), **kwargs)
        if not selection.without:
            return fire()
        left_out = {**outer, self._hook: selection.without}
        if spec.sync:
            return finish(self._awaited(awaitable(fire), left_out))
        return self._awaited(fire, left_out)

    @staticmethod
    async def _awaited(fire: Callable[[], Any], left_out: dict[HookBase, frozenset[int]]) -> Any:
        token = _left_out.set(left_out)
        try:
            return await fire()
        finally:
            _left_out.reset(token)
