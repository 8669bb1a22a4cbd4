"""Handlers: how `@hooks.on` leaves `.off()` on what it decorates, and how one runs only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Off = Callable[[], None]
Handler = Callable[..., Any]


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
