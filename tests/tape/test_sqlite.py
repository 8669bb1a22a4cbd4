"""The SQLite file: its version, its failures, other processes, sudden death."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookline
from hookline.tape import (
    Entry,
    NotATape,
    SQLiteStore,
    Tape,
    TapeCorrupt,
    TapeError,
    TapeFull,
    TapeLocked,
    TapeReadOnly,
    TapeUnavailable,
    TapeVersionMismatch,
)
from hookline.tape.sqlite import schema

from .conftest import chain, note

SOURCE = str(Path(hookline.__file__).parents[1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.db"


async def filled(path: Path, count: int = 10) -> None:
    store = SQLiteStore(path)
    await store.append(chain(count))
    await store.close()


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python code in another process."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


def one_line(error: TapeError, path: Path) -> bool:
    return "\n" not in str(error) and str(path) in str(error)


# --- The file ---


async def test_what_was_written_is_there_after_reopening(path: Path):
    entries = chain(10)
    store = SQLiteStore(path)
    await store.append(entries)
    await store.close()
    store = SQLiteStore(str(path), synchronous="FULL")
    assert await store.entries("s1") == entries
    assert await store.search("number") != []
    await store.close()
    store = SQLiteStore(path)
    assert len(await store.search("number")) == 10
    await store.close()


async def test_the_file_says_what_it_is_and_its_version(path: Path):
    await filled(path)
    header = path.read_bytes()[:100]
    assert int.from_bytes(header[60:64], "big") == len(schema.MIGRATIONS)
    assert header[68:72] == b"HKLN"
    assert header[18] == 2  # write-ahead logging


async def test_an_older_file_is_brought_to_the_present_version(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    await filled(path)
    added = [*schema.MIGRATIONS, lambda db: db.execute("ALTER TABLE entries ADD COLUMN extra TEXT")]
    monkeypatch.setattr(schema, "MIGRATIONS", added)
    store = SQLiteStore(path)
    assert len(await store.entries("s1")) == 10
    await store.close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(added),)
    assert db.execute("SELECT count(*) FROM entries WHERE extra IS NULL").fetchone() == (10,)
    db.close()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    await filled(path)

    def broken(db: sqlite3.Connection) -> None:
        db.execute("DROP TABLE texts")
        db.execute("SELECT * FROM nowhere")

    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, broken])
    with pytest.raises(TapeError, match="nowhere"):
        SQLiteStore(path)
    monkeypatch.undo()
    store = SQLiteStore(path)
    assert len(await store.search("number")) == 10
    await store.close()


async def test_a_file_from_a_newer_version_is_refused_untouched(path: Path):
    await filled(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(TapeVersionMismatch, match=r"version 99.*up to 1.*update") as refused:
        SQLiteStore(path)
    assert one_line(refused.value, path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_untouched(path: Path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(NotATape, match="another program") as refused:
        SQLiteStore(path)
    assert one_line(refused.value, path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_untouched(path: Path):
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(NotATape, match="name another file") as refused:
        SQLiteStore(path)
    assert one_line(refused.value, path)
    assert path.read_text() == "Dear diary, " * 1000


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "missing" / "tape.db"):
        with pytest.raises(TapeUnavailable, match="check that its directory exists") as refused:
            SQLiteStore(path)
        assert one_line(refused.value, path)


# --- Damage ---


async def test_a_damaged_file_is_told_as_such(path: Path):
    await filled(path, 2000)
    content = bytearray(path.read_bytes())
    content[4096 * 4 :] = os.urandom(len(content) - 4096 * 4)
    path.write_bytes(content)
    store = SQLiteStore(path)
    with pytest.raises(TapeCorrupt, match="restore a copy") as told:
        await store.entries("s1")
    assert one_line(told.value, path)
    await store.close()


async def test_a_file_cut_short_is_told_as_such(path: Path):
    await filled(path, 2000)
    os.truncate(path, 4096 * 3)
    with pytest.raises(TapeCorrupt, match="restore a copy"):
        await read(path)


async def read(path: Path) -> None:
    store = SQLiteStore(path)
    try:
        await store.entries("s1")
    finally:
        await store.close()


async def test_a_damaged_entry_is_named_and_the_others_can_be_read_and_found(path: Path):
    first, second = chain(2)
    store = SQLiteStore(path)
    await store.append([first, second])
    db = sqlite3.connect(path)
    db.execute("UPDATE entries SET payload = '{oops' WHERE id = ?", (first.id,))
    db.commit()
    db.close()
    with pytest.raises(TapeCorrupt, match=first.id):
        await store.get(first.id)
    assert await store.get(second.id) == second
    assert [hit.entry for hit in await store.search("number")] == [second]
    await store.close()


# --- No room, no right, no turn ---


async def test_a_full_disk_refuses_the_append_and_keeps_the_tape(path: Path):
    store = SQLiteStore(path)
    tape = await Tape.open(store, "s1")
    kept = [await tape.append("note", {"n": 1})]
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(TapeFull, match="make room") as told:
        await fill(tape, kept)
    assert one_line(told.value, path)
    with pytest.raises(TapeFull):
        await tape.append_many([("note", {"text": "x" * 3000})] * 10)
    assert await tape.branch() == kept
    assert tape.leaf == kept[-1]
    store._db.execute("PRAGMA max_page_count = 100000")
    kept.append(await tape.append("note", {"n": 2}))
    assert await tape.branch() == kept
    await store.close()


async def fill(tape: Tape, kept: list[Entry]) -> None:
    while len(kept) < 100:
        kept.append(await tape.append("note", {"text": "x" * 3000}))


async def test_a_connection_that_may_not_write_says_so_and_still_reads(path: Path):
    store = SQLiteStore(path)
    await store.append(chain(3))
    store._db.execute("PRAGMA query_only = ON")
    with pytest.raises(TapeReadOnly, match="check the permissions") as told:
        await store.append([note("x")])
    assert one_line(told.value, path)
    assert len(await store.entries("s1")) == 3
    await store.close()


@pytest.fixture
def public_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions work in another way here")
async def test_a_file_without_permission_to_write_is_refused(public_directory: Path):
    path = public_directory / "tape.db"
    await filled(path)
    path.chmod(0o444)
    public_directory.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:  # to whom permissions mean nothing
        os.seteuid(65534)
    try:
        with pytest.raises((TapeReadOnly, TapeUnavailable), match="check") as told:
            await write(path)
    finally:
        if was_root:
            os.seteuid(0)
    assert one_line(told.value, path)


async def write(path: Path) -> None:
    store = SQLiteStore(path)
    try:
        await store.append([note("x")])
    finally:
        await store.close()


async def test_a_write_waits_for_another_process_without_blocking_the_loop(path: Path):
    store = SQLiteStore(path)
    await store.append(chain(1))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(store.append([note("waited")]))
    for _ in range(20):
        await asyncio.sleep(0.005)
        assert len(await store.entries("s1")) == 1  # reading goes on
    assert not writing.done()
    other.execute("COMMIT")
    other.close()
    await writing
    assert len(await store.entries("s1")) == 2
    await store.close()


async def test_a_write_that_waited_too_long_is_refused_and_can_be_tried_again(path: Path):
    store = SQLiteStore(path, lock_timeout=0.05)
    tape = await Tape.open(store, "s1")
    await tape.append("note", {"n": 1})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TapeLocked, match="in use by another process") as told:
        await tape.append("note", {"n": 2})
    assert one_line(told.value, path)
    other.execute("COMMIT")
    other.close()
    await tape.append("note", {"n": 3})
    assert [entry.payload["n"] for entry in await tape.branch()] == [1, 3]
    await store.close()


async def test_a_cancelled_write_leaves_the_tape_usable(path: Path):
    store = SQLiteStore(path)
    tape = await Tape.open(store, "s1")
    await tape.append("note", {"n": 1})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(tape.append("note", {"n": 2}))
    await asyncio.sleep(0.01)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    other.execute("COMMIT")
    other.close()
    await tape.append("note", {"n": 3})
    assert [entry.payload["n"] for entry in await tape.branch()] == [1, 3]
    await store.close()


# --- Other processes ---

WRITER = """
import asyncio, sys
from hookline.tape import SQLiteStore, Tape

async def main(path, session, count):
    store = SQLiteStore(path, lock_timeout=60)
    tape = await Tape.open(store, session)
    for number in range(int(count)):
        await tape.append("note", {"n": number, "text": "word " * 100})
        if number % 50 == 0:
            await store.search("word", limit=1)
        print(number, flush=True)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_that_write_different_sessions_at_once_lose_nothing(path: Path):
    processes = [run(WRITER, path, f"session-{number}", 300) for number in range(3)]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    store = SQLiteStore(path)
    for number in range(3):
        leaf = await store.leaf(f"session-{number}")
        assert [entry.payload["n"] for entry in await store.branch(leaf.id)] == list(range(300))
    assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    await store.close()


async def test_another_process_that_appends_to_the_session_is_noticed(path: Path):
    store = SQLiteStore(path)
    tape = await Tape.open(store, "s1")
    await tape.append("note", {"n": -1})
    process = run(WRITER, path, "s1", 3)
    process.communicate(timeout=60)
    with pytest.raises(TapeError, match="another writer"):
        await tape.append("note", {"n": 99})
    await tape.refresh()
    await tape.append("note", {"n": 99})
    assert [entry.payload["n"] for entry in await tape.branch()] == [-1, 0, 1, 2, 99]
    await store.close()


@pytest.mark.parametrize("after", [1, 40, 150])
async def test_a_process_killed_while_appending_leaves_a_valid_tape(path: Path, after: int):
    process = run(WRITER, path, "s1", 100_000)
    assert process.stdout
    for line in process.stdout:
        if int(line) >= after:
            break
    time.sleep(0.003)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    told = [int(line) for line in rest.split()]
    store = SQLiteStore(path)
    assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    tape = await Tape.open(store, "s1")
    written = [entry.payload["n"] for entry in await tape.branch()]
    assert written == list(range(len(written)))
    assert len(written) > max(told, default=after)  # what was acknowledged is there
    await tape.append("note", {"n": len(written)})
    assert len(await tape.branch()) == len(written) + 1
    assert len(await tape.search("word", limit=100_000)) == len(written)
    await store.close()


async def test_opening_a_new_file_from_many_processes_at_once_works(path: Path):
    processes = [run(WRITER, path, f"session-{number}", 2) for number in range(6)]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    store = SQLiteStore(path)
    assert len(await store.sessions()) == 6
    await store.close()


# --- What it costs ---


async def test_looking_for_rare_kinds_and_leaves_does_not_read_the_whole_tape(path: Path):
    store = SQLiteStore(path)
    await store.append(chain(5000))
    tape = await Tape.open(store, "s1")
    await tape.label(tape.leaf.id, "here")
    await tape.anchor("there")
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    store._db.set_progress_handler(count, 100)  # after every hundred steps of the database
    await Tape.open(store, "s1")
    await tape.labels()
    await tape.context_entries()
    await tape.fork()
    await store.sessions()
    store._db.set_progress_handler(None, 0)
    assert steps < 50
    await store.close()


async def test_a_store_made_in_one_thread_can_be_used_in_another(path: Path):
    store = SQLiteStore(path)
    await asyncio.to_thread(lambda: asyncio.run(store.append(chain(1))))
    assert len(await store.entries("s1")) == 1
    await store.close()


async def test_entries_of_one_moment_are_all_found(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hookline.tape.sqlite.index._PER_TICK", 4)
    store = SQLiteStore(path)
    await store.append([note("same") for _ in range(50)])
    assert len(await store.search("same", limit=100)) == 50
    await store.close()
