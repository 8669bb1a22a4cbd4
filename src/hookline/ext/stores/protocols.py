"""What each kind of store does: five protocols, and the records that go in and out.

All calls are async and may be made at the same time. A call that writes several things writes all or
none, and what it wrote is on disk when it returns. `where` filters by fields, see
`hookline.ext.stores.filters`; ids are text that the caller chooses, or is given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hookline.tape.sqlite.file import StoreHealth

from .access import reads, writes

Json = dict[str, Any]
Where = Mapping[str, Any]


def _nothing() -> Json:
    return {}


class Store(Protocol):
    """What every store can do."""

    @reads
    async def health(self) -> StoreHealth:
        """Look whether the store works; a store that does not says why instead of raising."""
        ...

    async def close(self) -> None:
        """Close it. Closing twice does no harm. The app does this when its running scope ends."""
        ...


# --- Documents ---


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document in a collection."""

    collection: str
    id: str
    data: Json
    updated: float
    score: float = 0.0
    """How well it meets a search: higher is better."""


class DocStore(Store, Protocol):
    """JSON documents in collections, found by id, by field and by word."""

    @writes
    async def add(self, collection: str, data: Json) -> str:
        """Keep a new document; its new id."""
        ...

    @writes
    async def upsert(self, collection: str, documents: Mapping[str, Json]) -> None:
        """Store documents by id, replacing those with the same ids."""
        ...

    @reads
    async def get(self, collection: str, document_id: str) -> Document | None:
        """The document with this id."""
        ...

    @writes
    async def delete(self, collection: str, ids: Collection[str]) -> int:
        """Delete documents; how many there were."""
        ...

    @reads
    async def query(
        self, collection: str, where: Where | None = None, *, limit: int = 100, offset: int = 0
    ) -> list[Document]:
        """The documents that meet the filter, in the order of their ids."""
        ...

    @reads
    async def search(
        self,
        text: str,
        *,
        collection: str | None = None,
        where: Where | None = None,
        limit: int = 20,
    ) -> list[Document]:
        """The documents with all these words, the best first."""
        ...

    @reads
    async def collections(self) -> dict[str, int]:
        """Every collection and how many documents it has."""
        ...


# --- Memory ---


@dataclass(frozen=True, slots=True)
class MemoryNote:
    """Something remembered for a user: in one session, or in all of them where `session` is empty."""

    id: str
    user: str
    session: str
    text: str
    created: float
    metadata: Json = field(default_factory=_nothing)
    score: float = 0.0
    """How well it meets a recall: higher is better."""


class MemoryStore(Store, Protocol):
    """Notes about users, recalled by words. A user never sees another user's notes."""

    @writes
    async def add(
        self, text: str, *, user: str, session: str = "", metadata: Json | None = None
    ) -> MemoryNote:
        """Remember something; without a session it holds in all sessions of the user."""
        ...

    @writes
    async def update(
        self, note_id: str, *, user: str, text: str | None = None, metadata: Json | None = None
    ) -> bool:
        """Change a note's text or metadata. Return whether the user has such a note."""
        ...

    @reads
    async def get(self, note_id: str, *, user: str) -> MemoryNote | None:
        """The user's note with this id."""
        ...

    @writes
    async def delete(self, ids: Collection[str], *, user: str) -> int:
        """Forget notes of the user; how many there were."""
        ...

    @writes
    async def forget(self, *, user: str, session: str | None = None) -> int:
        """Forget all notes of a user, or those of one session; how many there were."""
        ...

    @reads
    async def recall(
        self,
        text: str,
        *,
        user: str,
        session: str | None = None,
        where: Where | None = None,
        limit: int = 20,
    ) -> list[MemoryNote]:
        """The user's notes with any of these words, best match first.

        With a session: its notes and those valid in every session. `where` filters by metadata.
        """
        ...

    @reads
    async def recent(
        self,
        *,
        user: str,
        session: str | None = None,
        where: Where | None = None,
        limit: int = 20,
    ) -> list[MemoryNote]:
        """The user's notes, newest first, with a session as in `recall`."""
        ...


# --- Facts ---


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, predicate and object, who said so, and from when until when it holds."""

    id: str
    subject: str
    predicate: str
    object: Any
    source: str
    since: float
    until: float | None = None
    """None while it holds."""
    retracted_by: str = ""
    recorded: float = 0.0
    """When the fact was recorded."""
    metadata: Json = field(default_factory=_nothing)


class FactStore(Store, Protocol):
    """Facts with provenance and time. A retracted fact is kept and can be asked for as of then."""

    @writes
    async def assert_fact(
        self,
        subject: str,
        predicate: str,
        obj: Any,
        *,
        source: str,
        since: float | None = None,
        metadata: Json | None = None,
    ) -> Fact:
        """State a fact from a time on, now by default.

        A fact that the same source states already at that time is given back as it is.
        """
        ...

    @writes
    async def retract(
        self,
        subject: str,
        predicate: str,
        obj: Any = ...,
        *,
        source: str,
        of: str | None = None,
        at: float | None = None,
    ) -> int:
        """End facts at a time, now by default: with any object, and from any source but with `of`.

        `source` says who retracts. Gives how many were ended.
        """
        ...

    @reads
    async def get(self, fact_id: str) -> Fact | None:
        """The fact with this id."""
        ...

    @reads
    async def query(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        obj: Any = ...,
        *,
        source: str | None = None,
        as_of: float | None = None,
        where: Where | None = None,
        limit: int = 100,
    ) -> list[Fact]:
        """The facts that hold at a time, now by default, oldest first. `where` filters by metadata."""
        ...

    @reads
    async def history(
        self, subject: str, predicate: str | None = None, *, limit: int = 100
    ) -> list[Fact]:
        """Everything ever stated of a subject, retracted or not, oldest first."""
        ...

    @reads
    async def search(self, text: str, *, as_of: float | None = None, limit: int = 20) -> list[Fact]:
        """The facts that hold and have all these words, the best first."""
        ...

    @writes
    async def delete(self, ids: Collection[str]) -> int:
        """Delete facts for good, with their history; how many there were."""
        ...


# --- Vectors ---


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding with its text and metadata."""

    id: str
    values: tuple[float, ...]
    text: str = ""
    metadata: Json = field(default_factory=_nothing)
    distance: float = 0.0
    """How far it is from the one searched for: lower is nearer."""


class VectorStore(Store, Protocol):
    """Embeddings of one length, found by nearness."""

    @writes
    async def upsert(self, vectors: Sequence[Vector]) -> None:
        """Store vectors by id, replacing those with the same ids."""
        ...

    @reads
    async def get(self, vector_id: str) -> Vector | None:
        """The vector with this id."""
        ...

    @writes
    async def delete(self, ids: Collection[str]) -> int:
        """Delete vectors; how many there were."""
        ...

    @reads
    async def search(
        self, near: Sequence[float], *, where: Where | None = None, limit: int = 10
    ) -> list[Vector]:
        """The nearest vectors whose metadata meets the filter, the nearest first."""
        ...

    @reads
    async def query(self, where: Where | None = None, *, limit: int = 100) -> list[Vector]:
        """The vectors whose metadata meets the filter, in the order of their ids."""
        ...


# --- Graphs ---


@dataclass(frozen=True, slots=True)
class Node:
    """A thing: its id, its label, its properties."""

    id: str
    label: str = ""
    properties: Json = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation from one node to another; there is one of each type between two nodes."""

    source: str
    type: str
    target: str
    properties: Json = field(default_factory=_nothing)


class GraphStore(Store, Protocol):
    """Nodes and directed edges, both with properties."""

    @writes
    async def upsert(self, nodes: Sequence[Node] = (), edges: Sequence[Edge] = ()) -> None:
        """Store nodes, then edges, replacing equal ones. Both ends of an edge must exist."""
        ...

    @reads
    async def get(self, node_id: str) -> Node | None:
        """The node with this id."""
        ...

    @writes
    async def delete(self, ids: Collection[str]) -> int:
        """Delete nodes with all their edges; how many nodes there were."""
        ...

    @writes
    async def delete_edges(self, edges: Collection[Edge]) -> int:
        """Delete edges, whatever their properties; how many there were."""
        ...

    @reads
    async def nodes(
        self, label: str | None = None, where: Where | None = None, *, limit: int = 100
    ) -> list[Node]:
        """The nodes with this label whose properties meet the filter, in the order of their ids."""
        ...

    @reads
    async def edges(
        self,
        source: str | None = None,
        edge_type: str | None = None,
        target: str | None = None,
        where: Where | None = None,
        *,
        limit: int = 100,
    ) -> list[Edge]:
        """The edges between these nodes whose properties meet the filter."""
        ...

    @reads
    async def neighbours(
        self,
        node_id: str,
        *,
        edge_type: str | None = None,
        direction: str = "both",
        depth: int = 1,
        limit: int = 100,
    ) -> list[Node]:
        """The nodes within `depth` edges, nearest first; direction is out, in or both."""
        ...

    @reads
    async def query(
        self, statement: str, parameters: Json | None = None, *, limit: int = 100
    ) -> list[Json]:
        """The rows of a question in the database's own language, which may only read."""
        ...
