"""`once`: a property that is worked out the first time; without the lock of `cached_property`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801  (used as a decorator)
    """Caches a method's result as an attribute, so that the next access is immediate."""

    def __init__(self, method: Callable[[Any], T]) -> None:
        self.method = method
        self.name = method.__name__
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        found = instance.__dict__[self.name] = self.method(instance)
        return found
