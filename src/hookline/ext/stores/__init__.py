"""Stores: vectors, graphs, documents, notes and facts that outlive a session, by name.

    notes = Stores.of(app).get("notes", DocStore)
    await notes.upsert("ideas", {"1": {"text": "a hook for everything"}})
    found = await notes.search("hook")

A store comes from a plugin's `register_stores` or from `[stores.<name>]` in the configuration.
"""

from typing import TYPE_CHECKING

from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .access import permission, reads, writes
    from .errors import (
        BadStoreValue,
        MissingStoreLibrary,
        StoreClosed,
        StoreDamaged,
        StoreDenied,
        StoreError,
        StoreLocked,
        StoreMisconfigured,
        StoreUnavailable,
        UnknownStore,
    )
    from .protocols import (
        DocStore,
        Document,
        Edge,
        Fact,
        FactStore,
        GraphStore,
        MemoryNote,
        MemoryStore,
        Node,
        Store,
        StoreHealth,
        Vector,
        VectorStore,
    )
    from .provider import Opening, StoreProvider
    from .registry import Stores
    from .view import StoreView
else:
    __getattr__ = lazy_names(__name__, "access errors protocols provider registry view")

__all__ = [
    "BadStoreValue",
    "DocStore",
    "Document",
    "Edge",
    "Fact",
    "FactStore",
    "GraphStore",
    "MemoryNote",
    "MemoryStore",
    "MissingStoreLibrary",
    "Node",
    "Opening",
    "Store",
    "StoreClosed",
    "StoreDamaged",
    "StoreDenied",
    "StoreError",
    "StoreHealth",
    "StoreLocked",
    "StoreMisconfigured",
    "StoreProvider",
    "StoreUnavailable",
    "StoreView",
    "Stores",
    "UnknownStore",
    "Vector",
    "VectorStore",
    "permission",
    "reads",
    "writes",
]
