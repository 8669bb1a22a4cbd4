"""Stores: vectors, graphs, documents, notes and facts that outlive a session, by name.

    notes = app.stores.get("notes", DocStore)
    await notes.upsert("ideas", {"1": {"text": "a hook for everything"}})
    found = await notes.search("hook")

A store comes from a plugin's `register_stores` or from `[stores.<name>]` in the configuration.
"""

from .access import permission, reads, writes
from .errors import (
    BadValue,
    DuplicateStore,
    MissingLibrary,
    StoreClosed,
    StoreDamaged,
    StoreDenied,
    StoreError,
    StoreLocked,
    StoreMisconfigured,
    StoreMismatch,
    StoreUnavailable,
    UnknownProvider,
    UnknownStore,
)
from .protocols import (
    DocStore,
    Document,
    Edge,
    Fact,
    FactStore,
    GraphStore,
    Health,
    MemoryStore,
    Node,
    Note,
    Store,
    Vector,
    VectorStore,
)
from .provider import Opening, Provider
from .registry import Stores
from .view import StoreView

__all__ = [
    "BadValue",
    "DocStore",
    "Document",
    "DuplicateStore",
    "Edge",
    "Fact",
    "FactStore",
    "GraphStore",
    "Health",
    "MemoryStore",
    "MissingLibrary",
    "Node",
    "Note",
    "Opening",
    "Provider",
    "Store",
    "StoreClosed",
    "StoreDamaged",
    "StoreDenied",
    "StoreError",
    "StoreLocked",
    "StoreMisconfigured",
    "StoreMismatch",
    "StoreUnavailable",
    "StoreView",
    "Stores",
    "UnknownProvider",
    "UnknownStore",
    "Vector",
    "VectorStore",
    "permission",
    "reads",
    "writes",
]
