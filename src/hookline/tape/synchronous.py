"""Stores of plugins: entered and checked when the scope opens; methods may be async or plain."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, cast

from hookline.errors import PluginError
from hookline.hooks.errors import suggestion

from .store import TapeStore

METHODS = tuple(name for name in vars(TapeStore) if not name.startswith("_") and name != "close")


class SynchronousStore:
    """A store with plain methods, as one whose methods are awaited. They run on the event loop."""

    def __init__(self, store: object) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        return _awaitable(method) if callable(method) else method


def _awaitable(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        given = method(*args, **kwargs)
        return await given if inspect.isawaitable(given) else given

    return call


async def entered_store(stack: AsyncExitStack, given: Any) -> TapeStore:
    """Return the store that `provide_tape_store` gave: itself, or one that an iterator yields.

    An iterator or a context manager is entered on the stack, which closes it.
    """
    store: Any = given
    if hasattr(given, "__aenter__"):
        store = await stack.enter_async_context(given)
    elif hasattr(given, "__enter__"):
        store = stack.enter_context(given)
    elif isinstance(given, AsyncIterator):
        store = await stack.enter_async_context(asynccontextmanager(lambda: store)())
    elif isinstance(given, Iterator):
        store = stack.enter_context(contextmanager(lambda: store)())
    return checked_store(store)


def checked_store(given: Any) -> TapeStore:
    """A plugin's store; one that lacks methods is refused."""
    if given is None:
        return cast("TapeStore", None)  # a plugin answers without a tape
    missing = [name for name in METHODS if not callable(getattr(given, name, None))]
    if missing:
        names = [name for name in dir(given) if not name.startswith("_")]
        raise PluginError(
            f"provide_tape_store gave a {type(given).__name__}, which is no store: it has no "
            f"{', '.join(missing)}{suggestion(missing[0], names)}; see TapeStore in hookline.tape"
        )
    if all(inspect.iscoroutinefunction(getattr(given, name)) for name in METHODS):
        return given
    return cast("TapeStore", SynchronousStore(given))
