"""`Hooks`: the one class through which hooks are registered on and called."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import count
from threading import RLock
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from .code import adapter
from .errors import CallError, RegistrationError, UnknownHook, suggestion
from .hook import Fire, Hook
from .implementation import Implementation, Options, arguments_of, callable_name
from .observers import Dispatch, Sink, Subscriber, Watch
from .reducers import notify
from .spec import Catalog, Event, HookSpec, Source

if TYPE_CHECKING:
    from .plugins import PluginManager

OnGateError = Literal["allow", "deny"]
"""Whether a gate ignores a plain handler that raises, or denies. A guard that raises always denies."""

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
E = TypeVar("E", bound=Event[Any])
P = ParamSpec("P")
Off = Callable[[], None]
Handler = Callable[..., Any]


class Hooks:
    """Registration and dispatch for every hook of a catalogue."""

    def __init__(self, catalog: Catalog, *, on_gate_error: OnGateError = "allow") -> None:
        self.catalog = catalog.copy()
        self.lock = RLock()
        self._on_gate_error: OnGateError = on_gate_error
        self.subscribers: tuple[Subscriber, ...] = ()
        self.sinks: tuple[Sink, ...] = ()
        self.watches: tuple[Watch, ...] = ()
        self.nested: dict[Any, Any] = {}
        """Scope keys, each with the one that it is nested in."""
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
                from .plugins import PluginManager

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

    def undeclare(self, names: Iterable[str]) -> None:
        """Take declared hooks back, with whatever is attached to them."""
        with self.lock:
            self.catalog.remove(names := [name for name in names if name in self._hooks])
            for name in names:
                event = self._hooks.pop(name).spec.event
                if event is not None:
                    del self._events[event]
                if self._pm is not None:
                    self._pm.forget(name)

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
        """Remove the newest registration of a handler, by identity; return whether there was one."""
        found = self._hooks.get(hook)
        if found is None:
            return False
        with self.lock:
            own = [i for i in found.implementations if i.plugin is None and i.is_of(handler)]
            newest = max(own, key=lambda i: i.seq, default=None)
            return newest is not None and bool(found.detach(lambda i: i is not newest))

    def clear(self, hook: str | None = None) -> None:
        """Remove the handlers of one hook, or all; plugins and subscribers stay."""
        with self.lock:
            for found in [self[hook]] if hook is not None else self._hooks.values():
                for key in (None, *found.scope_keys()):
                    found.detach(lambda impl: impl.plugin is not None, key)

    def scope(self, key: Any) -> Scope:
        """A view whose registrations are seen only by dispatches under that key."""
        return Scope(self, key)

    def nest(self, key: Any, within: Any) -> Off:
        """Let dispatches under a key see the handlers of another scope too, until it is undone.

        A subagent's session is nested in its parent's: what guards the parent guards it.
        """
        if within in (None, key) or key in self.line_of(within):
            raise RegistrationError(f"scope {key!r} cannot be nested in {within!r}")

        def undo() -> None:
            with self.lock:
                self.nested.pop(key, None)
                for hook in self._hooks.values():
                    hook.forget(key)

        with self.lock:
            self.nested[key] = within
        return undo

    def line_of(self, key: Any) -> list[Any]:
        """A scope key, and the ones that it is nested in, from the inside out."""
        line: list[Any] = []
        while key is not None:
            line.append(key)
            key = self.nested.get(key)
        return line

    def subscribe(self, subscriber: Callable[..., Any]) -> Off:
        """Observe every event after its handlers; what is returned is dropped."""
        arguments = arguments_of(EVERY_EVENT, subscriber, by_position=True)
        call = adapter(subscriber, arguments, EVERY_EVENT.params)
        entry = Subscriber(callable_name(subscriber), call)
        return self._observe("subscribers", entry)

    def watch(self, watch: Watch) -> Off:
        """Observe dispatches of hooks that have something attached; all others stay as they are."""
        return self._observe("watches", watch)

    def trace(self, sink: Callable[[Dispatch], Any]) -> Off:
        """Observe every dispatch, with what each implementation did."""
        return self._observe("sinks", sink)

    @property
    def on_gate_error(self) -> OnGateError:
        """What an exception in a plain handler of a gate does; `"deny"` cannot be taken back."""
        return self._on_gate_error

    @on_gate_error.setter
    def on_gate_error(self, choice: OnGateError) -> None:
        with self.lock:
            if choice != "deny" and self._on_gate_error == "deny":
                raise RegistrationError('on_gate_error = "deny" cannot be taken back')
            self._on_gate_error = choice
            self._all_changed()

    # --- calling ---------------------------------------------------------------------------

    def call(self, hook: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Dispatch through the declared reducer: a hook by name, or an event (and its context)."""
        found = self._called(hook, args, kwargs)
        fire = found.fire if kwargs.keys() == found.names else self._partly(found, kwargs)
        return ready(fire, **kwargs) if found.spec.sync else fire(**kwargs)

    def call_sync(self, hook: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The same, synchronously: awaitables are skipped with a warning."""
        found = self._called(hook, args, kwargs)
        if found.spec.sync and kwargs.keys() == found.names:
            return found.fire(**kwargs)
        return found.function(sync=True, passed=found.by_name(kwargs))(**kwargs)

    async def emit(self, event: Event[Any], ctx: Any = None) -> list[Any]:
        """Dispatch an event and give what each handler returned, None included."""
        hook = self._events.get(type(event))
        if hook is None:
            raise UnknownHook(type(event).__name__, (e.__name__ for e in self._events))
        if not hook.live:
            return []
        results = hook.emit(event, ctx)
        return results if hook.spec.sync else await results

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

    def _called(self, hook: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hook:
        """The hook that a call means; an event and its context become arguments by name."""
        if isinstance(hook, str):
            if args:
                raise CallError(f"hook {hook!r} is called by name: pass its arguments as keywords")
            found = self._hooks.get(hook)
            if found is None:
                raise UnknownHook(hook, self._hooks)
            if found.spec.event is not None:
                kwargs.setdefault("ctx", None)
            return found
        found = self.named(type(hook))
        if len(args) > 1 or kwargs.keys() - {"ctx"}:
            raise CallError(f"an event takes its context and nothing else: {found.spec.name!r}")
        kwargs["event"] = hook
        kwargs["ctx"] = args[0] if args else kwargs.get("ctx")
        return found

    def _partly(self, found: Hook, kwargs: dict[str, Any]) -> Fire:
        return found.function(passed=found.by_name(kwargs))

    def _face(self, face: str, hook: str, kwargs: dict[str, Any]) -> Fire:
        found = self._called(hook, (), kwargs)
        fire = found.function(face, sync=found.spec.sync, passed=found.by_name(kwargs))
        return partial(ready, fire) if found.spec.sync else fire

    def _sync_face(self, face: str, hook: str, kwargs: dict[str, Any]) -> Any:
        found = self._called(hook, (), kwargs)
        return found.function(face, sync=True, passed=found.by_name(kwargs))(**kwargs)


EVERY_EVENT = HookSpec("*", ("event", "ctx"), notify, event=Event, doc="Any event.")


async def ready(fire: Fire, /, **kwargs: Any) -> Any:
    """A synchronous hook, awaited like any other."""
    return fire(**kwargs)


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


class Registered(Protocol[P, R_co]):
    """A handler that `@hooks.on` attached: itself, with `.off()` on it."""

    off: Off

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the handler."""
        ...


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
        """Remove them."""
        for off in self.offs:
            off()


class WithOff(Generic[P, R]):
    """Stands for a decorated callable that cannot carry `.off()` itself."""

    def __init__(self, handler: Callable[P, R], off: Off) -> None:
        self.handler = handler
        self.off = off

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler."""
        return self.handler(*args, **kwargs)
