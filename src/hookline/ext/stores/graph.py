"""A graph in one file of Ladybug, an embedded graph database that speaks Cypher.

Ladybug is the maintained continuation of Kuzu, whose own repository was archived in 2025: a property
graph with transactions and a write-ahead log, in the process, with wheels for Linux, macOS and Windows.

Nodes are `Node {id, label, properties, data}` and edges `Edge {type, properties, data}`. In a query
`list_contains(element_at(n.properties, 'city'), 'Lima')` compares a property as text; `data` is all of
them as JSON. One process at a time can have the file open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from hookline.system.private_files import private_folder
from hookline.tape.sqlite.file import StoreHealth
from hookline.tape.sqlite.store_worker import StoreWorker

from . import filters, values
from .cypher import question
from .errors import (
    BadStoreValue,
    MissingStoreLibrary,
    StoreDamaged,
    StoreError,
    StoreLocked,
    StoreUnavailable,
)
from .protocols import Edge, Json, Node, Where

T = TypeVar("T")

POOL = 256 * 2**20
"""Bytes of memory that the database may use for its pages."""

DEEPEST = 10
"""How many edges away neighbours are looked for at most."""

_KNOWN = "properties MAP(STRING, STRING), data STRING"
_TABLES = (
    f"CREATE NODE TABLE IF NOT EXISTS Node(id STRING PRIMARY KEY, label STRING, {_KNOWN})",
    f"CREATE REL TABLE IF NOT EXISTS Edge(FROM Node TO Node, type STRING, {_KNOWN})",
)
_ARROWS = {"out": "-[e:Edge]->", "in": "<-[e:Edge]-", "both": "-[e:Edge]-"}


def library() -> Any:
    """Import Ladybug so that a local model still works in the same process.

    The two libraries contain C++ symbols of the same names. The local model's runtime crashes the
    process if it is loaded second; loaded first, both work.
    """
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("xllamacpp") is not None:
        import_module("xllamacpp")
    try:
        import ladybug
    except ImportError as error:
        raise MissingStoreLibrary("ladybug", "ladybug") from error
    return ladybug


class LadybugGraph:
    """A `GraphStore` in one file of Ladybug. It is opened, or made, by the first call."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._ladybug = library()
        self._database: Any = None
        self._connection: Any = None
        self._worker = StoreWorker(path)

    async def upsert(self, nodes: Sequence[Node] = (), edges: Sequence[Edge] = ()) -> None:
        """Store nodes, then edges, replacing equal ones. Both ends of an edge must exist."""
        things = [
            {
                "id": values.name(node.id, "the id"),
                "label": values.text(node.label, "the label"),
                **_written(node.properties, f"the properties of {node.id!r}"),
            }
            for node in nodes
        ]
        relations = [
            {**_ends(edge), **_written(edge.properties, f"the properties of {edge.type!r}")}
            for edge in edges
        ]

        def keep() -> None:
            for thing in things:
                self._ask(f"MERGE (n:Node {{id: $id}}) SET n.label = $label, {_set('n', thing)}", thing)
            for relation in relations:
                made = self._ask(
                    "MATCH (a:Node {id: $source}), (b:Node {id: $target}) "
                    f"MERGE (a)-[e:Edge {{type: $type}}]->(b) SET {_set('e', relation)} RETURN 1",
                    relation,
                )
                if not made:
                    source, target = relation["source"], relation["target"]
                    missing = target if self._find(source) else source
                    raise BadStoreValue(
                        f"the edge {source!r} -{relation['type']}-> {target!r} needs the node "
                        f"{missing!r}, which does not exist; nothing was written"
                    )

        await self._call("write", keep, "BEGIN TRANSACTION")

    async def get(self, node_id: str) -> Node | None:
        """The node with this id."""
        wanted = values.name(node_id, "the id")
        return await self._reading(lambda: self._find(wanted))

    async def delete(self, ids: Collection[str]) -> int:
        """Delete nodes with all their edges; how many nodes there were."""
        wanted = [values.name(node_id, "the id") for node_id in dict.fromkeys(ids)]

        def remove() -> int:
            there = [node_id for node_id in wanted if self._find(node_id)]
            for node_id in there:
                self._ask("MATCH (n:Node {id: $id}) DETACH DELETE n", {"id": node_id})
            return len(there)

        return await self._call("write", remove, "BEGIN TRANSACTION")

    async def delete_edges(self, edges: Collection[Edge]) -> int:
        """Delete edges, whatever their properties; how many there were."""
        wanted = [_ends(edge) for edge in edges]
        pattern = "MATCH (a:Node {id: $source})-[e:Edge {type: $type}]->(b:Node {id: $target})"

        def remove() -> int:
            gone = 0
            for ends in wanted:
                gone += self._ask(f"{pattern} RETURN count(e)", ends)[0][0]
                self._ask(f"{pattern} DELETE e", ends)
            return gone

        return await self._call("write", remove, "BEGIN TRANSACTION")

    async def nodes(
        self, label: str | None = None, where: Where | None = None, *, limit: int = 100
    ) -> list[Node]:
        """The nodes with this label whose properties meet the filter, in the order of their ids."""
        wanted = filters.conditions(where)
        clause, given = _matching({"n.label": label})
        most = values.limit(limit)
        statement = f"MATCH (n:Node){clause} RETURN n.id, n.label, n.data ORDER BY n.id"

        def select() -> list[Node]:
            found = (_node(row) for row in self._rows(_cut(statement, wanted, most), given))
            return list(islice((n for n in found if filters.met(wanted, n.properties)), most))

        return await self._reading(select)

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
        wanted = filters.conditions(where)
        clause, given = _matching({"a.id": source, "e.type": edge_type, "b.id": target})
        most = values.limit(limit)
        statement = (
            f"MATCH (a:Node)-[e:Edge]->(b:Node){clause} RETURN a.id, e.type, b.id, e.data "
            "ORDER BY a.id, e.type, b.id"
        )

        def select() -> list[Edge]:
            rows = self._rows(_cut(statement, wanted, most), given)
            found = (Edge(row[0], row[1], row[2], json.loads(row[3])) for row in rows)
            return list(islice((e for e in found if filters.met(wanted, e.properties)), most))

        return await self._reading(select)

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
        start = values.name(node_id, "the id")
        if direction not in _ARROWS:
            raise BadStoreValue(f"direction must be one of {', '.join(_ARROWS)}, not {direction!r}")
        if not 1 <= values.limit(depth, what="depth") <= DEEPEST:
            raise BadStoreValue(f"depth must be from 1 to {DEEPEST}, not {depth}")
        most = values.limit(limit)
        clause, given = _matching({"e.type": edge_type}, first=" AND ")
        statement = (
            f"MATCH (a:Node){_ARROWS[direction]}(b:Node) WHERE a.id IN $from{clause} "
            "RETURN DISTINCT b.id, b.label, b.data ORDER BY b.id"
        )

        def walk() -> list[Node]:
            seen: dict[str, Node | None] = {start: None}
            edge_of_it = [start]
            for _ in range(depth):
                near = [_node(row) for row in self._rows(statement, {**given, "from": edge_of_it})]
                fresh = {node.id: node for node in near if node.id not in seen}
                seen.update(fresh)
                edge_of_it = list(fresh)
                if not fresh or len(seen) > most:
                    break
            return [node for node in seen.values() if node is not None][:most]

        return await self._reading(walk)

    async def query(
        self, statement: str, parameters: Json | None = None, *, limit: int = 100
    ) -> list[Json]:
        """The rows of a question in Cypher, by column."""
        asked = question(values.text(statement, "the query"))
        given = dict(parameters or {})
        most = values.limit(limit)

        def ask() -> list[Json]:
            answer = self._connection.execute(asked, given)
            try:
                columns = answer.get_column_names()
                return [dict(zip(columns, row, strict=True)) for row in answer.get_n(most)]
            finally:
                answer.close()

        return await self._reading(ask)

    async def health(self) -> StoreHealth:
        """Whether the file works and how many nodes it has."""
        try:
            rows = await self._reading(lambda: self._ask("MATCH (n:Node) RETURN count(n)"))
            return StoreHealth(True, rows[0][0], self.path)
        except StoreError as error:
            return StoreHealth(False, 0, self.path, str(error))

    async def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        await self._worker.close(self._close)

    # --- In the thread ---

    async def _reading(self, action: Callable[[], T]) -> T:
        return await self._call("read", action, "BEGIN TRANSACTION READ ONLY")

    async def _call(self, doing: str, action: Callable[[], T], begin: str) -> T:
        return await self._worker.run(lambda: self._telling(doing, action, begin))

    def _telling(self, doing: str, action: Callable[[], T], begin: str) -> T:
        try:
            self._open()
            self._ask(begin)
            try:
                result = action()
                self._ask("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            return result
        except RuntimeError as error:  # what the library raises, whatever happened
            if isinstance(error, StoreError):
                raise
            raise self._told(error, doing) from error

    def _roll_back(self) -> None:
        try:
            self._ask("ROLLBACK")
        except RuntimeError:
            pass  # the database has rolled back already

    def _open(self) -> None:
        if self._connection is not None:
            return
        try:
            if self.path != ":memory:":
                private_folder(Path(self.path).parent)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot open the store {self.path}: its folder cannot be made ({error}); "
                "name another path"
            ) from error
        self._database = self._ladybug.Database(self.path, buffer_pool_size=POOL)
        try:
            self._connection = self._ladybug.Connection(self._database)
            for table in _TABLES:
                self._ask(table)
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        for opened in (self._connection, self._database):
            if opened is not None:
                opened.close()
        self._connection = self._database = None

    def _told(self, error: RuntimeError, doing: str) -> StoreError:
        said = " ".join(str(error).split())
        if "Could not set lock" in said:
            return StoreLocked(
                f"cannot open the store: {self.path} is in use by another process, and only one can "
                f"have a graph open; end it, or wait ({said})"
            )
        if self._connection is None:
            return StoreDamaged(
                f"cannot open the store: {self.path} is not a graph that can be read; name another "
                f"path, or restore a copy ({said})"
            )
        if any(kind in said for kind in ("Parser exception", "Binder exception", "Parameter")):
            return BadStoreValue(f"the query cannot be understood: {said}")
        return StoreError(f"cannot {doing} the store {self.path}: {said}")

    def _find(self, node_id: str) -> Node | None:
        rows = self._ask("MATCH (n:Node {id: $id}) RETURN n.id, n.label, n.data", {"id": node_id})
        return _node(rows[0]) if rows else None

    def _ask(self, statement: str, parameters: Json | None = None) -> list[list[Any]]:
        return list(self._rows(statement, parameters))

    def _rows(self, statement: str, parameters: Json | None = None) -> Iterator[list[Any]]:
        answer = self._connection.execute(statement, parameters or {})
        try:
            while answer.has_next():
                yield answer.get_next()
        finally:
            answer.close()


def _ends(edge: Edge) -> Json:
    return {
        "source": values.name(edge.source, "the source"),
        "type": values.name(edge.type, "the type"),
        "target": values.name(edge.target, "the target"),
    }


def _written(properties: Json, what: str) -> Json:
    """Properties in two forms: as JSON, and as texts that a query can compare."""
    data = values.fields(properties, what)
    texts = {
        key: value if isinstance(value, str) else values.encoded(value, what)
        for key, value in properties.items()
    }
    # The database cannot take an empty map.
    return {"data": data, **({"keys": [*texts], "texts": [*texts.values()]} if texts else {})}


def _set(what: str, given: Json) -> str:
    properties = "map($keys, $texts)" if "keys" in given else "NULL"
    return f"{what}.data = $data, {what}.properties = {properties}"


def _matching(wanted: dict[str, str | None], first: str = " WHERE ") -> tuple[str, Json]:
    given = {
        column.replace(".", "_"): values.text(value, column)
        for column, value in wanted.items()
        if value is not None
    }
    parts = [f"{name.replace('_', '.')} = ${name}" for name in given]
    return (first + " AND ".join(parts) if parts else ""), given


def _cut(statement: str, wanted: list[filters.FieldCondition], most: int) -> str:
    return statement if wanted else f"{statement} LIMIT {most}"


def _node(row: list[Any]) -> Node:
    return Node(row[0], row[1], json.loads(row[2]))
