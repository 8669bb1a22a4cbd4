"""`Hooks`: the one class through which hooks are registered on and called."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from itertools import count
from threading import RLock
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from .dispatch import Plan, adapter, by_scope, compile_dispatch, require
from .errors import CallError, RegistrationError, UnknownHook, suggestion
from .implementation import Implementation, Options, arguments_of, callable_name
from .layers import Subscriber, middleware, named, observed, wrapped
from .reducers import CAPTURE, DENY, SKIP, Collect, Errors, First, Reducer, notify
from .spec import Catalog, Event, HookSpec, Source
from .trace import Sink

if TYPE_CHECKING:
    from .manager import PluginManager

R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E", bound=Event[Any])
P = ParamSpec("P")
Off = Callable[[], None]
Handler = Callable[..., Any]
Fire = Callable[..., Any]


class Registered(Protocol[P, R]):
    """A handler that `@hooks.on` attached: itself, with `.off()` on it."""

    off: Off

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


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
        attached = [*self.implementations, *self._scopes.get(key, ())]
        return sorted(attached, key=lambda impl: (not impl.wrapper, impl.sort_key))

    def count(self) -> int:
        """How many implementations are attached, scoped ones too."""
        return len(self.implementations) + sum(map(len, self._scopes.values()))

    def without(self, plugins: Iterable[object]) -> Caller:
        """A caller for what remains when these plugins are left out."""
        return Caller(self, frozenset(map(id, plugins)))

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
    ) -> Fire:
        """The compiled function for one way of calling this hook."""
        sync = self.spec.sync if sync is None else sync
        passed = self.spec.params if passed is None else passed
        variant = (face, sync, passed, without)
        found = self._functions.get(key, {}).get(variant)
        if found is None:
            with self._hooks.lock:
                found = self._build(face, sync, passed, without, key)
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
        else:
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
        self, face: str, sync: bool, passed: tuple[str, ...], without: frozenset[int], key: Any
    ) -> Fire:
        chosen = [i for i in self.run_order(key) if id(i.plugin) not in without]
        reducer, errors = self._face(face)
        plan = Plan(
            self.spec,
            tuple(i for i in chosen if not i.wrapper),
            reducer,
            errors,
            sync,
            passed,
            emits=face == "emit",
            traced=bool(self._hooks.sinks),
        )
        require(plan)
        wrappers = tuple(i for i in chosen if i.wrapper) if face in ("call", "emit") else ()
        core = middleware(plan) if reducer.name == "around" else compile_dispatch(plan)
        layered = wrapped(core, plan, wrappers) if wrappers else core
        subscribers = self._hooks.subscribers if self.spec.event is not None else ()
        if plan.emits or plan.traced or subscribers:
            layered = observed(layered, plan, tuple(subscribers), tuple(self._hooks.sinks))
        base = layered if layered is core and reducer.name != "around" else named(layered, plan)
        if key is not None or not self._scopes or self._scope_parameter() not in passed:
            return base

        def under(key: Any) -> Fire:
            return self.function(face, sync=sync, passed=passed, key=key, without=without)

        return by_scope(self.spec, passed, base, self._scopes, under)

    def _scope_parameter(self) -> str:
        return (self.spec.scope or "").partition(".")[0]

    def _face(self, face: str) -> tuple[Reducer, Errors]:
        """The reducer and error policy of one way of calling."""
        spec = self.spec
        errors = spec.errors
        if spec.reducer.name == "gate" and self._hooks.closed:
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
    """Calls one hook without some of its plugins, by name or by position."""

    def __init__(self, hook: Hook, without: frozenset[int]) -> None:
        self._hook = hook
        self._without = without

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The hook's reduced value; awaitable on async hooks."""
        if args:
            kwargs = {**dict(zip(self._hook.spec.params, args, strict=False)), **kwargs}
        passed = self._hook.by_name(kwargs)
        return self._hook.function(passed=passed, without=self._without)(**kwargs)


class Hooks:
    """Registration and dispatch for every hook of a catalogue."""

    def __init__(self, catalog: Catalog, *, fail_closed: bool = False) -> None:
        self.catalog = catalog.copy()
        self.lock = RLock()
        self._closed = fail_closed
        self.subscribers: tuple[Subscriber, ...] = ()
        self.sinks: tuple[Sink, ...] = ()
        self._counter = count(1)
        self._pm: PluginManager | None = None
        self._hooks = {name: Hook(self, spec) for name, spec in self.catalog.items()}
        self._events = {s.event: self._hooks[s.name] for s in self.catalog.values() if s.event}

    # --- plugins ---------------------------------------------------------------------------

    @property
    def pm(self) -> PluginManager:
        """The plugin manager: pluggy's interface, with our checks and our order."""
        with self.lock:
            if self._pm is None:
                from .manager import PluginManager

                self._pm = PluginManager(self)
                self._pm.declare_to_pluggy(self.catalog.values())
            return self._pm

    def add(self, plugin: object, name: str | None = None) -> str | None:
        """Register a plugin: an object or module whose hooks are marked with `@hookimpl`."""
        return self.pm.register(plugin, name)

    def remove(self, plugin: object) -> None:
        """Unregister a plugin, given itself or its name."""
        name = plugin if isinstance(plugin, str) else self.pm.get_name(plugin)
        if name is None or not self.pm.has_plugin(name):
            raise RegistrationError(f"no such plugin: {plugin!r}")
        self.pm.unregister(name=name)

    def declare(self, source: Source) -> None:
        """Declare further hooks, from a family class, an event class or a module."""
        with self.lock:
            new = [s for s in self.catalog.declare(source) if s.name not in self._hooks]
            self._hooks.update((spec.name, Hook(self, spec)) for spec in new)
            self._events.update((s.event, self._hooks[s.name]) for s in new if s.event)
            if self._pm is not None and new:
                self._pm.declare_to_pluggy(new)
                for spec in new:
                    self.attach(self._pm.optional_implementations(spec.name))

    def attach(self, implementations: Iterable[Implementation]) -> None:
        """Put checked implementations on their hooks."""
        with self.lock:
            for impl in implementations:
                self._hooks[impl.spec.name].attach(impl)

    def detach_plugin(self, plugin: object) -> None:
        """Take a plugin's implementations off all hooks."""
        with self.lock:
            for hook in self._hooks.values():
                hook.detach(lambda impl: impl.plugin is not plugin)

    def next_seq(self) -> int:
        """The place in the order of the next registration; one counter orders everything."""
        return next(self._counter)

    # --- handlers --------------------------------------------------------------------------

    @overload
    def register(
        self,
        hook: type[E],
        handler: Callable[[E], Any] | Callable[[E, Any], Any] | Callable[[], Any],
        **options: Unpack[Options],
    ) -> Off: ...
    @overload
    def register(self, hook: str, handler: Handler, **options: Unpack[Options]) -> Off: ...
    def register(self, hook: Any, handler: Handler, **options: Unpack[Options]) -> Off:
        """Attach a handler; the callable that is returned removes it again."""
        return self._register(hook, handler, options)

    @overload
    def on(
        self, hook: type[E], **options: Unpack[Options]
    ) -> Callable[[Callable[Concatenate[E, P], R]], Registered[Concatenate[E, P], R]]: ...
    @overload
    def on(
        self, hook: str, **options: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Registered[P, R]]: ...
    def on(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler; it is returned as it is, with `.off()` on it."""
        return decorator(lambda handler: self._register(hook, handler, options))

    def unregister(self, hook: str, handler: Handler) -> bool:
        """Remove a handler, by identity; whether it was there."""
        found = self._hooks.get(hook)
        if found is None:
            return False
        with self.lock:
            return bool(found.detach(lambda i: i.plugin is not None or not i.is_of(handler)))

    def clear(self, hook: str | None = None) -> None:
        """Remove the handlers of one hook, or all; plugins and subscribers stay."""
        with self.lock:
            for found in [self[hook]] if hook is not None else self._hooks.values():
                for key in (None, *found.scope_keys()):
                    found.detach(lambda impl: impl.plugin is not None, key)

    def scope(self, key: Any) -> Scope:
        """A view whose registrations are seen only by dispatches under that key."""
        return Scope(self, key)

    def subscribe(self, subscriber: Callable[..., Any]) -> Off:
        """Observe every event after its handlers; what is returned is dropped."""
        arguments = arguments_of(EVERY_EVENT, subscriber, by_position=True)
        call = adapter(subscriber, arguments, EVERY_EVENT.params)
        entry = Subscriber(callable_name(subscriber), call)
        return self._observe("subscribers", entry)

    def trace(self, sink: Sink) -> Off:
        """Observe every dispatch, with what each implementation did."""
        return self._observe("sinks", sink)

    def fail_closed(self) -> None:
        """From now on a failing handler of any gate counts as a deny; there is no way back."""
        with self.lock:
            self._closed = True
            self._all_changed()

    @property
    def closed(self) -> bool:
        """Whether every gate fails closed."""
        return self._closed

    # --- calling ---------------------------------------------------------------------------

    def call(self, hook: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Dispatch through the declared reducer: a hook by name, or an event (and its context)."""
        found, kwargs = self._called(hook, args, kwargs)
        fire = self._fire(found, kwargs)
        return ready(fire, kwargs) if found.spec.sync else fire(**kwargs)

    def call_sync(self, hook: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The same, synchronously: awaitables are skipped with a warning."""
        found, kwargs = self._called(hook, args, kwargs)
        return found.function(sync=True, passed=found.by_name(kwargs))(**kwargs)

    async def emit(self, event: Event[Any], ctx: Any = None) -> list[Any]:
        """Dispatch an event and give what each handler returned, None included."""
        hook = self._events.get(type(event))
        if hook is None:
            raise UnknownHook(type(event).__name__, (e.__name__ for e in self._events))
        return await hook.emit(event, ctx) if hook.live else []

    def run(self, hook: str, /, **kwargs: Any) -> Any:
        """The final value of a chain; of any other hook what was returned, None left out."""
        return self._sync_face("run", hook, kwargs)

    async def call_first(self, hook: str, /, **kwargs: Any) -> Any:
        """The first value that is not None, in the hook's order, by its error policy."""
        return await self._face("first", hook, kwargs)(**kwargs)

    async def call_many(self, hook: str, /, **kwargs: Any) -> list[Any]:
        """What every implementation returned, None included."""
        return await self._face("many", hook, kwargs)(**kwargs)

    def call_first_sync(self, hook: str, /, **kwargs: Any) -> Any:
        """`call_first`, synchronously."""
        return self._sync_face("first", hook, kwargs)

    def call_many_sync(self, hook: str, /, **kwargs: Any) -> list[Any]:
        """`call_many`, synchronously."""
        return self._sync_face("many", hook, kwargs)

    # --- looking ---------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Hook:
        try:
            return self._hooks[name]
        except KeyError:
            raise UnknownHook(name, self._hooks) from None

    def __contains__(self, name: object) -> bool:
        return name in self._hooks

    def has_hooks(self, hook: str) -> bool:
        """Whether anything is attached; False for an unknown name."""
        return self.handler_count(hook) > 0

    def handler_count(self, hook: str) -> int:
        """How many implementations are attached, plugins' and scoped ones too."""
        return self._hooks[hook].count() if hook in self._hooks else 0

    def registered_events(self) -> list[str]:
        """The events with something attached."""
        return [n for n, hook in self._hooks.items() if hook.spec.event and hook.count()]

    def report(self) -> dict[str, list[str]]:
        """Each hook with something attached, and who, in the order in which they run."""
        return {
            name: [impl.name for impl in hook.run_order()]
            for name, hook in self._hooks.items()
            if hook.implementations
        }

    # --- inside ----------------------------------------------------------------------------

    def named(self, hook: Any) -> Hook:
        """The hook of a name or an event class."""
        if isinstance(hook, str):
            return self[hook]
        try:
            return self._events[hook]
        except (KeyError, TypeError):
            shown = getattr(hook, "__name__", repr(hook))
            raise UnknownHook(shown, (e.__name__ for e in self._events)) from None

    def _register(self, hook: Any, handler: Handler, options: Options, key: Any = None) -> Off:
        found = self.named(hook)
        if key is not None and found.spec.scope is None:
            raise RegistrationError(
                f"hook {found.spec.name!r} carries no scope key, so a scoped handler would never run"
            )
        if not callable(handler):
            raise RegistrationError(f"a handler must be callable, not {handler!r}")
        for option in set(options).difference(Options.__annotations__):
            raise RegistrationError(
                f"unknown option {option!r}{suggestion(option, Options.__annotations__)}"
            )
        with self.lock:
            impl = Implementation(found.spec, handler, options, seq=self.next_seq())

            def off() -> None:
                with self.lock:
                    found.detach(lambda other: other is not impl, key)

            if options.get("once"):
                impl.take = once(off)
            found.attach(impl, key)
        return off

    def _observe(self, what: str, entry: Any) -> Off:
        def off() -> None:
            with self.lock:
                setattr(self, what, tuple(e for e in getattr(self, what) if e is not entry))
                self._all_changed()

        with self.lock:
            setattr(self, what, (*getattr(self, what), entry))
            self._all_changed()
        return off

    def _all_changed(self) -> None:
        for hook in self._hooks.values():
            hook.changed()

    def _called(
        self, hook: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Hook, dict[str, Any]]:
        if isinstance(hook, str):
            if args:
                raise CallError(f"hook {hook!r} is called by name: pass its arguments as keywords")
            found = self[hook]
            if found.spec.event is not None:
                kwargs.setdefault("ctx", None)
            return found, kwargs
        found = self.named(type(hook))
        ctx = args[0] if args else kwargs.pop("ctx", None)
        if len(args) > 1 or kwargs:
            raise CallError(f"an event takes its context and nothing else: {found.spec.name!r}")
        return found, {"event": hook, "ctx": ctx}

    def _fire(self, found: Hook, kwargs: dict[str, Any]) -> Fire:
        if kwargs.keys() == found.names:
            return found.fire
        return found.function(passed=found.by_name(kwargs))

    def _face(self, face: str, hook: str, kwargs: dict[str, Any]) -> Fire:
        found = self[hook]
        return found.function(face, sync=False, passed=found.by_name(kwargs))

    def _sync_face(self, face: str, hook: str, kwargs: dict[str, Any]) -> Any:
        found = self[hook]
        return found.function(face, sync=True, passed=found.by_name(kwargs))(**kwargs)


class Scope:
    """Registrations that only dispatches under one key see; `close()` ends them all."""

    def __init__(self, hooks: Hooks, key: Any) -> None:
        if key is None:
            raise RegistrationError("a scope needs a key that is not None")
        self._hooks = hooks
        self.key = key

    def register(self, hook: Any, handler: Handler, **options: Unpack[Options]) -> Off:
        """Attach a handler under this key."""
        return self._hooks._register(hook, handler, options, self.key)  # pyright: ignore[reportPrivateUsage]

    def on(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler under this key."""
        return decorator(lambda handler: self.register(hook, handler, **options))

    def unregister(self, hook: str, handler: Handler) -> bool:
        """Remove a handler from this key; whether it was there."""
        if hook not in self._hooks:
            return False
        with self._hooks.lock:
            return bool(self._hooks[hook].detach(lambda i: not i.is_of(handler), self.key))

    def handler_count(self, hook: str) -> int:
        """How many handlers are attached under this key."""
        return len(self._hooks[hook].scoped(self.key)) if hook in self._hooks else 0

    def close(self) -> None:
        """Remove every handler under this key."""
        with self._hooks.lock:
            for name in self._hooks.catalog:
                self._hooks[name].detach(lambda impl: False, self.key)

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


EVERY_EVENT = HookSpec("*", ("event", "ctx"), notify, event=Event, doc="Any event.")


async def ready(fire: Fire, kwargs: dict[str, Any]) -> Any:
    """A synchronous hook, awaited like any other."""
    return fire(**kwargs)


def once(off: Off) -> Callable[[], bool]:
    """True the first time and never again, from whatever thread; it removes itself."""
    tokens = [True]

    def take() -> bool:
        try:
            tokens.pop()
        except IndexError:
            return False
        off()
        return True

    return take


def decorator(register: Callable[[Handler], Off]) -> Callable[[Any], Any]:
    """A decorator that registers and leaves `.off()` on the handler."""

    def attach(handler: Handler) -> Any:
        offs = [register(handler)]
        earlier = getattr(handler, "off", None)
        if isinstance(earlier, OffAll):
            offs = [*earlier.offs, *offs]
        try:
            handler.off = OffAll(offs)  # pyright: ignore[reportFunctionMemberAccess]
            return handler
        except AttributeError:  # a method or builtin carries no attributes
            return WithOff(handler, OffAll(offs))

    return attach


class OffAll:
    """Removes every registration that was made by decorating one handler."""

    def __init__(self, offs: list[Off]) -> None:
        self.offs = offs

    def __call__(self) -> None:
        for off in self.offs:
            off()


class WithOff(Generic[P, R]):
    """Stands for a decorated callable that cannot carry `.off()` itself."""

    def __init__(self, handler: Callable[P, R], off: Off) -> None:
        self.handler = handler
        self.off = off

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.handler(*args, **kwargs)
