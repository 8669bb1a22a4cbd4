"""`hooks.on`: decorators that attach handlers, one for each event and hook, typed.

    @hooks.on.tool_call(when="shell")
    def no_sudo(event: ToolCallEvent):
        if "sudo" in event.input["command"]:
            return event.deny("not as root")

A type checker compares the parameter and the result of the handler with the event.
`hooks.on(ToolCallEvent)` and `hooks.on("tool_call")` also attach handlers to events and hooks that are
declared elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from .declared_hooks import DeclaredHooks
from .hooks import Answer, HookRegistry, Options
from .hooks.errors import suggestion
from .hooks.registry import Attach, Registered
from .hooks.spec import EventClass

P = ParamSpec("P")
E = TypeVar("E")
R = TypeVar("R")


class EventDecorator(Protocol[E, R]):
    """Attaches a handler of one event: `(event)` or `(event, ctx)`, sync or async."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[E, P], Coroutine[Any, Any, R | None]], /
    ) -> Registered[Concatenate[E, P], Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[E, P], R | None], /
    ) -> Registered[Concatenate[E, P], R | None]: ...
    @overload
    def __call__(self, **options: Unpack[Options]) -> Attach[E, R]: ...
    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Attach a handler, or return a decorator that does so with these options."""


class HookDecorator(Protocol[R]):
    """Attaches an implementation of one function-shaped hook, sync or async."""

    @overload
    def __call__(self, handler: Callable[P, Answer[R]], /) -> Registered[P, Answer[R]]: ...
    @overload
    def __call__(self, **options: Unpack[Options]) -> AttachImplementation[R]: ...
    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Attach an implementation, or return a decorator that does so with these options."""


class AttachImplementation(Protocol[R]):
    """A decorator for an implementation of one hook."""

    def __call__(self, handler: Callable[P, Answer[R]], /) -> Registered[P, Answer[R]]:
        """Attach the implementation."""
        ...


class SyncHookDecorator(Protocol[R]):
    """Attaches an implementation of one hook that is called synchronously."""

    @overload
    def __call__(self, handler: Callable[P, R | None], /) -> Registered[P, R | None]: ...
    @overload
    def __call__(self, **options: Unpack[Options]) -> AttachSync[R]: ...
    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Attach an implementation, or return a decorator that does so with these options."""


class AttachSync(Protocol[R]):
    """A decorator for an implementation of one hook that is called synchronously."""

    def __call__(self, handler: Callable[P, R | None], /) -> Registered[P, R | None]:
        """Attach the implementation."""
        ...


class HookDecorators(DeclaredHooks):
    """The decorators of a registry, one for each event and hook that it declares."""

    def __init__(self, hooks: HookRegistry) -> None:
        self._hooks = hooks

    @overload
    def __call__(self, hook: EventClass[E, R], **options: Unpack[Options]) -> Attach[E, R]: ...
    @overload
    def __call__(
        self, hook: str, **options: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Registered[P, R]]: ...
    def __call__(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler to an event or a hook; it is returned, with `.off()` on it."""
        return HookRegistry.on(self._hooks, hook, **options)

    if not TYPE_CHECKING:  # a type checker knows the names above, and no others

        def __getattr__(self, name: str) -> Any:
            declared = {known.replace(":", "_"): known for known in self._hooks.catalog}
            if name not in declared:
                raise AttributeError(f"there is no event or hook {name!r}{suggestion(name, declared)}")

            def attach(*handler: Any, **options: Unpack[Options]) -> Any:
                decorate = self(declared[name], **options)
                return decorate(*handler) if handler else decorate

            return attach

    def __dir__(self) -> list[str]:
        return sorted(known.replace(":", "_") for known in self._hooks.catalog)
