"""A view of a store with fewer permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookline.hooks.errors import suggestion

from .access import Access, access_of, permission
from .errors import StoreDenied


class StoreView:
    """Offers the granted methods of the store's protocol and refuses the others.

    `refusal` ends the sentence of the refusal. A view cannot close the store.
    """

    __slots__ = ("_allowed", "_name", "_opened", "_protocol", "_refusal")

    def __init__(
        self,
        name: str,
        opened: Callable[[], Any],
        protocol: type,
        allowed: frozenset[Access],
        refusal: str,
    ) -> None:
        self._name = name
        self._opened = opened
        self._protocol = protocol
        self._allowed = allowed
        self._refusal = refusal

    def __getattr__(self, method: str) -> Any:
        needed = access_of(self._protocol, method)
        if needed is None:
            offers = [each for each in dir(self._protocol) if access_of(self._protocol, each)]
            raise AttributeError(
                f"the store {self._name!r} ({self._protocol.__name__}) offers no {method!r}"
                f"{suggestion(method, offers)}"
            )
        if needed not in self._allowed:
            raise StoreDenied(
                f"{method} on the store {self._name!r} needs {permission(self._name, needed)!r}, "
                f"which {self._refusal}"
            )
        return getattr(self._opened(), method)

    def __repr__(self) -> str:
        rights = "|".join(sorted(self._allowed)) or "nothing"
        return f"<{self._protocol.__name__} {self._name!r}, {rights}>"
