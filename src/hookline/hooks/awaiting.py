"""Telling awaitables from values, and letting go of those that nobody will await."""

from __future__ import annotations

from collections.abc import Awaitable
from types import CoroutineType
from typing import Any, TypeGuard


def is_awaitable(value: Any) -> TypeGuard[Awaitable[Any]]:
    """Whether a value must be awaited to become a result."""
    return type(value) is CoroutineType or isinstance(value, Awaitable)  # the first is quicker


async def awaited(value: Any) -> Any:
    """The value, or what it comes to."""
    return await value if is_awaitable(value) else value


def discard(value: Any) -> None:
    """Close a coroutine that is not going to run, so that nothing warns of it later."""
    close = getattr(value, "close", None)
    if close is not None:
        close()
