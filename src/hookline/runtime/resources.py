"""Entering what a provider gave: a value, an iterator that yields one, or a context manager of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any


async def entered(stack: AsyncExitStack, given: Any) -> Any:
    """The value, opened on the stack where it wants to be opened and closed."""
    if hasattr(given, "__aenter__"):
        return await stack.enter_async_context(given)
    if hasattr(given, "__enter__"):
        return stack.enter_context(given)
    if isinstance(given, AsyncIterator):
        steps: Any = given  # pyright: ignore[reportUnknownVariableType]
        return await stack.enter_async_context(asynccontextmanager(lambda: steps)())
    if isinstance(given, Iterator):
        steps = given  # pyright: ignore[reportUnknownVariableType]
        return stack.enter_context(contextmanager(lambda: steps)())
    return given
