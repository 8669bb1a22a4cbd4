"""Stores of plugins: checked when the scope opens; their methods may be async or plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from hookline.errors import NotAStore
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


def checked_store(given: Any) -> TapeStore:
    """What a plugin provided, as a store; one that lacks methods is refused."""
    if given is None:
        return cast("TapeStore", None)  # a plugin answers without a tape
    missing = [name for name in METHODS if not callable(getattr(given, name, None))]
    if missing:
        names = [name for name in dir(given) if not name.startswith("_")]
        raise NotAStore(
            f"provide_tape_store gave a {type(given).__name__}, which is no store: it has no "
            f"{', '.join(missing)}{suggestion(missing[0], names)}; see TapeStore in hookline.tape"
        )
    if all(inspect.iscoroutinefunction(getattr(given, name)) for name in METHODS):
        return given
    return cast("TapeStore", SynchronousStore(given))
