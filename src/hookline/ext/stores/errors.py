"""Errors of stores. Each message is one line: what failed, in which store, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.errors import StoreClosed, StoreDamaged, StoreError, StoreLocked, StoreUnavailable
from hookline.hooks.errors import suggestion

# --- How stores are named and configured ---


class UnknownStore(StoreError, LookupError):
    """A name that no store has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        there = f"; there are: {', '.join(names)}" if names else "; no stores are configured"
        super().__init__(
            f"unknown store {name!r}{suggestion(name, names) or there}; a store comes from a plugin's "
            f"register_stores or from [stores.{name}] in the configuration"
        )


class StoreMisconfigured(StoreError, ValueError):
    """A store's configuration that cannot be used as it is."""

    def __init__(self, store: str, problem: str) -> None:
        super().__init__(f"store {store!r}: {problem}")
        self.store = store


class MissingStoreLibrary(StoreError, ImportError):
    """A provider whose library is not installed."""

    def __init__(self, provider: str, library: str) -> None:
        super().__init__(
            f"the store provider {provider!r} needs the library {library!r}, which is not installed: "
            "pip install 'hookline[stores]'"
        )


# --- What was asked for ---


class StoreDenied(StoreError, PermissionError):
    """A store was used for what its user was not granted."""


class BadStoreValue(StoreError, ValueError):
    """A value that a store cannot keep or look for."""


__all__ = [
    "BadStoreValue",
    "MissingStoreLibrary",
    "StoreClosed",
    "StoreDamaged",
    "StoreDenied",
    "StoreError",
    "StoreLocked",
    "StoreMisconfigured",
    "StoreUnavailable",
    "UnknownStore",
]
