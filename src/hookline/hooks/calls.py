"""Calling by name: `hooks.call` and the other methods of `Hooks` that dispatch a hook.

`run`, `call_first`, `call_many` and the methods ending in `_sync` exist for code written for other
hook systems. Each looks up a function compiled for its meaning and the names of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .errors import CallError
from .reducers import CAPTURE, DENY, SKIP, Collect, Errors, First, Reducer

if TYPE_CHECKING:
    from .hook import HookBase
    from .spec import Event, HookSpec
    from .verdict import Collected, Verdict

C = TypeVar("C", bound="Collected")
E = TypeVar("E", bound="Event[Any]")

METHODS = {
    "call": ("call", False),
    "call_sync": ("call", True),
    "run": ("run", True),
    "call_first": ("first", False),
    "call_first_sync": ("first", True),
    "call_many": ("many", False),
    "call_many_sync": ("many", True),
}
"""For each method: how results are reduced, and whether the call is synchronous."""


def reducer_for(spec: HookSpec, meaning: str, on_gate_error: str) -> tuple[Reducer, Errors]:
    """Return the reducer and the error policy for one way of calling a hook."""
    reducer, errors = spec.reducer, spec.errors
    if reducer.decides and on_gate_error == "deny":
        errors = DENY
    if meaning in ("call", "emit") or (meaning == "run" and reducer.replaces):
        return reducer, errors
    if reducer.folds or reducer.nested:
        raise CallError(
            f"hook {spec.name!r} is a {reducer.name}: its verdict would be lost; use hooks.call"
        )
    reducer = First() if meaning == "first" else Collect(keep_none=meaning == "many")
    return reducer, SKIP if errors is CAPTURE else errors


def by_name(method: str, doc: str) -> Callable[..., Any]:
    """Make a method of `Hooks` that calls a hook by name, with the function cached for that call."""

    def call(self: Any, hook: str, /, **kwargs: Any) -> Any:
        try:
            fire = self._hooks[hook].named[method]
        except KeyError:
            fire = self._by_name(method, hook, kwargs)
        return fire(kwargs)

    call.__name__, call.__qualname__, call.__doc__ = method, f"Hooks.{method}", doc
    return call


class HookCalls:
    """The methods of `Hooks` that dispatch."""

    _hooks: dict[Any, HookBase]
    """The hooks that were used so far, by name and by event class."""
    _make: Callable[[Any], HookBase]

    @overload
    def call(self, hook: str, /, **kwargs: Any) -> Coroutine[Any, Any, Any]: ...
    @overload
    def call(  # pyright: ignore[reportOverlappingOverload]
        self, event: Event[None], /, ctx: Any = None
    ) -> Coroutine[Any, Any, None]: ...
    @overload
    def call(self, event: Event[C], /, ctx: Any = None) -> Coroutine[Any, Any, list[C]]: ...
    @overload
    def call(self, event: E, /, ctx: Any = None) -> Coroutine[Any, Any, Verdict[E]]: ...
    def call(self, hook: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Dispatch through the declared reducer: a hook by name, or an event (and its context)."""
        if isinstance(hook, str) and not args:
            try:
                fire = self._hooks[hook].named["call"]
            except KeyError:
                fire = self._by_name("call", hook, kwargs)
            return fire(kwargs)
        return self._event("call", hook, args, kwargs)

    def call_sync(self, hook: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Dispatch like `call`, but synchronously: awaitables are skipped with a warning."""
        if isinstance(hook, str) and not args:
            try:
                fire = self._hooks[hook].named["call_sync"]
            except KeyError:
                fire = self._by_name("call_sync", hook, kwargs)
            return fire(kwargs)
        return self._event("call_sync", hook, args, kwargs)

    async def emit(self, event: Event[Any], ctx: Any = None) -> list[Any]:
        """Dispatch an event and return what each handler returned, None included."""
        hook = self._declared(event)
        if not hook.live:
            return []
        results = hook.emit(event, ctx)
        return results if hook.spec.sync else await results

    run = by_name("run", "Return the final value of a chain; of other hooks the results but None.")
    call_first = by_name("call_first", "Return the first value that is not None; awaited.")
    call_many = by_name("call_many", "Return what every implementation returned; awaited.")
    call_first_sync = by_name("call_first_sync", "Return the first value that is not None.")
    call_many_sync = by_name("call_many_sync", "Return what every implementation returned.")

    def _by_name(self, method: str, hook: str, names: Iterable[str]) -> Callable[[dict[str, Any]], Any]:
        """Return the function for a call by name, which takes the arguments as a dict."""
        return self._make(hook).by_name(method, tuple(names))

    def _event(self, method: str, event: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(event, str):
            raise CallError(f"hook {event!r} is called by name: pass its arguments as keywords")
        name = self._declared(event).spec.name
        if len(args) > 1 or kwargs.keys() - {"ctx"}:
            raise CallError(f"an event takes its context and nothing else: {name!r}")
        fire = self._by_name(method, name, ("event", "ctx"))
        return fire({"event": event, "ctx": args[0] if args else kwargs.get("ctx")})

    def _declared(self, event: Any) -> HookBase:
        kind = cast("type[Any]", type(event))
        return self._hooks.get(kind) or self._make(kind)
