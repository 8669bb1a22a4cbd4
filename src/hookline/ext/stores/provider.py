"""Providers: what opens stores, and the three that come with Hookline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline.specs import StoreProtocol

from .protocols import Store


@dataclass(frozen=True, slots=True)
class Opening:
    """What a provider needs to open a store."""

    name: str
    protocol: StoreProtocol
    config: dict[str, Any]
    """Filled in and checked."""
    folder: Path
    """Where stores lie that do not say."""

    @property
    def path(self) -> str:
        """Where the store's file is: `path` of the configuration, or one of its own in the folder."""
        given = self.config.get("path") or f"{self.name.replace('/', '_').replace(':', '_')}.db"
        return given if given == ":memory:" else str((self.folder / Path(given).expanduser()).resolve())


@dataclass(frozen=True, slots=True)
class StoreProvider:
    """A store backend: the protocols it supports, and how to open each.

    `opens` returns the store at once; slow work, such as connecting, waits for the first call.
    """

    name: str
    opens: Mapping[StoreProtocol, Callable[[Opening], Store]]
    config_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The schema of `config`, in addition to a spec's own schema."""
    in_files: bool = False
    """Whether each store has a file to itself, at `Opening.path`."""


def _file(**more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"path": {"type": "string", "minLength": 1}, **more},
        "additionalProperties": False,
    }


def _docs(opening: Opening) -> Store:
    from .doc import SQLiteDocs

    return SQLiteDocs(opening.path)


def _memory(opening: Opening) -> Store:
    from .memory import SQLiteMemory

    return SQLiteMemory(opening.path)


def _facts(opening: Opening) -> Store:
    from .fact import SQLiteFacts

    return SQLiteFacts(opening.path)


def _vectors(opening: Opening) -> Store:
    from .vector import SQLiteVectors

    options = {key: value for key, value in opening.config.items() if key != "path"}
    return SQLiteVectors(opening.path, name=opening.name, **options)


def _graph(opening: Opening) -> Store:
    from .graph import LadybugGraph

    return LadybugGraph(opening.path)


SQLITE = StoreProvider(
    "sqlite",
    {StoreProtocol.doc: _docs, StoreProtocol.memory: _memory, StoreProtocol.fact: _facts},
    _file(),
    in_files=True,
)
SQLITE_VEC = StoreProvider(
    "sqlite-vec",
    {StoreProtocol.vector: _vectors},
    {
        **_file(
            dimensions={"type": "integer", "minimum": 1, "maximum": 8192},
            metric={"enum": ["cosine", "l2"]},
        ),
        "required": ["dimensions"],
    },
    in_files=True,
)
LADYBUG = StoreProvider("ladybug", {StoreProtocol.graph: _graph}, _file(), in_files=True)

BUILTIN = (SQLITE, SQLITE_VEC, LADYBUG)
"""The providers that need no server."""
