"""`HookRegistry`: the one class that registers handlers and plugins and calls hooks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from threading import RLock
from types import CoroutineType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from .calls import HookCalls
from .dispatch import adapter
from .errors import RegistrationError, UnknownHook, suggestion
from .hook import Hook, HookBase
from .implementation import Implementation, Options, arguments_of, callable_name
from .observers import Dispatch, Observer, Wants, recorder, subscriber
from .reducers import notify
from .spec import Answer, Catalog, Event, EventClass, HookSpec, Source

if TYPE_CHECKING:
    from .plugins import PluginManager

OnGateError = Literal["allow", "deny"]
"""Whether a gate ignores a plain handler that raises, or denies. A guard that raises always denies."""

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
E = TypeVar("E")
Off = Callable[[], None]
Handler = Callable[..., Any]

EVERY_EVENT = HookSpec("*", ("event", "ctx"), notify, event=Event, doc="Any event.")
_owner: ContextVar[object] = ContextVar("hookline_owner", default=None)


class HookRegistry(HookCalls):
    """Registration and dispatch for every hook of a catalogue."""

    def __init__(self, catalog: Catalog, *, on_gate_error: OnGateError = "allow") -> None:
        self.catalog = catalog.copy()
        self.lock = RLock()
        self._on_gate_error: OnGateError = on_gate_error
        self.observers: tuple[Observer, ...] = ()
        self.nested: dict[Any, Any] = {}
        """Scope keys, each with the key that it is nested in."""
        self._owned: dict[object, list[Off]] = {}
        """What removes the registrations of each owner."""
        self._counter = count(1)
        self._pm: PluginManager | None = None
        self._hooks = {}  # made when first asked for: most registries use few of the declared hooks

    # --- plugins and declarations ---------------------------------------------------------------

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
        """Unregister a plugin, given the plugin or its name."""
        name = plugin if isinstance(plugin, str) else self.pm.get_name(plugin)
        if name is None or not self.pm.has_plugin(name):
            raise RegistrationError(f"no such plugin: {plugin!r}")
        self.pm.unregister(name=name)

    def declare(self, source: Source) -> None:
        """Declare further hooks, from a family class, an event class or a module."""
        with self.lock:
            known = set(self.catalog)
            new = [spec for spec in self.catalog.declare(source) if spec.name not in known]
            self.own(partial(self.undeclare, [spec.name for spec in new]))
            if self._pm is not None and new:
                self._pm.declare_to_pluggy(new)
                for spec in new:
                    self.attach(self._pm.optional_implementations(spec.name))

    def undeclare(self, names: Iterable[str]) -> None:
        """Remove declared hooks, with everything that is attached to them."""
        with self.lock:
            for name in [name for name in names if name in self.catalog]:
                event = self.catalog.pop(name).event
                self._hooks.pop(name, None)
                self._hooks.pop(event, None)
                if self._pm is not None:
                    self._pm.forget(name)

    def attach(self, implementations: Iterable[Implementation]) -> None:
        """Put checked implementations on their hooks."""
        with self.lock:
            for impl in implementations:
                self[impl.spec.name].attach(impl)

    def detach(self, keep: Callable[[Implementation], bool]) -> None:
        """Remove implementations from all hooks and scopes, except those that `keep` accepts."""
        with self.lock:
            for hook in self.made():
                for key in (None, *hook.scope_keys()):
                    hook.detach(keep, key)

    def next_seq(self) -> int:
        """Return the place of the next registration; one counter orders plugins and handlers."""
        return next(self._counter)

    # --- handlers -------------------------------------------------------------------------------

    @overload
    def register(
        self,
        hook: EventClass[E, R],
        handler: Callable[[E], Answer[R]] | Callable[[E, Any], Answer[R]] | Callable[[], Answer[R]],
        **options: Unpack[Options],
    ) -> Off: ...
    @overload
    def register(self, hook: str, handler: Handler, **options: Unpack[Options]) -> Off: ...
    def register(self, hook: Any, handler: Handler, **options: Unpack[Options]) -> Off:
        """Attach a handler; the callable that is returned removes it."""
        return self.register_under(None, hook, handler, options)

    @overload
    def on(self, hook: EventClass[E, R], **options: Unpack[Options]) -> Attach[E, R]: ...
    @overload
    def on(
        self, hook: str, **options: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Registered[P, R]]: ...
    def on(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler; it is returned as it is, with `.off()` on it."""
        return decorator(lambda handler: self.register_under(None, hook, handler, options))

    def register_under(self, key: Any, hook: Any, handler: Handler, options: Options) -> Off:
        """Attach a handler for dispatches under a scope key, or for all if the key is None."""
        found: HookBase = self[hook]
        if key is not None and found.spec.scope is None:
            raise RegistrationError(
                f"hook {found.spec.name!r} carries no scope key, so a scoped handler would never run"
            )
        if not callable(handler):
            raise RegistrationError(not_a_handler(handler))
        for option in options.keys() - Options.__annotations__ if options else ():
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
            self.own(off)
        return off

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
        """Remove the handlers of one hook, or of all; plugins and observers stay."""
        with self.lock:
            for found in [self[hook]] if hook is not None else self.made():
                for key in (None, *found.scope_keys()):
                    found.detach(lambda impl: impl.plugin is not None, key)

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

    # --- scopes ---------------------------------------------------------------------------------

    def scope(self, key: Any) -> Scope:
        """Return a view whose registrations only dispatches under that key see."""
        return Scope(self, key)

    def nest(self, key: Any, within: Any) -> Off:
        """Let dispatches under a key use the handlers of another scope too, until this is undone.

        A subagent's session is nested in its parent's: what guards the parent guards it.
        """
        if within in (None, key) or key in self.line_of(within):
            raise RegistrationError(f"scope {key!r} cannot be nested in {within!r}")

        def undo() -> None:
            with self.lock:
                self.nested.pop(key, None)
                for hook in self.made():
                    hook.forget(key)

        with self.lock:
            self.nested[key] = within
        return undo

    def line_of(self, key: Any) -> list[Any]:
        """Return a scope key and the keys that it is nested in, from the inside out."""
        line: list[Any] = []
        while key is not None:
            line.append(key)
            key = self.nested.get(key)
        return line

    # --- observers ------------------------------------------------------------------------------

    def subscribe(self, function: Callable[..., Any]) -> Off:
        """Call a function with every event after its handlers; what it returns is dropped."""
        arguments = arguments_of(EVERY_EVENT, function, by_position=True)
        call = adapter(function, arguments, EVERY_EVENT.params)
        return self.observe(subscriber(callable_name(function), call))

    def trace(self, sink: Callable[[Dispatch], Any], wants: Wants | None = None) -> Off:
        """Call a function with a record of every dispatch, or those of the hooks that it wants."""
        return self.observe(recorder(sink, wants))

    def observe(self, observer: Observer) -> Off:
        """Add an observer, the general form of `subscribe` and `trace`."""

        def off() -> None:
            with self.lock:
                self.observers = tuple(each for each in self.observers if each is not observer)
                self._all_changed()

        with self.lock:
            self.observers = (*self.observers, observer)
            self._all_changed()
            self.own(off)
        return off

    def _all_changed(self) -> None:
        for hook in self.made():
            hook.changed()

    # --- owners ---------------------------------------------------------------------------------

    @contextmanager
    def owner(self, owner: object) -> Generator[None, None, None]:
        """Let an owner have everything that is registered or declared in a `with` block."""
        token = _owner.set(owner)
        try:
            yield
        finally:
            _owner.reset(token)

    def own(self, undo: Off) -> None:
        """Remember how to undo something, for the current owner."""
        owner = _owner.get()
        if owner is not None:
            self._owned.setdefault(owner, []).append(undo)

    def remove_owned(self, owner: object) -> None:
        """Remove everything that an owner has, as far as it is still there."""
        with self.lock:
            for undo in reversed(self._owned.pop(owner, [])):
                undo()

    # --- inspection -----------------------------------------------------------------------------

    @overload
    def __getitem__(self, hook: EventClass[E, R]) -> Hook[E, R]: ...
    @overload
    def __getitem__(self, hook: str) -> HookBase: ...
    def __getitem__(self, hook: Any) -> Any:
        try:
            return self._hooks[hook]
        except (KeyError, TypeError):
            return self._make(hook)

    def _make(self, hook: Any) -> HookBase:
        """Make the hook with this name or event class, at its first use."""
        with self.lock:
            if isinstance(hook, str):
                spec = self.catalog.get(hook)
            else:
                spec = next((s for s in self.catalog.values() if s.event and s.event is hook), None)
            if spec is None:
                events = [s.event.__name__ for s in self.catalog.values() if s.event]
                names = self.catalog if isinstance(hook, str) else events
                raise UnknownHook(getattr(hook, "__name__", str(hook)), names) from None
            made = self._hooks.get(spec.name)
            if made is None:
                made = self._hooks[spec.name] = Hook[Any, Any](self, spec)
                if spec.event is not None:
                    self._hooks[spec.event] = made
            return made

    def made(self) -> list[HookBase]:
        """Return the hooks that were used so far, in the order of their declaration."""
        with self.lock:
            return [self._hooks[name] for name in self.catalog if name in self._hooks]

    def __contains__(self, name: object) -> bool:
        return name in self.catalog

    def has_hooks(self, hook: str) -> bool:
        """Return whether anything is attached; False for an unknown name."""
        return self.handler_count(hook) > 0

    def handler_count(self, hook: str) -> int:
        """Return how many implementations are attached, including plugins' and scoped ones."""
        return self._hooks[hook].count() if hook in self._hooks else 0

    def registered_events(self) -> list[str]:
        """Return the events with something attached."""
        return [hook.spec.name for hook in self.made() if hook.spec.event and hook.count()]

    def report(self) -> dict[str, list[str]]:
        """Return the implementations of each hook by name, in run order."""
        return {
            hook.spec.name: [impl.name for impl in hook.run_order()]
            for hook in self.made()
            if hook.implementations
        }


class Scope:
    """Registrations that only dispatches under one key see; `close()` removes them all."""

    def __init__(self, hooks: HookRegistry, key: Any) -> None:
        if key is None:
            raise RegistrationError("a scope needs a key that is not None")
        self._hooks = hooks
        self.key = key

    def register(self, hook: Any, handler: Handler, **options: Unpack[Options]) -> Off:
        """Attach a handler under this key."""
        return self._hooks.register_under(self.key, hook, handler, options)

    def on(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler under this key."""
        return decorator(lambda handler: self.register(hook, handler, **options))

    def unregister(self, hook: str, handler: Handler) -> bool:
        """Remove a handler from this key; return whether it was there."""
        if hook not in self._hooks:
            return False
        with self._hooks.lock:
            return bool(self._hooks[hook].detach(lambda i: not i.is_of(handler), self.key))

    def handler_count(self, hook: str) -> int:
        """Return how many handlers are attached under this key."""
        return len(self._hooks[hook].scoped(self.key)) if hook in self._hooks else 0

    def close(self) -> None:
        """Remove every handler under this key."""
        with self._hooks.lock:
            for hook in self._hooks.made():
                hook.detach(lambda impl: False, self.key)

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Attach(Protocol[E, R]):
    """The decorator that `hooks.on(SomeEvent)` returns: it takes handlers of that event."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[E, P], Coroutine[Any, Any, R | None]], /
    ) -> Registered[Concatenate[E, P], Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[E, P], R | None], /
    ) -> Registered[Concatenate[E, P], R | None]: ...


class Registered(Protocol[P, R_co]):
    """A handler that `@hooks.on` attached: the handler, with `.off()` on it."""

    off: Off

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the handler."""
        ...


def not_a_handler(given: Any) -> str:
    """Say what is wrong with something that cannot be called."""
    if isinstance(given, CoroutineType):
        given.close()
        name = given.__name__
        return f"a handler is a function, not a coroutine: pass `{name}`, not `{name}(...)`"
    return f"a handler must be callable, not {given!r}"


def once(off: Off) -> Callable[[], bool]:
    """Return a function that is true the first time, in whichever thread, and calls `off` then."""
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
    """Return a decorator that registers a handler and leaves `.off()` on it."""

    def attach(handler: Handler) -> Any:
        earlier = getattr(handler, "off", None)
        off = OffAll([*(earlier if isinstance(earlier, OffAll) else ()), register(handler)])
        try:
            handler.off = off  # pyright: ignore[reportFunctionMemberAccess]
        except AttributeError:  # a method or builtin carries no attributes
            handler = partial(handler)
            handler.off = off  # pyright: ignore[reportAttributeAccessIssue]
        return handler

    return attach


class OffAll(list[Off]):
    """Removes every registration that was made by decorating one handler."""

    def __call__(self) -> None:
        """Remove them."""
        for off in self:
            off()
