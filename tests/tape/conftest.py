"""The stores that the contract is tested with. PostgreSQL joins here."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hookline.tape import Entry, MemoryStore, SQLiteStore, Tape, TapeStore

STORES: dict[str, Callable[[Path], TapeStore]] = {
    "memory": lambda directory: MemoryStore(),
    "sqlite": lambda directory: SQLiteStore(directory / "tape.db"),
}


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TapeStore]:
    opened = STORES[request.param](tmp_path)
    yield opened
    await opened.close()


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
