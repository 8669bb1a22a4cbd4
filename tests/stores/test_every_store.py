"""What holds for every provider of every protocol: files, crashes, several writers, large values."""

import asyncio
import signal
import sqlite3

import pytest

from hookline.ext.stores import Edge, Node, StoreClosed, StoreDamaged, Stores, StoreUnavailable, Vector

from .conftest import EACH, PROVIDERS, run, spec, stores_in

pytestmark = pytest.mark.slow

IN_SQLITE = [(protocol, provider) for protocol, provider in EACH if provider != "ladybug"]


async def write(store, protocol, key, text="word"):
    """Write one thing, found again by its key."""
    if protocol == "doc":
        await store.upsert("c", {key: {"text": text}})
    elif protocol == "memory":
        await store.add(text, user=key)
    elif protocol == "fact":
        await store.assert_fact(key, "says", text, source="test", since=1)
    elif protocol == "vector":
        await store.upsert([Vector(key, (1.0, 2.0, 3.0), text)])
    else:
        await store.upsert([Node(key, "n", {"text": text}), Node("hub")], [Edge("hub", "to", key)])


async def read(store, protocol, key):
    """The text that was written under a key."""
    if protocol == "doc":
        found = await store.get("c", key)
        return found and found.data["text"]
    if protocol == "memory":
        return next((note.text for note in await store.recent(user=key)), None)
    if protocol == "fact":
        return next((fact.object for fact in await store.query(key)), None)
    found = await store.get(key)
    return found and (found.text if protocol == "vector" else found.properties["text"])


WRITER = """
    import asyncio, sys
    from pathlib import Path
    from tests.stores.conftest import stores_in
    from tests.stores.test_every_store import write

    folder, protocol, provider, mark, count = sys.argv[1:]

    async def main():
        stores = stores_in(Path(folder), protocol, provider)
        for number in range(int(count)):
            await write(stores.get("s"), protocol, f"{mark}-{number}")
            print(number, flush=True)
        await stores.close()

    asyncio.run(main())
"""


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_what_was_written_is_there_after_reopening(tmp_path, protocol, provider):
    stores = stores_in(tmp_path / "new" / "folder", protocol, provider)
    await write(stores.get("s"), protocol, "Zoë ☕ 東京", "text 🫖")
    await stores.close()
    again = stores_in(tmp_path / "new" / "folder", protocol, provider)
    assert await read(again.get("s"), protocol, "Zoë ☕ 東京") == "text 🫖"
    assert (await again.get("s").health()).ok
    await again.close()


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_writers_at_the_same_time_lose_nothing(tmp_path, protocol, provider):
    stores = stores_in(tmp_path, protocol, provider)
    store = stores.get("s")
    await asyncio.gather(*(write(store, protocol, f"k{n}", f"t{n}") for n in range(40)))
    assert [await read(store, protocol, f"k{n}") for n in range(40)] == [f"t{n}" for n in range(40)]
    await stores.close()


@pytest.mark.parametrize(("protocol", "provider"), IN_SQLITE)
async def test_several_processes_write_to_one_file(tmp_path, protocol, provider):
    processes = [run(WRITER, tmp_path, protocol, provider, mark, 10) for mark in "ab"]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    stores = stores_in(tmp_path, protocol, provider)
    assert (await stores.get("s").health()).count == 20
    await stores.close()


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_a_killed_writer_leaves_a_valid_file_with_all_that_it_was_told(
    tmp_path, protocol, provider
):
    process = run(WRITER, tmp_path, protocol, provider, "k", 100_000)
    for line in process.stdout:
        if int(line) >= 25:
            break
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    told = max([25, *map(int, rest.split())])
    stores = stores_in(tmp_path, protocol, provider)
    store = stores.get("s")
    assert (await store.health()).ok
    for number in range(told + 1):
        assert await read(store, protocol, f"k-{number}") == "word"
    await write(store, protocol, "after")
    assert await read(store, protocol, "after") == "word"
    await stores.close()


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_a_large_value_comes_back_whole(tmp_path, protocol, provider):
    stores = stores_in(tmp_path, protocol, provider)
    large = "größe " * 500_000
    await write(stores.get("s"), protocol, "large", large)
    assert await read(stores.get("s"), protocol, "large") == large
    await stores.close()


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_a_store_in_memory_needs_no_file(tmp_path, protocol, provider):
    stores = stores_in(tmp_path, protocol, provider, path=":memory:")
    await write(stores.get("s"), protocol, "k")
    assert await read(stores.get("s"), protocol, "k") == "word"
    assert list(tmp_path.iterdir()) == []
    await stores.close()


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_nothing_is_opened_before_it_is_used(tmp_path, protocol, provider):
    stores = stores_in(tmp_path, protocol, provider)
    stores.get("s")
    await stores.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_a_closed_store_says_so_and_closes_twice(tmp_path, protocol, provider):
    stores = stores_in(tmp_path, protocol, provider)
    binding = stores.binding("s")
    store = binding.open()
    await write(store, protocol, "k")
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed) as refused:
        await write(store, protocol, "k")
    assert str(tmp_path / "s.db") in str(refused.value)


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path, protocol, provider):
    path = tmp_path / "s.db"
    path.write_text("this is no database at all\n" * 500)
    before = path.read_bytes()
    stores = stores_in(tmp_path, protocol, provider)
    with pytest.raises(StoreDamaged) as refused:
        await write(stores.get("s"), protocol, "k")
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    health = await stores.get("s").health()
    assert (health.ok, health.count) == (False, 0)
    assert str(path) in health.problem
    await stores.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("protocol", "provider"), IN_SQLITE)
async def test_a_database_of_another_program_is_refused(tmp_path, protocol, provider):
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("CREATE TABLE accounts (name)")
    db.close()
    stores = stores_in(tmp_path, protocol, provider)
    with pytest.raises(StoreDamaged, match="is a database of another program, not a"):
        await write(stores.get("s"), protocol, "k")
    await stores.close()


async def test_a_store_of_another_protocol_or_a_newer_version_is_refused(tmp_path):
    stores = stores_in(tmp_path, "doc", "sqlite")
    await write(stores.get("s"), "doc", "k")
    await stores.close()
    others = stores_in(tmp_path, "fact", "sqlite")
    with pytest.raises(StoreDamaged, match="is a doc store, not a fact store"):
        await write(others.get("s"), "fact", "k")
    await others.close()
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreDamaged, match="of version 99, and this Hookline knows versions up to 1"):
        await write(stores.get("s"), "doc", "k")
    await stores.close()


@pytest.mark.parametrize(("protocol", "provider"), EACH)
async def test_a_folder_that_cannot_be_made_is_named(tmp_path, protocol, provider):
    (tmp_path / "file").write_text("in the way")
    stores = Stores(tmp_path / "file" / "stores")
    stores.add([spec(protocol, provider)], owner="test")
    with pytest.raises(StoreUnavailable, match="its folder cannot be made"):
        await write(stores.get("s"), protocol, "k")
    await stores.close()


async def test_a_cancelled_call_harms_nobody(tmp_path):
    for protocol, them in PROVIDERS.items():
        for provider in them:
            stores = stores_in(tmp_path / protocol, protocol, provider)
            store = stores.get("s")
            task = asyncio.create_task(write(store, protocol, "first"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await write(store, protocol, "second")
            assert await read(store, protocol, "second") == "word"
            await stores.close()
