"""Calling by name: `hooks.call` and the other methods of `Hooks` that dispatch a hook.

`run`, `call_first`, `call_many` and the methods ending in `_sync` exist for code written for other
hook systems. Each looks up a function compiled for its meaning and the names of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from .errors import CallError, UnknownHook
from .reducers import CAPTURE, DENY, SKIP, Collect, Errors, First, Reducer

if TYPE_CHECKING:
    from .hook import Hook
    from .spec import Event, HookSpec

FACES = {
    "call": ("call", False),
    "call_sync": ("call", True),
    "run": ("run", True),
    "call_first": ("first", False),
    "call_first_sync": ("first", True),
    "call_many": ("many", False),
    "call_many_sync": ("many", True),
}
"""For each method: how results are reduced, and whether the call is synchronous."""


def face_reducer(spec: HookSpec, face: str, on_gate_error: str) -> tuple[Reducer, Errors]:
    """Return the reducer and the error policy for one way of calling a hook."""
    reducer, errors = spec.reducer, spec.errors
    if reducer.decides and on_gate_error == "deny":
        errors = DENY
    if face in ("call", "emit") or (face == "run" and reducer.replaces):
        return reducer, errors
    if reducer.folds or reducer.nested:
        raise CallError(
            f"hook {spec.name!r} is a {reducer.name}: its verdict would be lost; use hooks.call"
        )
    reducer = First() if face == "first" else Collect(keep_none=face == "many")
    return reducer, SKIP if errors is CAPTURE else errors


def awaitable(fire: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a synchronous function as one that is awaited."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return fire(*args, **kwargs)

    return call


class Faces:
    """The methods of `Hooks` that dispatch."""

    _hooks: dict[str, Hook]
    _events: dict[type, Hook]

    def call(self, hook: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Dispatch through the declared reducer: a hook by name, or an event (and its context)."""
        if isinstance(hook, str) and not args:
            try:
                fire = self._hooks[hook].named["call"][tuple(kwargs)]
            except KeyError:
                fire = self._face("call", hook, kwargs)
            return fire(**kwargs)
        return self._event("call", hook, args, kwargs)

    def call_sync(self, hook: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Dispatch like `call`, but synchronously: awaitables are skipped with a warning."""
        if isinstance(hook, str) and not args:
            try:
                fire = self._hooks[hook].named["call_sync"][tuple(kwargs)]
            except KeyError:
                fire = self._face("call_sync", hook, kwargs)
            return fire(**kwargs)
        return self._event("call_sync", hook, args, kwargs)

    async def emit(self, event: Event[Any], ctx: Any = None) -> list[Any]:
        """Dispatch an event and return what each handler returned, None included."""
        hook = self._events.get(type(event))
        if hook is None:
            raise UnknownHook(type(event).__name__, (e.__name__ for e in self._events))
        if not hook.live:
            return []
        results = hook.emit(event, ctx)
        return results if hook.spec.sync else await results

    def run(self, hook: str, /, **kwargs: Any) -> Any:
        """Return the final value of a chain; of any other hook the results that are not None."""
        try:
            fire = self._hooks[hook].named["run"][tuple(kwargs)]
        except KeyError:
            fire = self._face("run", hook, kwargs)
        return fire(**kwargs)

    def call_first(self, hook: str, /, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Return the first value that is not None, by the hook's order and error policy."""
        try:
            fire = self._hooks[hook].named["call_first"][tuple(kwargs)]
        except KeyError:
            fire = self._face("call_first", hook, kwargs)
        return fire(**kwargs)

    def call_many(self, hook: str, /, **kwargs: Any) -> Coroutine[Any, Any, list[Any]]:
        """Return what every implementation returned, None included."""
        try:
            fire = self._hooks[hook].named["call_many"][tuple(kwargs)]
        except KeyError:
            fire = self._face("call_many", hook, kwargs)
        return fire(**kwargs)

    def call_first_sync(self, hook: str, /, **kwargs: Any) -> Any:
        """Return the first value that is not None, synchronously."""
        try:
            fire = self._hooks[hook].named["call_first_sync"][tuple(kwargs)]
        except KeyError:
            fire = self._face("call_first_sync", hook, kwargs)
        return fire(**kwargs)

    def call_many_sync(self, hook: str, /, **kwargs: Any) -> list[Any]:
        """Return what every implementation returned, synchronously."""
        try:
            fire = self._hooks[hook].named["call_many_sync"][tuple(kwargs)]
        except KeyError:
            fire = self._face("call_many_sync", hook, kwargs)
        return fire(**kwargs)

    def _face(self, face: str, hook: str, kwargs: dict[str, Any]) -> Callable[..., Any]:
        found = self._hooks.get(hook)
        if found is None:
            raise UnknownHook(hook, self._hooks)
        return found.by_name(face, kwargs)

    def _event(self, face: str, event: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(event, str):
            raise CallError(f"hook {event!r} is called by name: pass its arguments as keywords")
        kind = cast("type[Any]", type(event))
        found = self._events.get(kind)
        if found is None:
            raise UnknownHook(kind.__name__, (e.__name__ for e in self._events))
        if len(args) > 1 or kwargs.keys() - {"ctx"}:
            raise CallError(f"an event takes its context and nothing else: {found.spec.name!r}")
        fire = found.named.get(face, {}).get(("event", "ctx")) or found.by_name(face, ("event", "ctx"))
        return fire(event, args[0] if args else kwargs.get("ctx"))
