"""`Hook`: one declared hook with what is attached to it, compiled for the ways it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .around import middleware, wrapped
from .code import by_scope, named
from .dispatch import compile_dispatch
from .errors import CallError, suggestion
from .implementation import Implementation
from .observers import Watch, observed, watching
from .plan import Plan, require
from .reducers import CAPTURE, DENY, SKIP, Collect, Errors, First, Reducer
from .spec import HookSpec

if TYPE_CHECKING:
    from .registry import Hooks

Fire = Callable[..., Any]


class Hook:
    """One declared hook and what is attached to it, for call sites.

    Keep the `Hook`, test `hook.live` before building what you would pass, and call
    `hook.fire(...)` with every parameter, by position. `fire` changes when something is
    attached or removed: read it from the hook each time.
    """

    __slots__ = (
        "_emit", "_functions", "_hooks", "_scopes", "fire", "implementations", "live", "names", "spec",
    )  # fmt: skip

    def __init__(self, hooks: Hooks, spec: HookSpec) -> None:
        self._hooks = hooks
        self.spec = spec
        self.implementations: list[Implementation] = []
        self._scopes: dict[Any, list[Implementation]] = {}
        self._functions: dict[Any, dict[Any, Fire]] = {}
        """The compiled functions: by scope key, then by the way of calling."""
        self.names = frozenset(spec.params)
        self.live = False
        self.changed()

    fire: Fire
    _emit: Fire

    def run_order(self, key: Any = None) -> list[Implementation]:
        """Everything attached, wrappers first, in the order in which it runs."""
        attached = [*self.implementations]
        for scope in self._hooks.line_of(key):
            attached += self._scopes.get(scope, ())
        return sorted(attached, key=lambda impl: (not impl.wrapper, impl.sort_key))

    def count(self) -> int:
        """How many implementations are attached, scoped ones too."""
        return len(self.implementations) + sum(map(len, self._scopes.values()))

    def without(self, plugins: Iterable[object]) -> Caller:
        """A caller for what remains when these plugins are left out."""
        return Caller(self, without=frozenset(map(id, plugins)))

    def only(self, implementations: Iterable[Implementation]) -> Caller:
        """A caller for these of its implementations alone."""
        return Caller(self, only=frozenset(map(id, implementations)))

    def attach(self, impl: Implementation, key: Any = None) -> None:
        """Add one; the hook's functions are made anew when next called."""
        if key is None:
            self.implementations.append(impl)
            self.changed()
            return
        first_scope = not self._scopes
        self._scopes.setdefault(key, []).append(impl)
        self._changed_under(key, everywhere=first_scope)

    def detach(self, keep: Callable[[Implementation], bool], key: Any = None) -> int:
        """Remove what is not to be kept, under one scope key or from the shared ones."""
        if key is None:
            kept = [impl for impl in self.implementations if keep(impl)]
            removed = len(self.implementations) - len(kept)
            self.implementations = kept
            if removed:
                self.changed()
            return removed
        own = self._scopes.get(key, [])
        kept = [impl for impl in own if keep(impl)]
        if len(kept) == len(own):
            return 0
        self._scopes[key] = kept
        if not kept:
            del self._scopes[key]
        self._changed_under(key, everywhere=not self._scopes)
        return len(own) - len(kept)

    def exchange(self, old: Iterable[Implementation], new: Iterable[Implementation]) -> None:
        """Put some in the place of others, in one step: no dispatch sees neither."""
        gone = set(map(id, old))
        self.implementations = [*(i for i in self.implementations if id(i) not in gone), *new]
        self.changed()

    def scoped(self, key: Any) -> list[Implementation]:
        """What is attached under one scope key alone."""
        return self._scopes.get(key, [])

    def scope_keys(self) -> list[Any]:
        """The scopes that have a handler here."""
        return list(self._scopes)

    def changed(self) -> None:
        """Forget the compiled functions; the next call makes what it needs."""
        self._functions = {}
        hooks = self._hooks
        observed = hooks.sinks or (self.spec.event is not None and hooks.subscribers)
        self.live = bool(self.implementations or self._scopes or observed)
        self.fire = self._first_fire
        self._emit = self._first_emit

    def function(
        self,
        face: str = "call",
        *,
        sync: bool | None = None,
        passed: tuple[str, ...] | None = None,
        key: Any = None,
        without: frozenset[int] = frozenset(),
        only: frozenset[int] | None = None,
    ) -> Fire:
        """The compiled function for one way of calling this hook."""
        sync = self.spec.sync if sync is None else sync
        passed = self.spec.params if passed is None else passed
        variant = (face, sync, passed, without, only)
        found = self._functions.get(key, {}).get(variant)
        if found is None:
            with self._hooks.lock:
                found = self._build(face, sync, passed, without, only, key)
                self._functions.setdefault(key, {})[variant] = found
        return found

    def by_name(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """The parameters among these names, in the hook's order; another name is an error."""
        given = set(arguments)
        params = self.spec.params
        for name in given.difference(params):
            takes = ", ".join(params) or "no arguments"
            raise CallError(
                f"hook {self.spec.name!r} takes {takes}, not {name!r}{suggestion(name, params)}"
            )
        return tuple(p for p in params if p in given)

    def _changed_under(self, key: Any, *, everywhere: bool) -> None:
        if everywhere:
            self.changed()
            return
        for known in list(self._functions):
            if key in self._hooks.line_of(known):
                del self._functions[known]

    def forget(self, key: Any) -> None:
        """Drop what was compiled under a scope key that is no longer used."""
        self._functions.pop(key, None)

    def _first_fire(self, *args: Any, **kwargs: Any) -> Any:
        with self._hooks.lock:
            fire = self.fire = self.function()
        return fire(*args, **kwargs)

    def _first_emit(self, *args: Any) -> Any:
        with self._hooks.lock:
            emit = self._emit = self.function("emit")
        return emit(*args)

    def emit(self, event: Any, ctx: Any) -> Any:
        """Dispatch an event and give what each handler returned."""
        return self._emit(event, ctx)

    def _build(
        self,
        face: str,
        sync: bool,
        passed: tuple[str, ...],
        without: frozenset[int],
        only: frozenset[int] | None,
        key: Any,
    ) -> Fire:
        chosen = [i for i in self.run_order(key) if id(i.plugin) not in without]
        if only is not None:
            chosen = [i for i in chosen if id(i) in only]
        reducer, errors = self._face(face)
        sinks = self._sinks(chosen)
        wrappers = tuple(i for i in chosen if i.wrapper) if face in ("call", "emit") else ()
        subscribers = self._hooks.subscribers if self.spec.event is not None else ()
        layered_on = wrappers or subscribers or face == "emit" or reducer.name == "around"
        plan = Plan(
            self.spec,
            tuple(i for i in chosen if not i.wrapper),
            reducer,
            errors,
            sync=sync,
            passed=passed,
            emits=face == "emit",
            traced=bool(sinks),
            watched=watching(self.spec, passed, sinks) if sinks and not layered_on else None,
        )
        require(plan)
        core = middleware(plan) if reducer.name == "around" else compile_dispatch(plan)
        layered = wrapped(core, plan, wrappers) if wrappers else core
        if plan.emits or subscribers or (sinks and plan.watched is None):
            layered = observed(layered, plan, tuple(subscribers), sinks)
        base = (
            layered
            if layered is core and reducer.name != "around"
            else named(layered, self.spec, passed)
        )
        if key is not None or not self._scopes or self._scope_parameter() not in passed:
            return base

        def under(key: Any) -> Fire:
            return self.function(face, sync=sync, passed=passed, key=key, without=without, only=only)

        return by_scope(self.spec, passed, base, self._scopes, self._hooks.nested, under)

    def _sinks(self, attached: list[Implementation]) -> tuple[Watch, ...]:
        """Who looks on where these are attached."""
        watches = self._hooks.watches if attached else ()
        picked = (w for w in watches if w.chosen is None or w.chosen(self.spec, attached))
        return (*map(Watch, self._hooks.sinks), *picked)

    def _scope_parameter(self) -> str:
        return (self.spec.scope or "").partition(".")[0]

    def _face(self, face: str) -> tuple[Reducer, Errors]:
        """The reducer and error policy of one way of calling."""
        spec = self.spec
        errors = spec.errors
        if spec.reducer.name == "gate" and self._hooks.on_gate_error == "deny":
            errors = DENY
        if face in ("call", "emit") or (face == "run" and spec.reducer.name == "chain"):
            return spec.reducer, errors
        if spec.reducer.folds or spec.reducer.name == "around":
            raise CallError(
                f"hook {spec.name!r} is a {spec.reducer.name}: its verdict would be lost; "
                "use hooks.call"
            )
        reducer = First() if face == "first" else Collect(keep_none=face == "many")
        return reducer, SKIP if errors is CAPTURE else errors

    def __repr__(self) -> str:
        return f"<Hook {self.spec.name}: {self.count()} attached>"


class Caller:
    """Calls one hook with some of its implementations, by name or by position."""

    def __init__(
        self,
        hook: Hook,
        *,
        without: frozenset[int] = frozenset(),
        only: frozenset[int] | None = None,
    ) -> None:
        self._hook = hook
        self._without = without
        self._only = only

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The hook's reduced value; awaitable on async hooks."""
        if args:
            kwargs = {**dict(zip(self._hook.spec.params, args, strict=False)), **kwargs}
        if self._hook.spec.event is not None:
            kwargs.setdefault("ctx", None)
        passed = self._hook.by_name(kwargs)
        fire = self._hook.function(passed=passed, without=self._without, only=self._only)
        return fire(**kwargs)
