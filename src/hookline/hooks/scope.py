"""Scopes: registrations that only dispatches under one key see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from .errors import RegistrationError
from .handlers import Handler, Off, decorator
from .implementation import Options

if TYPE_CHECKING:
    from .bus import Hooks


class Scope:
    """Registrations that only dispatches under one key see; `close()` ends them all."""

    def __init__(self, hooks: Hooks, key: Any) -> None:
        if key is None:
            raise RegistrationError("a scope needs a key that is not None")
        self._hooks = hooks
        self.key = key

    def register(self, hook: Any, handler: Handler, **options: Unpack[Options]) -> Off:
        """Attach a handler under this key."""
        return self._hooks._register(hook, handler, options, self.key)  # pyright: ignore[reportPrivateUsage]

    def on(self, hook: Any, **options: Unpack[Options]) -> Callable[[Any], Any]:
        """Attach the decorated handler under this key."""
        return decorator(lambda handler: self.register(hook, handler, **options))

    def unregister(self, hook: str, handler: Handler) -> bool:
        """Remove a handler from this key; whether it was there."""
        if hook not in self._hooks:
            return False
        with self._hooks.lock:
            return bool(self._hooks[hook].detach(lambda i: not i.is_of(handler), self.key))

    def handler_count(self, hook: str) -> int:
        """How many handlers are attached under this key."""
        return len(self._hooks[hook].scoped(self.key)) if hook in self._hooks else 0

    def close(self) -> None:
        """Remove every handler under this key."""
        with self._hooks.lock:
            for name in self._hooks.catalog:
                self._hooks[name].detach(lambda impl: False, self.key)

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
