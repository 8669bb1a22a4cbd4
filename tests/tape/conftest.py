"""The stores that the contract is tested with."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hookline.tape import Entry, MemoryTapeStore, SQLiteStore, Tape, TapeStore
from hookline.tape.postgres.store import PostgresStore

from .. import postgres


@pytest.fixture(params=["memory", "sqlite", "postgres", "appender"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TapeStore]:
    if request.param == "memory":
        opened: TapeStore = MemoryTapeStore()
    elif request.param == "sqlite":
        opened = SQLiteStore(tmp_path / "tape.db")
    elif request.param == "appender":  # PostgreSQL as a role that cannot rewrite anything
        schema = request.getfixturevalue("schema")
        _, url = await postgres.restricted(schema)
        opened = await PostgresStore.open(url, schema=schema, timeout=5.0)
    else:
        schema = request.getfixturevalue("schema")
        opened = await PostgresStore.open(postgres.url(), schema=schema, timeout=5.0)
    yield opened
    await opened.close()


@pytest.fixture
def schema() -> Iterator[str]:
    """The name of a schema of the test's own."""
    name = postgres.new_schema()
    yield name
    postgres.drop_roles(name)


@pytest.fixture
async def tape(store: TapeStore) -> Tape:
    return await Tape.open(store, "s1")


def note(text: str, parent: Entry | None = None, session: str = "s1", kind: str = "note") -> Entry:
    return Entry.new(session, parent and parent.id, kind, {"text": text})


def chain(count: int, session: str = "s1", parent: Entry | None = None) -> list[Entry]:
    entries: list[Entry] = []
    for number in range(count):
        parent = note(f"number {number}", parent, session)
        entries.append(parent)
    return entries


def texts(entries: list[Entry]) -> list[str]:
    return [entry.payload["text"] for entry in entries]
